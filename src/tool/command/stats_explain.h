/* SPDX-License-Identifier: Apache-2.0 */
/* `spanprof stats --explain`: one or two sentences below each line say what the line means. */
#ifndef SP_TOOL_COMMAND_STATS_EXPLAIN_H
#define SP_TOOL_COMMAND_STATS_EXPLAIN_H

#include <stdbool.h>

#include "core/buffer.h"

/* What was explained already. Lines are repeated for each type of profile, but explanations are
 * not. */
typedef struct sp_stats_explain {
    bool is_on;
    uint64_t told[2]; /* a bit for each text */
} sp_stats_explain;

/* Append the text for the line NAME of GROUP, unless OUT has it already. A name without its own
 * text gets the text of its group. Does nothing when EXPLAIN is off. */
void sp_stats_explain_line(sp_stats_explain *explain, sp_buffer *out, const char *group,
                           const char *name);

#endif
