/* SPDX-License-Identifier: Apache-2.0 */
/* What `spanprof stats` shows for a type of wall time: the visits of the wall profiler, and the
 * classes of the time. */
#ifndef SP_TOOL_COMMAND_STATS_WALL_H
#define SP_TOOL_COMMAND_STATS_WALL_H

#include "core/buffer.h"
#include "tool/command/stats_explain.h"
#include "tool/model/model.h"

typedef struct sp_wall_stats {
    json_t *visits; /* from attributes of profiles: visits, unmoved, discarded */
    uint64_t where_ns[SP_WHERE_COUNT];
    uint64_t steal_ns;   /* the part of the time on CPU that the host of the virtual machine took */
    json_t *descriptors; /* object: kind to nanoseconds */
} sp_wall_stats;

/* Add NUMBER, an attribute that is a count, to *SUM. A negative number is ignored. */
void sp_stats_add_to(uint64_t *sum, int64_t number);
/* Add NUMBER to the integer KEY of OBJECT. A missing integer counts as 0. */
void sp_stats_add(json_t *object, const char *key, int64_t number);

void sp_wall_stats_init(sp_wall_stats *stats);
void sp_wall_stats_deinit(sp_wall_stats *stats);

/* Add an attribute of a profile. Attributes that are not about wall time are ignored. */
void sp_wall_stats_attribute(sp_wall_stats *stats, const char *key, int64_t number);
void sp_wall_stats_sample(sp_wall_stats *stats, const sp_model *model,
                          const sp_model_sample *sample);

json_t *sp_wall_stats_json(const sp_wall_stats *stats, const sp_model_type *type);
void sp_wall_stats_text(sp_buffer *out, const sp_wall_stats *stats, const sp_model_type *type,
                        sp_stats_explain *explain);

#endif
