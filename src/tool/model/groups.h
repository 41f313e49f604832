/* SPDX-License-Identifier: Apache-2.0 */
/* Groups of spans: all spans of one name are a group. */
#ifndef SP_TOOL_MODEL_GROUPS_H
#define SP_TOOL_MODEL_GROUPS_H

#include "tool/model/model.h"

/* Quantiles of the spans of a group by nearest rank: each is a value that a span has. */
typedef struct sp_quantiles {
    uint64_t p50, p95, p99, max;
    uint64_t sum; /* at most INT64_MAX */
} sp_quantiles;

typedef struct sp_group {
    const char *name;
    uint64_t count;
    uint64_t errors;       /* spans whose status is error */
    sp_quantiles duration; /* ns */
    sp_quantiles value;    /* of the model's time type, each span with its descendants */
    /* the number of spans whose value is known (hidden.h): `value` is about these */
    uint64_t known;
    uint64_t unsampled; /* of the others, the spans that `run --attach` did not see (unsampled.c) */
    uint64_t samples;
    /* The sums over the known spans, of the time type and of allocated bytes. A span below another
     * span of the group adds nothing, because the value of the outer span includes it. */
    uint64_t total_value, total_alloc;
    double alloc_variance; /* of total_alloc, as far as the sampling makes it */
    uint64_t known_alloc;  /* the number of spans whose allocated bytes are known */
    /* The same for wall time, and the time in which no thread carried these spans (queued.h). */
    uint64_t total_wall, known_wall, queued_ns;
} sp_group;

/* Groups are sorted by this value, the largest first. */
typedef enum sp_groups_order {
    SP_GROUPS_BY_DURATION = 0, /* the sum of durations */
    SP_GROUPS_BY_VALUE,        /* total_value */
    SP_GROUPS_BY_ALLOC,        /* total_alloc */
    SP_GROUPS_BY_WALL,         /* total_wall */
    SP_GROUPS_BY_QUEUE,        /* queued_ns */
} sp_groups_order;

typedef struct sp_groups {
    sp_group *items;
    size_t count;
    sp_groups_order order;
} sp_groups;

/* Group the COUNT spans of LIST by name. Returns false when memory is short. Free GROUPS by
 * sp_groups_deinit in any case. */
bool sp_groups_make(sp_groups *groups, const sp_model *model, const uint32_t *list, size_t count,
                    sp_groups_order order);
/* Set NESTED[n] for each span n below a span of its own group. NESTED has one member for each span,
 * all false before the call. GROUP_OF has the group of each span, below GROUP_COUNT, or
 * SP_MODEL_NONE. Returns false when memory is short. In groups_nested.c. */
bool sp_groups_find_nested(const sp_model *model, const uint32_t *group_of, size_t group_count,
                           bool *nested);
void sp_groups_deinit(sp_groups *groups);

#endif
