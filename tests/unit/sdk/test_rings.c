/* SPDX-License-Identifier: Apache-2.0 */
/* Rings between the threads that write them and the collector: which threads replace them, what a
 * corrupt one costs, and that they are drained while names are looked up. */
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <spanprof/spanprof.h>
#include "cpu/cpu_engine.h"
#include "sdk/synthetic.h"
#include "symbol/symbolizer.h"
#include "context/self.h"

#define SECOND UINT64_C(1000000000)

static _Thread_local bool is_application;
static _Atomic int replaced_by_application; /* in all tests of this program */

void __real_sp_ring_deinit(sp_ring *ring);
void __wrap_sp_ring_deinit(sp_ring *ring);
void __wrap_sp_ring_deinit(sp_ring *ring)
{
    if (is_application)
        atomic_fetch_add(&replaced_by_application, 1);
    __real_sp_ring_deinit(ring);
}

static void start(uint32_t hz)
{
    spanprof_options options = SPANPROF_OPTIONS_INIT;
    options.exporter = "none";
    options.cpu_hz = hz;
    sp_sdk_use_synthetic_ticks();
    assert_int_equal(spanprof_start(&options, NULL), SPANPROF_OK);
}

static int stop(void **state)
{
    (void)state;
    spanprof_stop(60 * SECOND);
    return 0;
}

static void attach_and_detach(void)
{
    spanprof_context context = {.trace_flags = SPANPROF_TRACE_FLAG_SAMPLED};
    memset(context.trace_id, 1, sizeof context.trace_id);
    memset(context.span_id, 1, sizeof context.span_id);
    spanprof_scope scope = spanprof_context_attach(&context);
    sp_engine_tick_here(1);
    spanprof_scope_detach(&scope);
}

/* As many that threads of the SDK, which take free slots as well, do not get them all. */
enum { THREADS = 16 };

typedef struct seen {
    uint32_t slot;
    uint64_t ring_bytes;
} seen;

static pthread_barrier_t all_attached;

static void *be_application(void *argument)
{
    seen *seen = argument;
    is_application = true;
    attach_and_detach();
    seen->slot = sp_self->slot;
    seen->ring_bytes = sp_self->tick.ring.size;
    pthread_barrier_wait(&all_attached);
    return NULL;
}

static void wait_until_free(uint32_t slot)
{
    while (sp_load_acquire(&sp_thread_by_slot(slot)->registered.life) == SP_THREAD_EXITED)
        usleep(1000);
}

/* Threads that have all been there at once, and whose slots are free. */
static void run_threads(seen seen[THREADS])
{
    pthread_t threads[THREADS];
    pthread_barrier_init(&all_attached, NULL, THREADS);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, be_application, &seen[i]), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < THREADS; i++)
        wait_until_free(seen[i].slot);
    pthread_barrier_destroy(&all_attached);
}

/* AFTER are threads in slots that BEFORE had, whose rings were too small for them. */
static void expect_larger_rings(const seen before[THREADS], const seen after[THREADS])
{
    int reused = 0;
    for (int i = 0; i < THREADS; i++) {
        for (int n = 0; n < THREADS; n++)
            reused += after[i].slot == before[n].slot;
        assert_true(after[i].ring_bytes > before[0].ring_bytes);
    }
    assert_true(reused > 0);
    assert_int_equal(atomic_load(&replaced_by_application), 0);
}

/* A thread of the application gets the slot, and with it the ring, of one that has ended. The
 * collector may be reading it. */
static void next_run_has_another_rate_application_threads_replace_no_ring(void **state)
{
    (void)state;
    seen before[THREADS], after[THREADS];
    start(10);
    run_threads(before);
    spanprof_stop(60 * SECOND);
    start(10000);
    run_threads(after);
    expect_larger_rings(before, after);
}

static void rate_changes_while_it_runs_application_threads_replace_no_ring(void **state)
{
    (void)state;
    seen before[THREADS], after[THREADS];
    start(10);
    attach_and_detach();
    uint64_t own_bytes = sp_self->tick.ring.size;
    run_threads(before);
    spanprof_set_rate(SPANPROF_PROFILE_CPU, 10000);
    assert_int_equal(spanprof_flush(60 * SECOND), SPANPROF_OK);
    run_threads(after);
    expect_larger_rings(before, after);
    assert_true(sp_self->tick.ring.size > own_bytes);
}

