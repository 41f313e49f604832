/* SPDX-License-Identifier: Apache-2.0 */
#include "tool/text/shell_words.h"

#include "tool/command/commands.h"
#include "tool/text/messages.h"
#include "tool/text/output.h"

static int write_completion(const sp_operands *operands)
{
    if (operands->count != 1)
        return sp_tool_wrong("completion: one shell is needed: bash, zsh or fish");
    sp_buffer out = SP_BUFFER_INIT(SP_OUTPUT_MAX_BYTES);
    int status;
    if (sp_completion_write(&out, operands->items[0], sp_commands, sp_command_count))
        status = sp_output_write(&out, NULL);
    else
        status = out.failed ? sp_tool_no_memory()
                            : sp_tool_wrong("completion: %s is no shell that is known; there are "
                                            "bash, zsh, fish",
                                            operands->items[0]);
    sp_buffer_deinit(&out);
    return status;
}

static int run(int argc, char **argv)
{
    sp_operands operands;
    int status = sp_options_parse(&sp_command_completion, argc, argv, NULL, &operands);
    if (status == SP_OPTIONS_GO_ON)
        status = write_completion(&operands);
    sp_operands_deinit(&operands);
    return status;
}

const sp_command sp_command_completion = {
    .name = "completion",
    .arguments = "bash|zsh|fish",
    .summary = "A script that lets a shell complete commands and options.",
    .details = "An installed spanprof has these scripts where the shells look for them.",
    .examples = "# for this shell\n"
                "source <(spanprof completion bash)",
    .run = run,
};
