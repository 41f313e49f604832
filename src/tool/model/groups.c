/* SPDX-License-Identifier: Apache-2.0 */
#include "tool/model/groups.h"

#include <stdlib.h>
#include <string.h>

#include "tool/model/hidden.h"
#include "tool/model/sum.h"

/* What is sorted: a span's number beside its group. */
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

static int by_duration_sum(const void *a, const void *b)
{
    const sp_group *x = a, *y = b;
    if (x->duration.sum != y->duration.sum)
        return x->duration.sum > y->duration.sum ? -1 : 1;
    return strcmp(x->name, y->name);
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

/* Put what is known into VALUES, and return how many these are. */
static size_t find_values(const sp_model *model, const member *members, size_t count,
                          uint64_t *values)
{
    uint32_t type = sp_model_time_type(model);
    size_t known = 0;
    for (size_t i = 0; i < count; i++) {
        const sp_model_span *span = &model->spans[members[i].span];
        if (type == SP_MODEL_NONE || !sp_hides_total(&model->types[type], span))
            values[known++] = span->total_value;
    }
    return known;
}

/* VALUES: room for COUNT numbers. */
static sp_group make_group(const sp_model *model, const member *members, size_t count,
                           uint64_t *values)
{
    sp_group group = {.name = members[0].name, .count = count};
    for (size_t i = 0; i < count; i++) {
        const sp_model_span *span = &model->spans[members[i].span];
        values[i] = span->end_ns - span->start_ns;
        group.errors += is_error(span);
        sp_sum_add(&group.samples, span->total_count);
    }
    group.duration = find_quantiles(values, count);
    group.known = find_values(model, members, count, values);
    if (group.known)
        group.value = find_quantiles(values, group.known);
    return group;
}

static void make_groups(sp_groups *groups, const sp_model *model, const member *members,
                        size_t count, uint64_t *values)
{
    for (size_t start = 0, end; start < count; start = end) {
        for (end = start + 1; end < count && members[end].name == members[start].name;)
            end++;
        groups->items[groups->count++] = make_group(model, members + start, end - start, values);
    }
    qsort(groups->items, groups->count, sizeof *groups->items, by_duration_sum);
}

bool sp_groups_make(sp_groups *groups, const sp_model *model, const uint32_t *list, size_t count)
{
    member *members = calloc(count + 1, sizeof *members);
    uint64_t *values = calloc(count + 1, sizeof *values);
    *groups = (sp_groups){.items = calloc(count + 1, sizeof *groups->items)};
    bool done = members && values && groups->items;
    for (size_t i = 0; done && i < count; i++)
        members[i] = (member){.name = model->spans[list[i]].name, .span = list[i]};
    if (done && count) {
        qsort(members, count, sizeof *members, by_name);
        make_groups(groups, model, members, count, values);
    }
    free(members);
    free(values);
    return done;
}

void sp_groups_deinit(sp_groups *groups)
{
    free(groups->items);
    *groups = (sp_groups){0};
}
