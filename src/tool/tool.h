/* SPDX-License-Identifier: Apache-2.0 */
/* The `spanprof` command: one file a subcommand. Every command reads its files (input.h), most of them into a model (model.h),
 * and writes its answer in one go (output.h).
 *
 * Exit codes: 0 done; 1 the answer is no (nothing matched, a check failed, the file cannot tell); 2 the call or the input is wrong.
 * For 1 and 2 one line on standard error says what, where, and what to do.
 * Threads: the tool has one. */
#ifndef SP_TOOL_TOOL_H
#define SP_TOOL_TOOL_H

#include "core/compiler.h"
#include "tool/options.h"

enum { SP_TOOL_DONE = 0, SP_TOOL_NO = 1, SP_TOOL_WRONG = 2 };

/* One line on standard error, with control characters of names and paths made visible; returns SP_TOOL_WRONG. */
int sp_tool_wrong(const char *format, ...) SP_PRINTF(1, 2);
/* The same; returns SP_TOOL_NO. */
int sp_tool_no(const char *format, ...) SP_PRINTF(1, 2);
/* The same as a remark: the command goes on. */
void sp_tool_note(const char *format, ...) SP_PRINTF(1, 2);
/* Said when an allocation failed. */
int sp_tool_no_memory(void);

extern const sp_command sp_command_spans;
extern const sp_command sp_command_flame;
extern const sp_command sp_command_stats;
extern const sp_command sp_command_convert;
extern const sp_command sp_command_check;

#endif
