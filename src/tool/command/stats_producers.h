/* SPDX-License-Identifier: Apache-2.0 */
/* What `spanprof stats` says about the producers of the profiles, whose numbers it adds up. */
#ifndef SP_TOOL_COMMAND_STATS_PRODUCERS_H
#define SP_TOOL_COMMAND_STATS_PRODUCERS_H

#include "core/buffer.h"
#include "tool/command/stats_explain.h"
#include "tool/model/model.h"

/* [{"service", "instance", "profiles"}, …]: an object for each service and instance that MODEL has
 * profiles of, in the order of the files. NULL: memory is short. */
json_t *sp_producers_json(const sp_model *model);
/* Add a line for each producer, if there are several. */
void sp_producers_text(sp_buffer *out, const json_t *producers, sp_stats_explain *explain);

#endif
