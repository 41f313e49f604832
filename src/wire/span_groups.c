/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/traces.h"

static uint32_t group_find(sp_span_grouping *grouping, const sp_instrumentation_scope *scope,
                           uint32_t last)
{
    if (last < grouping->group_count && grouping->groups[last].scope == scope)
        return last;
    for (uint32_t i = 0; i < grouping->group_count; i++) {
        if (grouping->groups[i].scope == scope)
            return i;
    }
    grouping->groups[grouping->group_count].scope = scope;
    return grouping->group_count++;
}

bool sp_otlp_group_spans(sp_arena *arena, sp_span_grouping *grouping, sp_span_data *const *spans,
                         size_t count)
{
    grouping->groups = sp_arena_array(arena, count, sizeof *grouping->groups);
    grouping->number_of = sp_arena_array(arena, count, sizeof *grouping->number_of);
    if (!grouping->groups || !grouping->number_of)
        return false;
    uint32_t last = 0;
    for (size_t i = 0; i < count; i++) {
        last = group_find(grouping, spans[i]->scope, last);
        grouping->number_of[i] = last;
        grouping->groups[last].count++;
    }
    return true;
}
