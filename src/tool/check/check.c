/* SPDX-License-Identifier: Apache-2.0 */
#include "tool/check/check.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/counted.h"
#include "tool/text/escape.h"
#include "tool/text/messages.h"
#include "tool/text/output.h"

/* A wrong program may break one rule a million times. More lines than this do not help the user. */
enum { MAX_LINES = 1000 };

sp_place sp_place_of(const char *format, ...)
{
    sp_place place;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(place.text, sizeof place.text, format, arguments);
    va_end(arguments);
    return place;
}

static void add_line(sp_checker *checker, const char *mark, const char *rule, const sp_place *place,
                     const char *format, va_list arguments)
{
    if (checker->violations + checker->warnings > MAX_LINES)
        return;
    char name[SP_DOCUMENT_NAME_LENGTH], text[512], line[1100];
    vsnprintf(text, sizeof text, format, arguments);
    snprintf(line, sizeof line, "%s: %s: %s%s: %s", sp_document_name(name, checker->document),
             place->text, mark, rule, text);
    sp_escape_terminal(&checker->out, line);
    sp_buffer_add_char(&checker->out, '\n');
}

void sp_check_violation(sp_checker *checker, const char *rule, const sp_place *place,
                        const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    checker->violations++;
    add_line(checker, "", rule, place, format, arguments);
    va_end(arguments);
}

void sp_check_warning(sp_checker *checker, const char *rule, const sp_place *place,
                      const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    checker->warnings++;
    add_line(checker, "warning: ", rule, place, format, arguments);
    va_end(arguments);
}

bool sp_id_is_good(const ProtobufCBinaryData *id, size_t count)
{
    if (id->len != count)
        return false;
    for (size_t i = 0; i < count; i++)
        if (id->data[i])
            return true;
    return false;
}

uint32_t sp_checker_find_span(const sp_checker *checker, const ProtobufCBinaryData *trace_id,
                              const ProtobufCBinaryData *span_id)
{
    uint8_t key[24];
    if (!sp_id_is_good(trace_id, 16) || !sp_id_is_good(span_id, 8))
        return SP_INTERN_FAILED;
    memcpy(key, trace_id->data, 16);
    memcpy(key + 16, span_id->data, 8);
    return sp_intern_find(&checker->span_ids, key, sizeof key);
}

/* Traces come first, because the links of profiles are looked up among the spans of traces. */
static void check_documents(sp_checker *checker)
{
    for (int signal = SP_SIGNAL_TRACES; signal <= SP_SIGNAL_PROFILES; signal++) {
        for (size_t i = 0; i < checker->input->count; i++) {
            checker->document = &checker->input->documents[i];
            if ((int)checker->document->signal != signal)
                continue;
            sp_place top = sp_place_of("%s", "");
            sp_check_utf8(checker, checker->document->message, &top);
            if (signal == SP_SIGNAL_TRACES)
                sp_check_traces(checker);
            else
                sp_check_profiles(checker);
            sp_check_backend(checker);
        }
    }
}

static int write_result(sp_checker *checker)
{
    uint64_t lines = checker->violations + checker->warnings;
    if (lines > MAX_LINES)
        sp_buffer_printf(&checker->out, "… and %llu more\n",
                         (unsigned long long)(lines - MAX_LINES));
    if (checker->violations)
        sp_buffer_printf(&checker->out, "%s\n", SP_COUNTED(checker->violations, "violation"));
    else
        sp_buffer_printf(&checker->out, "ok: %s of traces with %s, %zu of profiles\n",
                         SP_COUNTED(sp_input_count(checker->input, SP_SIGNAL_TRACES), "request"),
                         SP_COUNTED(checker->span_ids.count, "span"),
                         sp_input_count(checker->input, SP_SIGNAL_PROFILES));
    int status = sp_output_write(&checker->out, NULL);
    return status != SP_TOOL_DONE ? status : checker->violations ? SP_TOOL_NO : SP_TOOL_DONE;
}

typedef struct check_options {
    const char *backend;
} check_options;

static int find_backend(const char *name, sp_backend *backend)
{
    static const char *const names[] = {"", "pyroscope", "collector"};
    *backend = SP_BACKEND_NONE;
    if (!name)
        return SP_TOOL_DONE;
    for (size_t i = 1; i < SP_ARRAY_LENGTH(names); i++)
        if (strcmp(name, names[i]) == 0)
            *backend = (sp_backend)i;
    if (*backend == SP_BACKEND_NONE)
        return sp_tool_wrong("check: --backend %s is unknown; there are pyroscope, collector",
                             name);
    return SP_TOOL_DONE;
}

static int answer(const sp_operands *files, const check_options *options)
{
    sp_input input;
    sp_checker checker = {.input = &input, .out = SP_BUFFER_INIT(SP_OUTPUT_MAX_BYTES)};
    int status = find_backend(options->backend, &checker.backend);
    if (status != SP_TOOL_DONE)
        return status;
    status = sp_input_read(&input, files);
    if (status == SP_TOOL_DONE) {
        check_documents(&checker);
        status = checker.failed ? sp_tool_no_memory() : write_result(&checker);
    }
    status = sp_input_status(&input, status);
    sp_intern_deinit(&checker.span_ids);
    sp_intern_deinit(&checker.keys);
    free(checker.spans);
    sp_buffer_deinit(&checker.out);
    sp_input_deinit(&input);
    return status;
}

static int run(int argc, char **argv)
{
    check_options options = {0};
    sp_operands files;
    int status = sp_options_parse(&sp_command_check, argc, argv, &options, &files);
    if (status == SP_OPTIONS_GO_ON)
        status = answer(&files, &options);
    sp_operands_deinit(&files);
    return status;
}

static const sp_option options[] = {
    {"--backend", "NAME", SP_OPTION_TEXT, offsetof(check_options, backend),
     "also what pyroscope or collector asks for"},
    {"--span", "ID", SP_OPTION_LATER, 0, "why this span has no flamegraph"},
};

const sp_command sp_command_check = {
    .name = "check",
    .arguments = "FILE… [--backend pyroscope|collector]",
    .summary = "Whether files keep to OTLP's rules; each broken one with file, place, rule.",
    .details = "Exit code 0: they do. 1: they do not. Warnings do not count.",
    .examples = "# exit code 1 when a rule is broken\n"
                "spanprof check shop.traces.jsonl shop.profiles.jsonl",
    .options = options,
    .option_count = SP_ARRAY_LENGTH(options),
    .run = run,
};
