/* SPDX-License-Identifier: Apache-2.0 */
#include "tool/model/clusters.h"

#include <stdlib.h>

/* The request that SAMPLE belongs to: the local root of its span. A link to a span that the files
 * do not have counts as a request of its own. */
static uint32_t cluster_of(const sp_model *model, const sp_model_sample *sample)
{
    if (sample->link == 0)
        return SP_MODEL_NONE;
    uint32_t span = sp_model_link_span(model, sample->link);
    return span == SP_MODEL_NONE ? model->span_index.count + sample->link
                                 : sp_model_local_root(model, span);
}

static int compare_clusters(const void *a, const void *b)
{
    uint32_t x = ((const sp_clustered *)a)->cluster, y = ((const sp_clustered *)b)->cluster;
    return x < y ? -1 : x > y;
}

static void list_samples(sp_clusters *clusters, const sp_selection *selection, bool only_linked)
{
    const sp_model *model = clusters->model;
    for (uint32_t i = 0; i < model->sample_index.count; i++) {
        const sp_model_sample *sample = &model->samples[i];
        if (!sp_selection_has(selection, sample) || (only_linked && sample->link == 0))
            continue;
        clusters->list[clusters->count++] = (sp_clustered){cluster_of(model, sample), i};
    }
    qsort(clusters->list, clusters->count, sizeof *clusters->list, compare_clusters);
}

static bool starts_cluster(const sp_clusters *clusters, uint32_t i)
{
    return i == 0 || clusters->list[i].cluster != clusters->list[i - 1].cluster;
}

bool sp_clusters_make(sp_clusters *clusters, const sp_selection *selection, bool only_linked)
{
    const sp_model *model = selection->model;
    *clusters = (sp_clusters){.model = model};
    clusters->list = malloc((model->sample_index.count + (size_t)1) * sizeof *clusters->list);
    if (!clusters->list)
        return false;
    list_samples(clusters, selection, only_linked);
    for (uint32_t i = 0; i < clusters->count; i++)
        clusters->requests +=
            clusters->list[i].cluster != SP_MODEL_NONE && starts_cluster(clusters, i);
    return true;
}

void sp_clusters_deinit(sp_clusters *clusters)
{
    free(clusters->list);
    *clusters = (sp_clusters){0};
}

double sp_clusters_visit(const sp_clusters *clusters, const sp_cluster_visitor *visitor)
{
    bool by_request = clusters->requests >= SP_CLUSTERS_LEAST;
    double squares = 0;
    for (uint32_t i = 0; i < clusters->count; i++) {
        const sp_clustered *item = &clusters->list[i];
        const sp_model_sample *sample = &clusters->model->samples[item->sample];
        double events = sample->count ? (double)sample->count : 1;
        double one = (double)sample->value / events;
        bool is_event = !by_request || item->cluster == SP_MODEL_NONE;
        squares += events * one * one;
        visitor->add(visitor->state, item->sample, is_event ? one : (double)sample->value);
        if (is_event)
            visitor->end(visitor->state, events,
                         events * sp_model_miss_chance(clusters->model, item->sample));
        else if (i + 1 == clusters->count || starts_cluster(clusters, i + 1))
            visitor->end(visitor->state, 1, 1);
    }
    return squares;
}
