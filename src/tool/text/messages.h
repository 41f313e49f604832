/* SPDX-License-Identifier: Apache-2.0 */
/* What the command says on standard error, and its exit codes: 0 done; 1 the answer is no (nothing
 * matched, a check failed, the file cannot tell); 2 the call or the input is wrong. For 1 and 2 one
 * line says what, where, and what to do. Threads: the main one; others report through results. */
#ifndef SP_TOOL_TEXT_MESSAGES_H
#define SP_TOOL_TEXT_MESSAGES_H

#include "core/compiler.h"

enum { SP_TOOL_DONE = 0, SP_TOOL_NO = 1, SP_TOOL_WRONG = 2 };

/* One line on standard error, with control characters of names and paths made visible; returns
 * SP_TOOL_WRONG. */
int sp_tool_wrong(const char *format, ...) SP_PRINTF(1, 2);
/* The same; returns SP_TOOL_NO. */
int sp_tool_no(const char *format, ...) SP_PRINTF(1, 2);
/* The same as a remark: the command goes on. */
void sp_tool_note(const char *format, ...) SP_PRINTF(1, 2);
/* Said when an allocation failed. */
int sp_tool_no_memory(void);

#endif
