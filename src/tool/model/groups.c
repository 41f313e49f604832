/* SPDX-License-Identifier: Apache-2.0 */
#include "tool/model/groups.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "tool/model/hidden.h"
#include "tool/model/queued.h"
#include "tool/model/sum.h"

/* A span and its name. Sorting members by name brings the spans of a group together. */
typedef struct member {
    const char *name; /* of the model's strings: equal texts are one pointer */
    uint32_t span;
} member;

static int by_name(const void *a, const void *b)
{
    const member *x = a, *y = b;
    int order = x->name == y->name ? 0 : strcmp(x->name, y->name);
    return order ? order : (x->span > y->span) - (x->span < y->span);
}

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* The group with the larger value first. *OFFSET: where the value, a uint64_t, is in a group. */
static int by_member(const void *a, const void *b, void *offset)
{
    uint64_t x = *(const uint64_t *)(const void *)((const char *)a + *(const size_t *)offset);
    uint64_t y = *(const uint64_t *)(const void *)((const char *)b + *(const size_t *)offset);
    const sp_group *left = a, *right = b;
    return x != y ? (x > y ? -1 : 1) : strcmp(left->name, right->name);
}

static uint64_t at_rank(const uint64_t *sorted, size_t count, unsigned percent)
{
    return sorted[(count * percent + 99) / 100 - 1];
}

static sp_quantiles find_quantiles(uint64_t *values, size_t count)
{
    sp_quantiles found = {0};
    qsort(values, count, sizeof *values, by_value);
    for (size_t i = 0; i < count; i++)
        sp_sum_add(&found.sum, values[i] < INT64_MAX ? values[i] : INT64_MAX);
    found.p50 = at_rank(values, count, 50);
    found.p95 = at_rank(values, count, 95);
    found.p99 = at_rank(values, count, 99);
    found.max = values[count - 1];
    return found;
}

static bool is_error(const sp_model_span *span)
{
    const Sp__Trace__Status *status = span->message->status;
    return status && status->code == SP__TRACE__STATUS__STATUS_CODE__STATUS_CODE_ERROR;
}

/* Working memory of one call. */
typedef struct maker {
    const sp_model *model;
    const sp_model_type *type, *alloc, *wall; /* NULL: the model has no such type */
    member *members;                          /* in the order of their names */
    size_t count;
    uint64_t *values;   /* room for one number for each member */
    uint32_t *list;     /* room for the spans of one group */
    uint32_t *group_of; /* by span */
    bool *nested;       /* by span: an ancestor of the span is in the same group */
} maker;

/* The index after the last member of the group that begins at FIRST. */
static size_t end_of_group(const maker *maker, size_t first)
{
    size_t end = first + 1;
    while (end < maker->count && maker->members[end].name == maker->members[first].name)
        end++;
    return end;
}

/* Put the known values of the members into maker->values, and their sum, without nested spans, into
 * GROUP. Returns how many are known. */
static size_t find_values(const maker *maker, const member *members, size_t count, sp_group *group)
{
    size_t known = 0;
    for (size_t i = 0; i < count; i++) {
        const sp_model_span *span = &maker->model->spans[members[i].span];
        if (maker->type && sp_hides_total(maker->type, span))
            continue;
        maker->values[known++] = span->total_value;
        if (!maker->nested[members[i].span])
            sp_sum_add(&group->total_value, span->total_value);
    }
    return known;
}

static void find_alloc(const maker *maker, const member *members, size_t count, sp_group *group)
{
    for (size_t i = 0; maker->alloc && i < count; i++) {
        const sp_model_span *span = &maker->model->spans[members[i].span];
        if (sp_hides_total(maker->alloc, span))
            continue;
        group->known_alloc++;
        if (maker->nested[members[i].span])
            continue;
        sp_sum_add(&group->total_alloc, span->alloc_value);
        group->alloc_variance += span->alloc_variance;
    }
}

/* Find the sum of wall time and the time in a queue. Returns false when memory is short. */
static bool find_wall(const maker *maker, const member *members, size_t count, sp_group *group)
{
    sp_queued queued;
    if (!maker->wall)
        return true;
    for (size_t i = 0; i < count; i++) {
        const sp_model_span *span = &maker->model->spans[members[i].span];
        uint64_t wall = sp_where_sum(span->wall_ns);
        maker->list[i] = members[i].span;
        if (sp_hides_total(maker->wall, span) || (maker->wall->is_unlinked && !wall))
            continue;
        group->known_wall++;
        if (!maker->nested[members[i].span])
            sp_sum_add(&group->total_wall, wall);
    }
    bool done = sp_queued_sum(&queued, maker->model, maker->list, count, maker->nested);
    group->queued_ns = queued.queued_ns;
    return done;
}

