/* SPDX-License-Identifier: Apache-2.0 */
#include "tool/model/functions.h"

#include <stdlib.h>
#include <string.h>

/* A sample and the request it belongs to; SP_MODEL_NONE: to none. */
typedef struct clustered {
    uint32_t cluster, sample;
} clustered;

/* The values of one function in the cluster that is being added up. */
typedef struct in_cluster {
    double total, self;
    uint32_t last_stack; /* the sample it was last seen in, plus one: once a stack */
    bool is_listed;
} in_cluster;

typedef struct summing {
    sp_functions *functions;
    const sp_selection *selection;
    in_cluster *values; /* by string number */
    uint32_t *listed;   /* string numbers that the cluster has */
    uint32_t listed_count;
    double whole; /* the cluster's value */
} summing;

/* ---- clusters ---- */

/* Links to spans that the files do not have are requests of their own. */
static uint32_t cluster_of(const sp_model *model, const sp_model_sample *sample)
{
    if (sample->link == 0)
        return SP_MODEL_NONE;
    uint32_t span = sp_model_span_of_link(model, sp_intern_key(&model->links, sample->link));
    return span == SP_MODEL_NONE ? model->span_index.count + sample->link
                                 : sp_model_local_root(model, span);
}

static int compare_clusters(const void *a, const void *b)
{
    uint32_t x = ((const clustered *)a)->cluster, y = ((const clustered *)b)->cluster;
    return x < y ? -1 : x > y;
}

/* The selected samples by cluster, into LIST. Returns how many. */
static uint32_t list_samples(clustered *list, const sp_selection *selection, bool only_linked)
{
    const sp_model *model = selection->model;
    uint32_t count = 0;
    for (uint32_t i = 0; i < model->sample_index.count; i++) {
        const sp_model_sample *sample = &model->samples[i];
        if (!sp_selection_has(selection, sample) || (only_linked && sample->link == 0))
            continue;
        list[count++] = (clustered){cluster_of(model, sample), i};
    }
    qsort(list, count, sizeof *list, compare_clusters);
    return count;
}

static uint64_t count_clusters(const clustered *list, uint32_t count)
{
    uint64_t clusters = 0;
    for (uint32_t i = 0; i < count; i++)
        clusters +=
            list[i].cluster != SP_MODEL_NONE && (i == 0 || list[i].cluster != list[i - 1].cluster);
    return clusters;
}

/* ---- sums ---- */

static void add_to(sp_function_sum *sum, double value, double whole, double times)
{
    sum->value += times * value;
    sum->squares += times * value * value;
    sum->cross += times * value * whole;
}

/* VALUE of SAMPLE for each function of its stack. */
static void add_stack(summing *state, uint32_t number, double value)
{
    const sp_model *model = state->functions->model;
    const sp_intern_entry *stack = &model->stacks.entries[model->samples[number].stack];
    const uint32_t *frames = stack->key;
    uint32_t depth = stack->length / sizeof *frames;
    for (uint32_t i = 0; i < depth; i++) {
        in_cluster *function = &state->values[frames[i]];
        if (!function->is_listed)
            state->listed[state->listed_count++] = frames[i];
        function->is_listed = true;
        if (i == 0)
            function->self += value;
        if (function->last_stack != number + 1)
            function->total += value;
        function->last_stack = number + 1;
    }
    state->whole += value;
}

/* The cluster is whole; there are TIMES like it. */
static void end_cluster(summing *state, double times)
{
    sp_functions *functions = state->functions;
    for (uint32_t i = 0; i < state->listed_count; i++) {
        uint32_t string = state->listed[i];
        in_cluster *function = &state->values[string];
        add_to(&functions->total[string], function->total, state->whole, times);
        add_to(&functions->self[string], function->self, state->whole, times);
        *function = (in_cluster){0};
    }
    add_to(&functions->all, state->whole, state->whole, times);
    state->listed_count = 0;
    state->whole = 0;
}

static void add_up(summing *state, const clustered *list, uint32_t count, bool by_request)
{
    const sp_model *model = state->functions->model;
    for (uint32_t i = 0; i < count; i++) {
        const sp_model_sample *sample = &model->samples[list[i].sample];
        double events = sample->count ? (double)sample->count : 1;
        double one = (double)sample->value / events;
        bool is_event = !by_request || list[i].cluster == SP_MODEL_NONE;
        state->functions->event_squares += events * one * one;
        add_stack(state, list[i].sample, is_event ? one : (double)sample->value);
        if (is_event)
            end_cluster(state, events);
        else if (i + 1 == count || list[i + 1].cluster != list[i].cluster)
            end_cluster(state, 1);
    }
}

/* ---- requests and time ---- */

static uint64_t count_requests(const sp_selection *selection)
{
    const sp_model *model = selection->model;
    uint64_t count = 0;
    if (selection->by_where)
        return selection->match_count;
    for (uint32_t i = 0; i < model->span_index.count; i++)
        count += sp_model_is_local_root(model, i) &&
                 sp_selection_takes_trace(selection, model->spans[i].id.trace_id);
    return count;
}

static double count_seconds(const sp_selection *selection)
{
    const sp_model *model = selection->model;
    uint64_t first = UINT64_MAX, last = 0;
    for (size_t i = 0; i < model->profile_count; i++) {
        const Sp__Profiles__Profile *profile = model->profiles[i].message;
        uint64_t end = profile->time_unix_nano + profile->duration_nano;
        if (model->profiles[i].type != selection->type)
            continue;
        first = profile->time_unix_nano < first ? profile->time_unix_nano : first;
        last = end > last ? end : last;
    }
    return last > first ? (double)(last - first) / 1e9 : 0;
}

bool sp_functions_sum(sp_functions *functions, const sp_selection *selection, bool only_linked)
{
    const sp_model *model = selection->model;
    size_t strings = model->strings.count + (size_t)1;
    *functions = (sp_functions){.model = model,
                                .total = calloc(strings, sizeof *functions->total),
                                .self = calloc(strings, sizeof *functions->self),
                                .requests = count_requests(selection),
                                .seconds = count_seconds(selection)};
    summing state = {.functions = functions,
                     .selection = selection,
                     .values = calloc(strings, sizeof *state.values),
                     .listed = malloc(strings * sizeof *state.listed)};
    clustered *list = malloc((model->sample_index.count + (size_t)1) * sizeof *list);
    bool done = functions->total && functions->self && state.values && state.listed && list;
    if (done) {
        uint32_t count = list_samples(list, selection, only_linked);
        functions->clusters = count_clusters(list, count);
        add_up(&state, list, count, functions->clusters >= SP_CLUSTERS_LEAST);
    }
    free(list);
    free(state.values);
    free(state.listed);
    return done;
}

void sp_functions_deinit(sp_functions *functions)
{
    free(functions->total);
    free(functions->self);
    *functions = (sp_functions){0};
}
