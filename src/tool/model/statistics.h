/* SPDX-License-Identifier: Apache-2.0 */
/* How much two measured rates differ, and how certain this is. docs/design/diff.md has the reasons.
 * Threads: any. */
#ifndef SP_TOOL_MODEL_STATISTICS_H
#define SP_TOOL_MODEL_STATISTICS_H

#include <stdbool.h>
#include <stddef.h>

/* A rate is `events` divided by `exposure`. For a share, `exposure` is the number of all events.
 * Both may be fractions, because events that come in clusters count as fewer. */
typedef struct sp_rate {
    double events, exposure;
    bool is_share; /* events <= exposure */
} sp_rate;

typedef struct sp_rate_change {
    double low, high; /* the interval, at the given level, of B's rate minus A's */
    double p;         /* how often chance alone makes a change that is at least as large */
} sp_rate_change;

/* LEVEL is the probability that the interval contains the true value, such as 0.95. */
sp_rate_change sp_rate_compare(const sp_rate *a, const sp_rate *b, double level);

/* The interval of one rate. */
void sp_rate_interval(const sp_rate *rate, double level, double *low, double *high);

/* The quantile of the standard normal distribution, 0 < PROBABILITY < 1. */
double sp_normal_quantile(double probability);

/* Adjust P, the probabilities of COUNT questions that are answered together, in place by Holm's
 * method. If the true answer to all questions of a set is "no", at most one of 20 such sets has an
 * adjusted probability below 0.05. Returns false when memory is short. */
bool sp_adjust_probabilities(double *p, size_t count);

#endif
