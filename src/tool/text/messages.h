/* SPDX-License-Identifier: Apache-2.0 */
/* Messages on standard error, and exit codes: 0 done; 1 the answer is no (nothing matched, a check
 * failed, the file does not have the answer); 2 the call or the input is wrong. For 1 and 2, one
 * line says what is wrong, where, and what to do. Threads: only the main thread; other threads
 * return results. */
#ifndef SP_TOOL_TEXT_MESSAGES_H
#define SP_TOOL_TEXT_MESSAGES_H

#include "core/compiler.h"

enum { SP_TOOL_DONE = 0, SP_TOOL_NO = 1, SP_TOOL_WRONG = 2 };

/* Write one line to standard error. Control characters in names and paths are made visible. Returns
 * SP_TOOL_WRONG. */
int sp_tool_wrong(const char *format, ...) SP_PRINTF(1, 2);
/* As sp_tool_wrong, but returns SP_TOOL_NO. */
int sp_tool_no(const char *format, ...) SP_PRINTF(1, 2);
/* Write a note in the same way; the command continues. */
void sp_tool_note(const char *format, ...) SP_PRINTF(1, 2);
/* Report that an allocation failed. Returns SP_TOOL_WRONG. */
int sp_tool_no_memory(void);

#endif
