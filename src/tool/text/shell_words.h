/* SPDX-License-Identifier: Apache-2.0 */
/* Scripts that let a shell complete commands and options, made from the tables that parse them.
 * Operands and arguments are completed as names of files. */
#ifndef SP_TOOL_TEXT_SHELL_WORDS_H
#define SP_TOOL_TEXT_SHELL_WORDS_H

#include "core/buffer.h"
#include "tool/text/options.h"

/* Append the script for SHELL (bash, zsh or fish) to OUT. Returns false when the shell is unknown,
 * or OUT has failed. */
bool sp_completion_write(sp_buffer *out, const char *shell, const sp_command *const *commands,
                         size_t count);

#endif
