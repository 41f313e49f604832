/* SPDX-License-Identifier: Apache-2.0 */
/* Samples of one request are not independent of each other. So statistics count *clusters*: a
 * cluster is all samples of one request, or a single event that belongs to no request
 * (docs/design/diff.md). */
#ifndef SP_TOOL_MODEL_CLUSTERS_H
#define SP_TOOL_MODEL_CLUSTERS_H

#include "tool/model/select.h"

/* Fewer requests than this do not show how much requests differ: then each event is a cluster. */
enum { SP_CLUSTERS_LEAST = 10 };

/* A sample and the request that it belongs to; SP_MODEL_NONE: to none. */
typedef struct sp_clustered {
    uint32_t cluster, sample;
} sp_clustered;

typedef struct sp_clusters {
    const sp_model *model;
    sp_clustered *list; /* sorted by cluster */
    uint32_t count;
    uint64_t requests; /* requests that have samples */
} sp_clusters;

/* The functions that are called for each sample, and at the end of each cluster. */
typedef struct sp_cluster_visitor {
    void *state;
    void (*add)(void *state, uint32_t sample, double value);
    /* There are TIMES clusters like this one. CHANCE: how many of them, on average, would be
     * missing or there once more if the program allocated the same again; it is less than TIMES
     * when the sampling takes such blocks almost always. */
    void (*end)(void *state, double times, double chance);
} sp_cluster_visitor;

/* List the selected samples. ONLY_LINKED: without those that belong to no request. Returns false
 * when memory is short. Free CLUSTERS by sp_clusters_deinit in any case. */
bool sp_clusters_make(sp_clusters *clusters, const sp_selection *selection, bool only_linked);
void sp_clusters_deinit(sp_clusters *clusters);
/* Call VISITOR for each sample and at the end of each cluster. Returns the sum, over all events, of
 * the squared value of an event. */
double sp_clusters_visit(const sp_clusters *clusters, const sp_cluster_visitor *visitor);

#endif
