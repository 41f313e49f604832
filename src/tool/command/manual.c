/* SPDX-License-Identifier: Apache-2.0 */
#include "tool/text/roff.h"

#include "tool/command/commands.h"
#include "tool/text/messages.h"
#include "tool/text/output.h"

static int write_page(const sp_operands *operands)
{
    const sp_command *command = operands->count ? sp_command_find(operands->items[0]) : NULL;
    if (operands->count && !command)
        return sp_tool_wrong("manual: %s is no command; `spanprof help` lists them",
                             operands->items[0]);
    if (operands->count > 1)
        return sp_tool_wrong("manual: at most one command is needed; `spanprof help` lists them");
    sp_buffer out = SP_BUFFER_INIT(SP_OUTPUT_MAX_BYTES);
    if (command)
        sp_manual_of_command(&out, command);
    else
        sp_manual_of_all(&out, sp_commands, sp_command_count);
    int status = out.failed ? sp_tool_no_memory() : sp_output_write(&out, NULL);
    sp_buffer_deinit(&out);
    return status;
}

static int run(int argc, char **argv)
{
    sp_operands operands;
    int status = sp_options_parse(&sp_command_manual, argc, argv, NULL, &operands);
    if (status == SP_OPTIONS_GO_ON)
        status = write_page(&operands);
    sp_operands_deinit(&operands);
    return status;
}

const sp_command sp_command_manual = {
    .name = "manual",
    .arguments = "[COMMAND]",
    .summary = "A manual page, as `man` reads it.",
    .details = "An installed spanprof has these pages where `man` looks for them.",
    .examples = "# read one\n"
                "spanprof manual flame | man -l -",
    .run = run,
};
