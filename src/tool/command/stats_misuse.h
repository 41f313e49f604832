/* SPDX-License-Identifier: Apache-2.0 */
/* What the profiles say of calls that make no sense, for `spanprof stats`. */
#ifndef SP_TOOL_COMMAND_STATS_MISUSE_H
#define SP_TOOL_COMMAND_STATS_MISUSE_H

#include <jansson.h>
#include <stdint.h>

#include "core/buffer.h"
#include "tool/command/stats_explain.h"

/* Take KEY of a profile with NUMBER into the object MISUSE, when it is such a count. */
void sp_misuse_stats_attribute(json_t *misuse, const char *key, int64_t number);
/* A line for each kind of call, with what it is. Nothing where there is none. */
void sp_misuse_stats_text(sp_buffer *out, json_t *misuse, sp_stats_explain *explain);

#endif
