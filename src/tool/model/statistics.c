/* SPDX-License-Identifier: Apache-2.0 */
#include "tool/model/statistics.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

/* ---- the normal distribution ---- */

static double normal_tail(double z)
{
    return erfc(z / M_SQRT2) / 2;
}

/* By bisection. This is fast enough, because each question of a comparison needs only a few
 * calls. */
double sp_normal_quantile(double probability)
{
    double low = -40, high = 40;
    for (int i = 0; i < 200; i++) {
        double middle = (low + high) / 2;
        if (normal_tail(-middle) < probability)
            low = middle;
        else
            high = middle;
    }
    return (low + high) / 2;
}

/* ---- exact tails ---- */

/* The probabilities of 0, 1, 2 … successes. The ratio of each probability to the one before is easy
 * to compute. */
typedef struct distribution {
    /* hypergeometric: the contents of an urn, and draws from it */
    double successes, failures, draws;
    bool is_binomial;
    double odds; /* binomial: the odds of a success */
} distribution;

/* The probability of N + 1 successes divided by that of N. */
static double ratio(const distribution *of, double n)
{
    if (of->is_binomial)
        return (of->draws - n) / (n + 1) * of->odds;
    return (of->successes - n) * (of->draws - n) / ((n + 1) * (of->failures - of->draws + n + 1));
}

static double log_choose(double n, double k)
{
    return lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1);
}

static double probability_of(const distribution *of, double n)
{
    if (of->is_binomial)
        return exp(log_choose(of->draws, n) + n * log(of->odds) - of->draws * log1p(of->odds));
    return exp(log_choose(of->successes, n) + log_choose(of->failures, of->draws - n) -
               log_choose(of->successes + of->failures, of->draws));
}

/* The sum of the probabilities from N on in DIRECTION, 1 or -1. It ends when further terms are too
 * small to change the sum. */
static double tail(const distribution *of, double n, int direction)
{
    double term = probability_of(of, n), sum = term;
    for (int i = 0; i < 1000000 && term > sum * DBL_EPSILON; i++, n += direction) {
        term *= direction > 0 ? ratio(of, n) : 1 / ratio(of, n - 1);
        if (!isfinite(term) || term <= 0)
            break;
        sum += term;
    }
    return sum < 1 ? sum : 1;
}

static double two_sided(const distribution *of, double n, double lowest, double highest)
{
    double up = n <= lowest ? 1 : tail(of, n, 1), down = n >= highest ? 1 : tail(of, n, -1);
    double smaller = up < down ? up : down;
    return smaller < 0.5 ? 2 * smaller : 1;
}

/* Fisher's exact test: given the number of events and the sizes of both sides, how probable is B's
 * number of events. */
static double p_of_shares(const sp_rate *a, const sp_rate *b)
{
    double events_a = floor(a->events), events_b = floor(b->events);
    double all_a = floor(a->exposure), all_b = floor(b->exposure), events = events_a + events_b;
    const distribution urn = {
        .successes = events, .failures = all_a + all_b - events, .draws = all_b};
    double lowest = fmax(0, all_b - urn.failures), highest = fmin(events, all_b);
    return two_sided(&urn, events_b, lowest, highest);
}

/* The exact binomial test: given the sum of events, each belongs to B with odds equal to the
 * exposure of B divided by that of A. */
static double p_of_rates(const sp_rate *a, const sp_rate *b)
{
    double events = floor(a->events) + floor(b->events);
    const distribution coin = {
        .draws = events, .is_binomial = true, .odds = b->exposure / a->exposure};
    return two_sided(&coin, floor(b->events), 0, events);
}

/* ---- intervals ---- */

/* The estimate of RATE after MORE events are added, and for a share also MORE of the other outcome.
 * With this, an interval has about its level of confidence even for few events or none: Agresti and
 * Coull; Agresti and Caffo for the difference of two. At the level 0.95 MORE is about 2, and about
 * 1 for a difference. */
static void adjusted(const sp_rate *rate, double more, double *center, double *variance)
{
    double exposure = rate->exposure + (rate->is_share ? 2 * more : 0);
    *center = (rate->events + more) / exposure;
    *variance = (rate->is_share ? *center * (1 - *center) : *center) / exposure;
}

void sp_rate_interval(const sp_rate *rate, double level, double *low, double *high)
{
    double z = sp_normal_quantile((1 + level) / 2), center, variance;
    adjusted(rate, z * z / 2, &center, &variance);
    *low = fmax(0, center - z * sqrt(variance));
    *high = center + z * sqrt(variance);
    if (rate->is_share)
        *high = fmin(1, *high);
}

sp_rate_change sp_rate_compare(const sp_rate *a, const sp_rate *b, double level)
{
    double z = sp_normal_quantile((1 + level) / 2);
    double center_a, center_b, variance_a, variance_b;
    adjusted(a, z * z / 4, &center_a, &variance_a);
    adjusted(b, z * z / 4, &center_b, &variance_b);
    double half = z * sqrt(variance_a + variance_b);
    sp_rate_change change = {.low = center_b - center_a - half, .high = center_b - center_a + half};
    change.p = a->is_share ? p_of_shares(a, b) : p_of_rates(a, b);
    return change;
}

/* ---- many questions ---- */

typedef struct place {
    double p;
    size_t at;
} place;

static int compare_places(const void *a, const void *b)
{
    double x = ((const place *)a)->p, y = ((const place *)b)->p;
    return x < y ? -1 : x > y;
}

bool sp_adjust_probabilities(double *p, size_t count)
{
    place *order = malloc((count + 1) * sizeof *order);
    if (!order)
        return false;
    for (size_t i = 0; i < count; i++)
        order[i] = (place){p[i], i};
    qsort(order, count, sizeof *order, compare_places);
    double largest = 0;
    for (size_t i = 0; i < count; i++) {
        largest = fmax(largest, fmin(1, order[i].p * (double)(count - i)));
        p[order[i].at] = largest;
    }
    free(order);
    return true;
}
