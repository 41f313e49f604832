/* SPDX-License-Identifier: Apache-2.0 */
/* The statistical errors of the shares of a tree's frames (docs/design/diff.md). */
#include <stdlib.h>

#include "tool/draw/flame.h"
#include "tool/model/compare.h"
#include "tool/model/sum.h"

typedef struct summing {
    sp_flame_tree *tree;
    double *values;   /* by node: its value in the cluster that is being added up */
    uint32_t *listed; /* the nodes that the cluster has */
    uint32_t count;   /* of listed */
    double whole;     /* the value of the cluster */
} summing;

static void add_path(void *context, uint32_t sample, double value)
{
    summing *state = context;
    const sp_model *model = state->tree->selection->model;
    double samples = (double)model->samples[sample].count;
    double variance = sp_model_sampling_variance(model, sample);
    uint32_t node = value > 0 ? state->tree->ends[sample] : SP_MODEL_NONE;
    for (; node != SP_MODEL_NONE; node = state->tree->nodes[node].parent) {
        if (state->values[node] == 0)
            state->listed[state->count++] = node;
        state->values[node] += value;
        state->tree->sums[node].samples += samples;
        state->tree->sums[node].variance += variance;
    }
    state->tree->whole.all.variance += variance;
    state->whole += value;
}

static void end_cluster(void *context, double times, double chance)
{
    summing *state = context;
    for (uint32_t i = 0; i < state->count; i++) {
        uint32_t node = state->listed[i];
        sp_function_sum_add(&state->tree->sums[node], state->values[node], state->whole, times,
                            chance);
        state->values[node] = 0;
    }
    sp_function_sum_add(&state->tree->whole.all, state->whole, state->whole, times, chance);
    state->count = 0;
    state->whole = 0;
}

/* Move the end of each sample to its last frame that is shown, because frames that are not drawn
 * need no sums. Parents come before their children in the array. */
static bool shorten_ends(sp_flame_tree *tree, double percent)
{
    const sp_model *model = tree->selection->model;
    double minimum = (double)tree->nodes[0].value * percent / 100;
    uint32_t *shown = malloc((tree->count + (size_t)1) * sizeof *shown);
    for (uint32_t i = 0; shown && i < tree->count; i++) {
        const sp_flame_node *node = &tree->nodes[i];
        bool is_shown = i == 0 || (double)node->value >= minimum;
        shown[i] = is_shown ? i : shown[node->parent];
    }
    for (uint32_t i = 0; shown && i < model->sample_index.count; i++)
        if (sp_selection_has(tree->selection, &model->samples[i]))
            tree->ends[i] = shown[tree->ends[i]];
    free(shown);
    return shown != NULL;
}

/* Sum up what each node waited for, by class. */
static bool sum_where(sp_flame_tree *tree)
{
    const sp_model *model = tree->selection->model;
    if (!model->types[tree->selection->type].has_waiting_samples)
        return true;
    tree->where_ns = calloc((size_t)tree->count * SP_WHERE_COUNT, sizeof *tree->where_ns);
    for (uint32_t i = 0; tree->where_ns && i < model->sample_index.count; i++) {
        const sp_model_sample *sample = &model->samples[i];
        if (!sp_selection_has(tree->selection, sample))
            continue;
        for (uint32_t n = tree->ends[i]; n != SP_MODEL_NONE; n = tree->nodes[n].parent)
            sp_sum_add(&tree->where_ns[(size_t)n * SP_WHERE_COUNT + sample->where], sample->value);
    }
    return tree->where_ns != NULL;
}

bool sp_flame_shares(sp_flame_tree *tree, double percent)
{
    sp_clusters clusters;
    bool done = shorten_ends(tree, percent);
    done = sp_clusters_make(&clusters, tree->selection, false) && done;
    size_t room = (size_t)tree->count + 1;
    summing state = {.tree = tree,
                     .values = calloc(room, sizeof *state.values),
                     .listed = malloc(room * sizeof *state.listed)};
    tree->sums = calloc(room, sizeof *tree->sums);
    done = done && state.values && state.listed && tree->sums;
    if (done) {
        const sp_cluster_visitor visitor = {&state, add_path, end_cluster};
        tree->whole.clusters = clusters.requests;
        tree->whole.unseen_event = tree->selection->model->types[tree->selection->type].draw_period;
        tree->whole.event_squares = sp_clusters_visit(&clusters, &visitor);
    }
    sp_clusters_deinit(&clusters);
    free(state.values);
    free(state.listed);
    return done && sum_where(tree);
}

bool sp_flame_interval(const sp_flame_tree *tree, const sp_flame_node *node, double *low,
                       double *high)
{
    return sp_share_interval(&tree->whole, &tree->sums[node - tree->nodes], low, high);
}
