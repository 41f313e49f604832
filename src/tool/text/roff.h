/* SPDX-License-Identifier: Apache-2.0 */
/* Manual pages in the macros of man(7). They are made from the same tables as the help. */
#ifndef SP_TOOL_TEXT_ROFF_H
#define SP_TOOL_TEXT_ROFF_H

#include "core/buffer.h"
#include "tool/text/options.h"

/* Append the page of COMMAND, spanprof-NAME(1), to OUT. */
void sp_manual_of_command(sp_buffer *out, const sp_command *command);
/* Append the page of all COMMANDS, spanprof(1). */
void sp_manual_of_all(sp_buffer *out, const sp_command *const *commands, size_t count);

#endif
