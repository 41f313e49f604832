/* SPDX-License-Identifier: Apache-2.0 */
/* Counts of wrong calls of the SDK in profiles, for `spanprof stats`. */
#ifndef SP_TOOL_COMMAND_STATS_MISUSE_H
#define SP_TOOL_COMMAND_STATS_MISUSE_H

#include <jansson.h>
#include <stdint.h>

#include "core/buffer.h"
#include "tool/command/stats_explain.h"

/* Add NUMBER, the attribute KEY of a profile, to the object MISUSE, if it is such a count. */
void sp_misuse_stats_attribute(json_t *misuse, const char *key, int64_t number);
/* Add a line for each kind of wrong call, with its meaning. Adds nothing when there are no wrong
 * calls. */
void sp_misuse_stats_text(sp_buffer *out, json_t *misuse, sp_stats_explain *explain);

#endif