static void ring_is_corrupt_collector_skips_it_and_goes_on(void **state)
{
    (void)state;
    start(100);
    attach_and_detach();
    assert_int_equal(spanprof_flush(60 * SECOND), SPANPROF_OK);
    sp_record *record = sp_ring_reserve(&sp_self->tick.ring, 64);
    assert_non_null(record);
    *record = (sp_record){.size = 0, .kind = SP_RECORD_SAMPLE};
    sp_ring_commit(&sp_self->tick.ring, 64);
    assert_int_equal(spanprof_flush(60 * SECOND), SPANPROF_OK);
    attach_and_detach();
    assert_int_equal(spanprof_flush(60 * SECOND), SPANPROF_OK);
    spanprof_stats stats = SPANPROF_STATS_INIT;
    spanprof_stats_get(&stats);
    assert_int_equal(stats.samples_linked, 2);
    assert_int_equal(stats.corrupt_rings, 1);
}

/* --- while names are looked up ---------------------------------------------------------------- */

static sp_meanwhile given;          /* what the collector has the symbolizer do in between */
static _Atomic(sp_thread *) filled; /* whose ring the next symbolizer that rests waits for */
static sem_t arrived, released, drained;

void __real_sp_symbolizer_configure(sp_symbolizer *symbolizer,
                                    const sp_symbolizer_options *options);
void __wrap_sp_symbolizer_configure(sp_symbolizer *symbolizer,
                                    const sp_symbolizer_options *options);
void __wrap_sp_symbolizer_configure(sp_symbolizer *symbolizer, const sp_symbolizer_options *options)
{
    given = options->meanwhile;
    __real_sp_symbolizer_configure(symbolizer, options);
}

static bool is_drained(const sp_ring *ring)
{
    return sp_load_acquire(&ring->tail) == sp_load_acquire(&ring->head);
}

void __real_sp_symbolizer_rest(sp_symbolizer *symbolizer);
void __wrap_sp_symbolizer_rest(sp_symbolizer *symbolizer);
void __wrap_sp_symbolizer_rest(sp_symbolizer *symbolizer)
{
    sp_thread *thread = atomic_exchange(&filled, NULL);
    if (thread) {
        sem_post(&arrived);
        sem_wait(&released);
        while (!is_drained(&thread->tick.ring)) {
            sp_meanwhile_do(&given);
            usleep(1000);
        }
        sem_post(&drained);
    }
    __real_sp_symbolizer_rest(symbolizer);
}

/* The symbolizer's thread is the collector's: while it reads a huge file, nothing else drains. */
static void symbolizer_reads_a_huge_file_rings_are_drained_meanwhile(void **state)
{
    (void)state;
    sem_init(&arrived, 0, 0);
    sem_init(&released, 0, 0);
    sem_init(&drained, 0, 0);
    start(100);
    attach_and_detach();
    atomic_store(&filled, sp_self);
    assert_int_equal(spanprof_flush(0), SPANPROF_ERROR_TIMEOUT);
    sem_wait(&arrived);
    attach_and_detach();
    assert_false(is_drained(&sp_self->tick.ring));
    sem_post(&released);
    sem_wait(&drained);
    assert_int_equal(spanprof_flush(60 * SECOND), SPANPROF_OK);
    spanprof_stats stats = SPANPROF_STATS_INIT;
    spanprof_stats_get(&stats);
    assert_int_equal(stats.samples_linked, 2);
}

int main(void)
{
    alarm(300);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(next_run_has_another_rate_application_threads_replace_no_ring,
                                  stop),
        cmocka_unit_test_teardown(rate_changes_while_it_runs_application_threads_replace_no_ring,
                                  stop),
        cmocka_unit_test_teardown(ring_is_corrupt_collector_skips_it_and_goes_on, stop),
        cmocka_unit_test_teardown(symbolizer_reads_a_huge_file_rings_are_drained_meanwhile, stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
