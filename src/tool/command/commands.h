/* SPDX-License-Identifier: Apache-2.0 */
/* The `spanprof` command: one file a subcommand. Every command reads its files (read/), most of
 * them into a model (model/), and writes its answer in one go (text/output.h). Threads: the tool
 * has one, and while it reads large files others beside it (read/parallel.h). */
#ifndef SP_TOOL_COMMAND_COMMANDS_H
#define SP_TOOL_COMMAND_COMMANDS_H

#include "tool/text/options.h"

extern const sp_command sp_command_run;
extern const sp_command sp_command_send;
extern const sp_command sp_command_spans;
extern const sp_command sp_command_flame;
extern const sp_command sp_command_stats;
extern const sp_command sp_command_convert;
extern const sp_command sp_command_diff;
extern const sp_command sp_command_completion;
extern const sp_command sp_command_manual;

/* All of them, as `spanprof help` lists them. */
extern const sp_command *const sp_commands[];
extern const size_t sp_command_count;
/* NULL: there is none of this name. */
const sp_command *sp_command_find(const char *name);

#endif
