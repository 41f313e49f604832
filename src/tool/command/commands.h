/* SPDX-License-Identifier: Apache-2.0 */
/* The `spanprof` command: one file a subcommand. Every command reads its files (read/), most of
 * them into a model (model/), and writes its answer in one go (text/output.h). Threads: the tool
 * has one. */
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

#endif
