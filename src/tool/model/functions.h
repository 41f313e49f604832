/* SPDX-License-Identifier: Apache-2.0 */
/* What each function has of a selection: the value of the stacks that contain it, and the value of
 * those where it is the leaf.
 *
 * Samples of one request come together, so they are not independent. So for each function there are
 * also the sums over *clusters*: the samples of one request, or a single event that belongs to
 * none. They give the error of its sum (docs/design/diff.md). */
#ifndef SP_TOOL_MODEL_FUNCTIONS_H
#define SP_TOOL_MODEL_FUNCTIONS_H

#include "tool/model/clusters.h"

typedef struct sp_function_sum {
    double value;   /* in the type's unit */
    double squares; /* over clusters: the function's value in it, squared */
    double cross;   /* over clusters: the function's value times the whole cluster's */
    double samples; /* how many were taken of it, whatever each stands for */
} sp_function_sum;

/* The arrays are indexed by string number: a function is its name. */
typedef struct sp_functions {
    const sp_model *model;
    sp_function_sum *total; /* the function is somewhere in the stack */
    sp_function_sum *self;  /* it is the leaf */
    sp_function_sum all;
    double event_squares; /* over events: the value of one, squared */
    uint64_t requests;    /* spans that match, or local roots; with samples or without */
    uint64_t clusters;    /* requests that have samples */
    double seconds;       /* from the first profile of the type to the end of the last */
} sp_functions;

/* Add TIMES clusters in which the function has VALUE of WHOLE. */
void sp_function_sum_add(sp_function_sum *sum, double value, double whole, double times);

/* ONLY_LINKED: without samples that belong to no request. False when memory is short; FUNCTIONS is
 * to be freed in any case. */
bool sp_functions_sum(sp_functions *functions, const sp_selection *selection, bool only_linked);
void sp_functions_deinit(sp_functions *functions);

#endif
