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
    /* What the known spans have together, of the time type and of allocated bytes. A span below
     * another one of the group adds nothing: the outer one has its part already. */
    uint64_t total_value, total_alloc;
    uint64_t known_alloc; /* of `count` those whose allocated bytes are known */
} sp_group;

/* What is most in the first group. */
typedef enum sp_groups_order {
    SP_GROUPS_BY_DURATION = 0, /* the sum of durations */
    SP_GROUPS_BY_VALUE,        /* total_value */
    SP_GROUPS_BY_ALLOC,        /* total_alloc */
} sp_groups_order;

typedef struct sp_groups {
    sp_group *items;
    size_t count;
    sp_groups_order order;
} sp_groups;

/* Group the COUNT spans of LIST by name. False when memory is short; GROUPS is to be freed in any
 * case. */
bool sp_groups_make(sp_groups *groups, const sp_model *model, const uint32_t *list, size_t count,
                    sp_groups_order order);
/* In groups_nested.c. GROUP_OF is the group of each span, below GROUP_COUNT, or SP_MODEL_NONE. Set
 * NESTED, one for each span and all false, for spans below one of their own group. False when
 * memory is short. */
bool sp_groups_find_nested(const sp_model *model, const uint32_t *group_of, size_t group_count,
                           bool *nested);
void sp_groups_deinit(sp_groups *groups);

#endif