static sp_group make_group(const maker *maker, const member *members, size_t count)
{
    sp_group group = {.name = members[0].name, .count = count};
    for (size_t i = 0; i < count; i++) {
        const sp_model_span *span = &maker->model->spans[members[i].span];
        maker->values[i] = span->end_ns - span->start_ns;
        group.errors += is_error(span);
        group.unsampled += span->is_unsampled;
        sp_sum_add(&group.samples, span->total_count);
    }
    group.duration = find_quantiles(maker->values, count);
    group.known = find_values(maker, members, count, &group);
    if (group.known)
        group.value = find_quantiles(maker->values, group.known);
    find_alloc(maker, members, count, &group);
    return group;
}

static bool find_nested(const maker *maker)
{
    uint32_t group = 0;
    for (uint32_t i = 0; i < maker->model->span_index.count; i++)
        maker->group_of[i] = SP_MODEL_NONE;
    for (size_t start = 0, end; start < maker->count; start = end, group++) {
        end = end_of_group(maker, start);
        for (size_t i = start; i < end; i++)
            maker->group_of[maker->members[i].span] = group;
    }
    return sp_groups_find_nested(maker->model, maker->group_of, group, maker->nested);
}

static void sort_groups(sp_groups *groups)
{
    static const size_t offsets[] = {[SP_GROUPS_BY_DURATION] = offsetof(sp_group, duration.sum),
                                     [SP_GROUPS_BY_VALUE] = offsetof(sp_group, total_value),
                                     [SP_GROUPS_BY_ALLOC] = offsetof(sp_group, total_alloc),
                                     [SP_GROUPS_BY_WALL] = offsetof(sp_group, total_wall),
                                     [SP_GROUPS_BY_QUEUE] = offsetof(sp_group, queued_ns)};
    size_t offset = offsets[groups->order];
    qsort_r(groups->items, groups->count, sizeof *groups->items, by_member, &offset);
}

static bool make_groups(sp_groups *groups, const maker *maker)
{
    bool done = true;
    for (size_t start = 0, end; done && start < maker->count; start = end) {
        const member *members = maker->members + start;
        sp_group *group = &groups->items[groups->count++];
        end = end_of_group(maker, start);
        *group = make_group(maker, members, end - start);
        done = find_wall(maker, members, end - start, group);
    }
    sort_groups(groups);
    return done;
}

static const sp_model_type *type_of(const sp_model *model, uint32_t number)
{
    return number == SP_MODEL_NONE ? NULL : &model->types[number];
}

bool sp_groups_make(sp_groups *groups, const sp_model *model, const uint32_t *list, size_t count,
                    sp_groups_order order)
{
    size_t spans = model->span_index.count + (size_t)1;
    maker maker = {.model = model,
                   .type = type_of(model, sp_model_time_type(model)),
                   .alloc = type_of(model, sp_model_alloc_type(model, true)),
                   .wall = type_of(model, sp_model_wall_type(model, true)),
                   .members = calloc(count + 1, sizeof *maker.members),
                   .count = count,
                   .values = calloc(count + 1, sizeof *maker.values),
                   .list = calloc(count + 1, sizeof *maker.list),
                   .group_of = malloc(spans * sizeof *maker.group_of),
                   .nested = calloc(spans, sizeof *maker.nested)};
    *groups = (sp_groups){.items = calloc(count + 1, sizeof *groups->items), .order = order};
    bool done = maker.members && maker.values && maker.list && maker.group_of && maker.nested &&
                groups->items;
    for (size_t i = 0; done && i < count; i++)
        maker.members[i] = (member){.name = model->spans[list[i]].name, .span = list[i]};
    if (done && count)
        qsort(maker.members, count, sizeof *maker.members, by_name);
    done = done && find_nested(&maker) && make_groups(groups, &maker);
    free(maker.members);
    free(maker.values);
    free(maker.list);
    free(maker.group_of);
    free(maker.nested);
    return done;
}

void sp_groups_deinit(sp_groups *groups)
{
    free(groups->items);
    *groups = (sp_groups){0};
}
