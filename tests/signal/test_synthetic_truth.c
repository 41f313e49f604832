/* SPDX-License-Identifier: Apache-2.0 */
/* The join under ThreadSanitizer: real rings, collector, builder and file, but ticks that the
 * threads take themselves, so that the number of samples under each span is known exactly. Each
 * thread counts what it did; the file must say the same. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <spanprof/spanprof.h>
#include "cpu/cpu_engine.h"
#include "signal/synthetic_run.h"

enum { THREADS = 8, ROUNDS = 3000 };

/* Ticks by the thread whose span they must link to, and ticks that must link to none. */
static uint64_t expected[THREADS], expected_none[THREADS];

static spanprof_span start_span(int thread, bool sampled)
{
    spanprof_context parent = {.remote = 1, .trace_flags = sampled};
    memset(parent.trace_id, 0x10 + thread, sizeof parent.trace_id);
    memset(parent.span_id, 1, sizeof parent.span_id);
    spanprof_span_options options = SPANPROF_SPAN_OPTIONS_INIT;
    options.parent = &parent;
    return spanprof_span_start(NULL, "synthetic", &options);
}

/* Rings are finite, and these ticks come faster than any clock's: wait for the collector where it
 * is slow. */
static void wait_for_room(void)
{
    const sp_ring *ring = &sp_thread_self_create()->tick.ring;
    while (sp_load_relaxed(&ring->head) - sp_load_relaxed(&ring->tail) > ring->size / 2)
        usleep(1000);
}

static void tick(uint64_t *counter, uint32_t periods)
{
    wait_for_room();
    sp_engine_tick_here(periods);
    *counter += periods;
}

static void *work(void *argument)
{
    int thread = (int)(intptr_t)argument;
    spanprof_scope first = spanprof_context_attach(NULL); /* registers the thread */
    spanprof_scope_detach(&first);
    for (int round = 0; round < ROUNDS; round++) {
        spanprof_span span = start_span(thread, true), unsampled = start_span(thread, false);
        spanprof_scope outer = spanprof_span_attach(span);
        tick(&expected[thread], 1 + (uint32_t)round % 3);
        spanprof_scope inner = spanprof_span_attach(unsampled);
        tick(&expected_none[thread], 1);
        if (round % 2)
            spanprof_scope_detach(&outer);
        spanprof_scope_detach(&inner);
        tick(round % 2 ? &expected_none[thread] : &expected[thread], 1);
        spanprof_scope_detach(&outer);
        spanprof_span_end(span);
        spanprof_span_end(unsampled);
        tick(&expected_none[thread], 2);
    }
    return NULL;
}

/* Ticks, as the file tells them. */
typedef struct found_ticks {
    uint64_t by_thread[THREADS], none;
} found_ticks;

static void add_profiles(const Sp__Profiles__ProfilesData *data, void *user)
{
    found_ticks *found = user;
    const Sp__Profiles__Profile *profile =
        data->resource_profiles[0]->scope_profiles[0]->profiles[0];
    for (size_t i = 0; i < profile->n_samples; i++) {
        const Sp__Profiles__Sample *sample = profile->samples[i];
        const Sp__Profiles__Link *link = data->dictionary->link_table[sample->link_index];
        if (sample->link_index == 0) {
            found->none += (uint64_t)sample->values[0];
            continue;
        }
        assert_int_equal(link->trace_id.len, 16);
        assert_in_range(link->trace_id.data[0], 0x10, 0x10 + THREADS - 1);
        found->by_thread[link->trace_id.data[0] - 0x10] += (uint64_t)sample->values[0];
    }
}

static void synthetic_ticks_link_to_the_span_they_fell_in(void **state)
{
    (void)state;
    synthetic_run run;
    spanprof_options options = SPANPROF_OPTIONS_INIT;
    synthetic_start(&run, &options);
    synthetic_threads(THREADS, work);
    uint64_t expected_all_none = 0;
    found_ticks found = {0};
    spanprof_stats stats = synthetic_stop(&run, add_profiles, &found);
    assert_int_equal(stats.samples_unknown, 0);
    if (!run.is_complete)
        return;
    assert_int_equal(stats.exported_samples, stats.ticks);
    assert_int_equal(stats.ticks, (uint64_t)THREADS * ROUNDS * 4);
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(found.by_thread[i], expected[i]);
        expected_all_none += expected_none[i];
    }
    assert_int_equal(found.none, expected_all_none);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(synthetic_ticks_link_to_the_span_they_fell_in),
    };
    return verdict_code(cmocka_run_group_tests(tests, NULL, NULL));
}
