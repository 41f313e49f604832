/* SPDX-License-Identifier: Apache-2.0 */
/* `spanprof stats` for files of the time recorder. */
#ifndef SP_TOOL_COMMAND_STATS_SWITCHES_H
#define SP_TOOL_COMMAND_STATS_SWITCHES_H

#include <stdbool.h>

#include "tool/command/stats_explain.h"
#include "tool/text/options.h"

/* Whether the first of FILES is a file of the time recorder. */
bool sp_stats_switches_recognize(const sp_operands *files);
/* Write an answer about each of FILES. Returns an exit code. */
int sp_stats_switches(const sp_operands *files, bool as_json, sp_stats_explain *explain);

#endif
