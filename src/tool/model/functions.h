/* SPDX-License-Identifier: Apache-2.0 */
/* What each function has of a selection: the value of the stacks that contain it, and the value of
 * the stacks where it is the leaf.
 *
 * Samples of one request are not independent of each other. So each function also has sums over
 * *clusters* (clusters.h), from which the error of its value is estimated (docs/design/diff.md). */
#ifndef SP_TOOL_MODEL_FUNCTIONS_H
#define SP_TOOL_MODEL_FUNCTIONS_H

#include "tool/model/clusters.h"

typedef struct sp_function_sum {
    double value;    /* in the type's unit */
    double squares;  /* over clusters: the function's value in the cluster, squared */
    double cross;    /* over clusters: the function's value times the cluster's value */
    double samples;  /* how many samples were taken, whatever each stands for */
    double variance; /* of the value, as far as the sampling makes it */
} sp_function_sum;

/* The arrays are indexed by the number of the function's name in the model's strings. */
typedef struct sp_functions {
    const sp_model *model;
    sp_function_sum *total; /* the function is somewhere in the stack */
    sp_function_sum *self;  /* the function is the leaf */
    sp_function_sum all;
    double event_squares; /* over events: the value of the event, squared */
    double unseen_event;  /* the least value that an event has; 0: unknown */
    uint64_t requests;    /* spans that match, or local roots, with or without samples */
    uint64_t clusters;    /* requests that have samples */
    double seconds;       /* from the first profile of the type to the end of the last */
} sp_functions;

/* Add TIMES clusters in which the function has VALUE, and all functions together have WHOLE. CHANCE
 * is as for sp_cluster_visitor. */
void sp_function_sum_add(sp_function_sum *sum, double value, double whole, double times,
                         double chance);

/* Fill FUNCTIONS with the sums of SELECTION. ONLY_LINKED: without samples that belong to no
 * request. Returns false when memory is short. Free FUNCTIONS by sp_functions_deinit in any
 * case. */
bool sp_functions_sum(sp_functions *functions, const sp_selection *selection, bool only_linked);
void sp_functions_deinit(sp_functions *functions);

#endif
