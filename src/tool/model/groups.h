/* SPDX-License-Identifier: Apache-2.0 */
/* Spans of one name together. */
#ifndef SP_TOOL_MODEL_GROUPS_H
#define SP_TOOL_MODEL_GROUPS_H

#include "tool/model/model.h"

/* Of the values of a group's spans: each is one that a span has, by nearest rank. */
typedef struct sp_quantiles {
    uint64_t p50, p95, p99, max;
    uint64_t sum; /* at most INT64_MAX */
} sp_quantiles;

typedef struct sp_group {
    const char *name;
    uint64_t count;
    uint64_t errors;       /* spans whose status is error */
    sp_quantiles duration; /* ns */
    sp_quantiles value;    /* with descendants, of the model's time type */
    uint64_t known;        /* of `count` those whose value is known (hidden.h): `value` is theirs */
    uint64_t samples;
} sp_group;

typedef struct sp_groups {
    sp_group *items; /* the largest sum of durations first */
    size_t count;
} sp_groups;

/* Group the COUNT spans of LIST by name. False when memory is short; GROUPS is to be freed in any
 * case. */
bool sp_groups_make(sp_groups *groups, const sp_model *model, const uint32_t *list, size_t count);
void sp_groups_deinit(sp_groups *groups);

#endif
