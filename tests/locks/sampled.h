/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of one program share that runs without libspanprof-preload.so, with it, and with
 * it (LOCKS_SAMPLED=1) while every wait is sampled. Included after cmocka.h. */
#ifndef TESTS_LOCKS_SAMPLED_H
#define TESTS_LOCKS_SAMPLED_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#include <spanprof/spanprof.h>

static inline bool is_sampled(void)
{
    return getenv("LOCKS_SAMPLED") != NULL;
}

static inline uint64_t sampled_calls(void)
{
    spanprof_stats stats = SPANPROF_STATS_INIT;
    if (!is_sampled())
        return 0;
    assert_int_equal(spanprof_flush(UINT64_MAX), SPANPROF_OK);
    spanprof_stats_get(&stats);
    assert_int_equal(stats.dropped_calls, 0);
    return stats.calls_linked + stats.calls_none + stats.calls_unknown;
}

static inline int start_sampling(void)
{
    spanprof_options options = SPANPROF_OPTIONS_INIT;
    options.exporter = "none";
    options.profiles = "lock";
    options.lock_ns = 1;
    return spanprof_start(&options, NULL) == SPANPROF_OK ? 0 : -1;
}

static inline int start(void **state)
{
    (void)state;
    return is_sampled() ? start_sampling() : 0;
}

static inline int stop(void **state)
{
    (void)state;
    return !is_sampled() || spanprof_stop(UINT64_MAX) == SPANPROF_OK ? 0 : -1;
}

/* A time that no test waits for. */
static inline struct timespec far(clockid_t clock)
{
    struct timespec time;
    clock_gettime(clock, &time);
    time.tv_sec += 3600;
    return time;
}

#endif
