/* SPDX-License-Identifier: Apache-2.0 */
#include "tool/model/functions.h"

#include <stdlib.h>
#include <string.h>

/* The values of one function in the cluster that is being added up. */
typedef struct in_cluster {
    double total, self;
    uint32_t last_stack; /* the last sample that has the function, plus 1: a stack counts once */
    bool is_listed;
} in_cluster;

typedef struct summing {
    sp_functions *functions;
    in_cluster *values; /* by string number */
    uint32_t *listed;   /* string numbers of the cluster's functions */
    uint32_t listed_count;
    double whole; /* the value of the cluster */
} summing;

/* ---- sums ---- */

void sp_function_sum_add(sp_function_sum *sum, double value, double whole, double times,
                         double chance)
{
    sum->value += times * value;
    sum->squares += chance * value * value;
    sum->cross += chance * value * whole;
}

/* Add VALUE of the sample NUMBER to each function of its stack. */
static void add_stack(void *context, uint32_t number, double value)
{
    summing *state = context;
    sp_functions *functions = state->functions;
    const sp_model *model = functions->model;
    double samples = (double)model->samples[number].count;
    double variance = sp_model_sampling_variance(model, number);
    const sp_intern_entry *stack = &model->stacks.entries[model->samples[number].stack];
    const uint32_t *frames = stack->key;
    uint32_t depth = stack->length / sizeof *frames;
    for (uint32_t i = 0; i < depth; i++) {
        in_cluster *function = &state->values[frames[i]];
        if (!function->is_listed)
            state->listed[state->listed_count++] = frames[i];
        function->is_listed = true;
        if (i == 0) {
            function->self += value;
            functions->self[frames[i]].samples += samples;
            functions->self[frames[i]].variance += variance;
        }
        if (function->last_stack != number + 1) {
            function->total += value;
            functions->total[frames[i]].samples += samples;
            functions->total[frames[i]].variance += variance;
        }
        function->last_stack = number + 1;
    }
    functions->all.variance += variance;
    state->whole += value;
}

/* Called when all samples of a cluster are added. The cluster counts TIMES times. */
static void end_cluster(void *context, double times, double chance)
{
    summing *state = context;
    sp_functions *functions = state->functions;
    for (uint32_t i = 0; i < state->listed_count; i++) {
        uint32_t string = state->listed[i];
        in_cluster *function = &state->values[string];
        sp_function_sum_add(&functions->total[string], function->total, state->whole, times,
                            chance);
        sp_function_sum_add(&functions->self[string], function->self, state->whole, times, chance);
        *function = (in_cluster){0};
    }
    sp_function_sum_add(&functions->all, state->whole, state->whole, times, chance);
    state->listed_count = 0;
    state->whole = 0;
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
                                .unseen_event = model->types[selection->type].draw_period,
                                .requests = count_requests(selection),
                                .seconds = count_seconds(selection)};
    summing state = {.functions = functions,
                     .values = calloc(strings, sizeof *state.values),
                     .listed = malloc(strings * sizeof *state.listed)};
    sp_clusters clusters;
    bool done = sp_clusters_make(&clusters, selection, only_linked);
    done = done && functions->total && functions->self && state.values && state.listed;
    if (done) {
        const sp_cluster_visitor visitor = {&state, add_stack, end_cluster};
        functions->clusters = clusters.requests;
        functions->event_squares = sp_clusters_visit(&clusters, &visitor);
    }
    sp_clusters_deinit(&clusters);
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
