/* SPDX-License-Identifier: Apache-2.0 */
#include "tool/text/roff.h"

#include <string.h>

#include <spanprof/version.h>

/* Add TEXT literally: escape what roff would take for a request or an escape. */
static void add_plain(sp_buffer *out, const char *text)
{
    bool starts_line = true;
    for (; *text; text++) {
        if (starts_line && (*text == '.' || *text == '\''))
            sp_buffer_add_string(out, "\\&");
        if (*text == '\\')
            sp_buffer_add_string(out, "\\e");
        else if (*text == '-')
            sp_buffer_add_string(out, "\\-");
        else
            sp_buffer_add_char(out, *text);
        starts_line = *text == '\n';
    }
}

static void add_line(sp_buffer *out, const char *text)
{
    add_plain(out, text);
    sp_buffer_add_char(out, '\n');
}

/* Add TEXT with its line breaks. */
static void add_lines(sp_buffer *out, const char *text)
{
    sp_buffer_add_string(out, ".nf\n");
    add_line(out, text);
    sp_buffer_add_string(out, ".fi\n");
}

static void add_title(sp_buffer *out, const char *name, const char *summary)
{
    sp_buffer_printf(out, ".TH SPANPROF%s%s 1 \"\" \"spanprof %s\"\n.SH NAME\nspanprof%s%s \\- ",
                     *name ? "\\-" : "", name, SPANPROF_VERSION, *name ? "\\-" : "", name);
    add_line(out, summary);
}

static void add_options(sp_buffer *out, const sp_command *command)
{
    sp_buffer_add_string(out, ".SH OPTIONS\n");
    for (size_t i = 0; i < command->option_count; i++) {
        const sp_option *option = &command->options[i];
        if (option->kind == SP_OPTION_LATER)
            continue;
        sp_buffer_add_string(out, ".TP\n\\fB");
        add_plain(out, option->name);
        sp_buffer_add_string(out, "\\fR");
        if (option->argument) {
            sp_buffer_add_string(out, " \\fI");
            add_plain(out, option->argument);
            sp_buffer_add_string(out, "\\fR");
        }
        sp_buffer_add_char(out, '\n');
        add_line(out, option->help);
    }
    sp_buffer_add_string(out, ".TP\n\\fB\\-\\-help\\fR\nthis text\n");
}

static void add_exit_status(sp_buffer *out)
{
    sp_buffer_add_string(out, ".SH EXIT STATUS\n0: done; 1: the answer is no; 2: the call or the "
                              "input is wrong.\n");
}

void sp_manual_of_command(sp_buffer *out, const sp_command *command)
{
    add_title(out, command->name, command->summary);
    sp_buffer_printf(out, ".SH SYNOPSIS\n\\fBspanprof %s\\fR ", command->name);
    add_line(out, command->arguments);
    if (command->details) {
        sp_buffer_add_string(out, ".SH DESCRIPTION\n");
        add_lines(out, command->details);
    }
    add_options(out, command);
    if (command->examples) {
        sp_buffer_add_string(out, ".SH EXAMPLES\n");
        add_lines(out, command->examples);
    }
    if (!command->program_follows)
        add_exit_status(out);
    sp_buffer_add_string(out, ".SH SEE ALSO\n\\fBspanprof\\fR(1)\n");
}

void sp_manual_of_all(sp_buffer *out, const sp_command *const *commands, size_t count)
{
    add_title(out, "", "spans, and the flamegraphs of single requests");
    sp_buffer_add_string(out, ".SH SYNOPSIS\n\\fBspanprof\\fR \\fICOMMAND\\fR ...\n"
                              ".SH DESCRIPTION\nReads files that the spanprof SDK or any OTLP "
                              "exporter wrote.\n.SH COMMANDS\n");
    for (size_t i = 0; i < count; i++) {
        sp_buffer_printf(out, ".TP\n\\fBspanprof\\-%s\\fR(1)\n", commands[i]->name);
        add_line(out, commands[i]->summary);
    }
    add_exit_status(out);
}
