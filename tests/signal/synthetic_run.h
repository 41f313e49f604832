/* SPDX-License-Identifier: Apache-2.0 */
/* A run under ticks that threads take themselves, which leaves a file of profiles. After cmocka.h.
 */
#ifndef TESTS_SIGNAL_SYNTHETIC_RUN_H
#define TESTS_SIGNAL_SYNTHETIC_RUN_H

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <spanprof/spanprof.h>
#include "sdk/synthetic.h"
#include "signal/profiles_file.h"
#include "verdict.h"

typedef struct synthetic_run {
    char directory[64], prefix[80];
    bool is_complete; /* after the stop: nothing was dropped, so all is in the file */
} synthetic_run;

/* Starts the SDK with OPTIONS, of which what makes the file and the rings is set here. */
static inline void synthetic_start(synthetic_run *run, spanprof_options *options)
{
    snprintf(run->directory, sizeof run->directory, "/tmp/spanprof-synthetic-XXXXXX");
    assert_non_null(mkdtemp(run->directory));
    snprintf(run->prefix, sizeof run->prefix, "%s/p", run->directory);
    options->exporter = "file";
    options->file = run->prefix;
    options->file_format = "proto";
    options->window_ms = 300;
    options->cpu_hz = 10000;        /* makes the rings large */
    options->max_samples = 1000000; /* each span's link is looked for */
    sp_sdk_use_synthetic_ticks();
    assert_int_equal(spanprof_start(options, NULL), SPANPROF_OK);
}

/* COUNT threads, each with its number. */
static inline void synthetic_threads(int count, void *(*work)(void *))
{
    pthread_t threads[64];
    assert_in_range(count, 1, 64);
    for (int i = 0; i < count; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, work, (void *)(intptr_t)i), 0); // NOLINT
    for (int i = 0; i < count; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
}

/* Threads wait for room in their rings, so no ring is full. A collector or a disk that is too slow
 * may drop a window, and counts that. */
static inline bool synthetic_is_complete(const spanprof_stats *stats)
{
    uint64_t windows = stats->dropped_exports_queue_full + stats->dropped_exports_refused;
    assert_int_equal(stats->dropped_samples_ring_full, 0);
    if (stats->dropped_samples_memory == 0 && windows == 0)
        return true;
    verdict_unsure("%llu samples and %llu windows were dropped, and counted",
                   (unsigned long long)stats->dropped_samples_memory, (unsigned long long)windows);
    return false;
}

/* Stops the SDK, calls TELL with each message of the file, and removes it. Returns the statistics.
 */
static inline spanprof_stats synthetic_stop(synthetic_run *run, profiles_function *tell, void *user)
{
    char path[sizeof run->prefix + 20];
    spanprof_stats stats = SPANPROF_STATS_INIT;
    assert_int_equal(spanprof_stop(UINT64_C(60000000000)), SPANPROF_OK);
    spanprof_stats_get(&stats);
    run->is_complete = synthetic_is_complete(&stats);
    snprintf(path, sizeof path, "%s.profiles.binpb", run->prefix);
    profiles_file_each(path, tell, user);
    unlink(path);
    snprintf(path, sizeof path, "%s.traces.binpb", run->prefix);
    unlink(path);
    rmdir(run->directory);
    return stats;
}

#endif
