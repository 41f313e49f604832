/* SPDX-License-Identifier: Apache-2.0 */
/* `spanprof stats --explain`: what each line means, in one or two sentences below it. */
#ifndef SP_TOOL_COMMAND_STATS_EXPLAIN_H
#define SP_TOOL_COMMAND_STATS_EXPLAIN_H

#include <stdbool.h>

#include "core/buffer.h"

/* What was explained already: lines come again with each type of profile, and their text does not.
 */
typedef struct sp_stats_explain {
    bool is_on;
    uint64_t told[2]; /* a bit for each text */
} sp_stats_explain;

/* Append the text for the line NAME of GROUP, unless it is there already. A name that has no text
 * of its own gets that of its group. Nothing when EXPLAIN is off. */
void sp_stats_explain_line(sp_stats_explain *explain, sp_buffer *out, const char *group,
                           const char *name);

#endif
