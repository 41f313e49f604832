/* SPDX-License-Identifier: Apache-2.0 */
#include "tool/command/commands.h"

#include <locale.h>
#include <stdio.h>
#include <string.h>

#include <spanprof/version.h>
#include "core/spelling.h"
#include "tool/model/sum.h"
#include "tool/text/messages.h"

/* Commands that the documentation names, but that are not built yet. */
static const char *const later[] = {"join", "view"};

static int say_unknown(const char *name)
{
    for (size_t i = 0; i < SP_ARRAY_LENGTH(later); i++)
        if (strcmp(later[i], name) == 0)
            return sp_tool_wrong("%s is not built yet; `spanprof help` lists what is", name);
    sp_spelling spelling = {
        .text = name, .length = strlen(name), .far_off = sp_spelling_far(strlen(name))};
    for (size_t i = 0; i < sp_command_count; i++)
        sp_spelling_try(&spelling, sp_commands[i]->name);
    return sp_tool_wrong("unknown command %s%s%s; `spanprof help` lists the commands", name,
                         spelling.found ? ", was it " : "", spelling.found ? spelling.found : "");
}

static int print_help(void)
{
    printf(
        "usage: spanprof COMMAND …\n\n"
        "Spans, and the flamegraphs of single requests, from files that the spanprof SDK or any\n"
        "OTLP exporter wrote.\n\n");
    for (size_t i = 0; i < sp_command_count; i++)
        printf("  %-11s %s\n", sp_commands[i]->name, sp_commands[i]->summary);
    printf("\n`spanprof help COMMAND` tells more. Not built yet:");
    for (size_t i = 0; i < SP_ARRAY_LENGTH(later); i++)
        printf("%s %s", i ? "," : "", later[i]);
    printf(".\nExit codes: 0 done; 1 the answer is no; 2 the call or the input is wrong.\n");
    return SP_TOOL_DONE;
}

static int help(const char *name)
{
    const sp_command *command = name ? sp_command_find(name) : NULL;
    if (!name)
        return print_help();
    if (!command)
        return say_unknown(name);
    sp_command_help(command);
    return SP_TOOL_DONE;
}

int sp_tool_call(int argc, char **argv)
{
    setlocale(LC_CTYPE, "");
    if (argc < 2)
        return sp_tool_wrong("no command is named; `spanprof help` lists the commands");
    const char *name = argv[1];
    if (strcmp(name, "help") == 0 || strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0)
        return help(argc > 2 ? argv[2] : NULL);
    if (strcmp(name, "--version") == 0) {
        printf("spanprof %s\n", SPANPROF_VERSION);
        return SP_TOOL_DONE;
    }
    const sp_command *command = sp_command_find(name);
    int status = command ? command->run(argc - 1, argv + 1) : say_unknown(name);
    sp_sum_note();
    return status;
}
