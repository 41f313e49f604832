/* SPDX-License-Identifier: Apache-2.0 */
/* The `spanprof` command: each subcommand has a file. A subcommand reads its files (read/), usually
 * into a model (model/), and writes its answer in one go (text/output.h). Threads: one, and more
 * only while large files are read (read/parallel.h). */
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

/* All subcommands, in the order of `spanprof help`. */
extern const sp_command *const sp_commands[];
extern const size_t sp_command_count;
/* Returns NULL when there is no subcommand with this name. */
const sp_command *sp_command_find(const char *name);

/* What main does: run the call ARGV and return its exit code. A process calls this once. */
int sp_tool_call(int argc, char **argv);

#endif
