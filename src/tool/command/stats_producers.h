/* SPDX-License-Identifier: Apache-2.0 */
/* What `spanprof stats` says of several producers, whose numbers it adds up. */
#ifndef SP_TOOL_COMMAND_STATS_PRODUCERS_H
#define SP_TOOL_COMMAND_STATS_PRODUCERS_H

#include "core/buffer.h"
#include "tool/command/stats_explain.h"
#include "tool/model/model.h"

/* [{"service", "instance", "profiles"}, …] in the order of the files: one for each service and
 * instance whose profiles MODEL has. NULL when memory is short. */
json_t *sp_producers_json(const sp_model *model);
/* The same as lines, where there are several. */
void sp_producers_text(sp_buffer *out, const json_t *producers, sp_stats_explain *explain);

#endif
