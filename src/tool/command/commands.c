/* SPDX-License-Identifier: Apache-2.0 */
#include "tool/command/commands.h"

#include <string.h>

#include "core/compiler.h"
#include "tool/check/check.h"

const sp_command *const sp_commands[] = {
    &sp_command_run,        &sp_command_spans,   &sp_command_flame, &sp_command_diff,
    &sp_command_stats,      &sp_command_convert, &sp_command_check, &sp_command_send,
    &sp_command_completion, &sp_command_manual,
};
const size_t sp_command_count = SP_ARRAY_LENGTH(sp_commands);

const sp_command *sp_command_find(const char *name)
{
    for (size_t i = 0; i < sp_command_count; i++)
        if (strcmp(sp_commands[i]->name, name) == 0)
            return sp_commands[i];
    return NULL;
}
