/* SPDX-License-Identifier: Apache-2.0 */
/* How far two measured rates differ, and how sure that is. docs/design/diff.md has the reasons.
 * Threads: any. */
#ifndef SP_TOOL_MODEL_STATISTICS_H
#define SP_TOOL_MODEL_STATISTICS_H

#include <stdbool.h>
#include <stddef.h>

/* A rate: EVENTS in EXPOSURE. Of a share, exposure is the number of all events. Both may be
 * fractions: events that come in clusters count as fewer. */
typedef struct sp_rate {
    double events, exposure;
    bool is_share; /* events <= exposure */
} sp_rate;

typedef struct sp_rate_change {
    double low, high; /* of B's rate less A's: the interval of the given level */
    double p;         /* how often chance alone makes a change at least as large */
} sp_rate_change;

/* LEVEL: 0.95. */
sp_rate_change sp_rate_compare(const sp_rate *a, const sp_rate *b, double level);

/* The interval of one rate. */
void sp_rate_interval(const sp_rate *rate, double level, double *low, double *high);

/* The quantile of the standard normal distribution, 0 < PROBABILITY < 1. */
double sp_normal_quantile(double probability);

/* P of COUNT questions that were asked at once, adjusted in place (Holm): at most one of 20 sets of
 * questions that all should be answered "no" has any below 0.05. False when memory is short. */
bool sp_adjust_probabilities(double *p, size_t count);

#endif
