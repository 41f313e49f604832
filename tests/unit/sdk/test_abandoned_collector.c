/* SPDX-License-Identifier: Apache-2.0 */
/* A collector that a stop has abandoned, while the next run goes on. Wrapped functions hold the
 * collector at chosen places, so every interleaving is forced. */
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <spanprof/spanprof.h>
#include "symbol/symbolizer.h"
#include "remove_folder.h"
#include "cpu/cpu_sampler.h"
#include "collect/drain.h"
#include "sdk/synthetic.h"

/* The resource of a run whose collector was abandoned is never freed, because that thread may still
 * read it. */
__attribute__((visibility("default"))) const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "detect_leaks=0";
}

enum { OLD_HZ = 100, WISHED_HZ = 300, NEW_HZ = 200 };

#define SECOND UINT64_C(1000000000)

typedef enum place { NOWHERE, IN_NAMING, IN_UNATTRIBUTED, IN_HOLD } place;

static _Atomic int held_at; /* a place; the next collector that comes there is held */
static sem_t arrived, released, freed;
static pthread_t test_thread, collector; /* collector: valid when is_known */
static _Atomic bool is_known;
static _Atomic int scans; /* by that collector */

static bool is_held_collector(void)
{
    return atomic_load(&is_known) && pthread_equal(pthread_self(), collector);
}

static void hold_at(place here)
{
    int expected = here;
    if (pthread_equal(pthread_self(), test_thread) ||
        !atomic_compare_exchange_strong(&held_at, &expected, NOWHERE))
        return;
    collector = pthread_self();
    atomic_store(&is_known, true);
    sem_post(&arrived);
    sem_wait(&released);
    atomic_store(&scans, 0);
}

uint32_t __real_sp_symbolizer_frames(sp_symbolizer *symbolizer, const sp_module *module,
                                     uint64_t address, const sp_frame **frames);
uint32_t __wrap_sp_symbolizer_frames(sp_symbolizer *symbolizer, const sp_module *module,
                                     uint64_t address, const sp_frame **frames);
uint32_t __wrap_sp_symbolizer_frames(sp_symbolizer *symbolizer, const sp_module *module,
                                     uint64_t address, const sp_frame **frames)
{
    hold_at(IN_NAMING);
    return __real_sp_symbolizer_frames(symbolizer, module, address, frames);
}

void __real_sp_drain_unattributed(sp_drain *drain, sp_window *window);
void __wrap_sp_drain_unattributed(sp_drain *drain, sp_window *window);
void __wrap_sp_drain_unattributed(sp_drain *drain, sp_window *window)
{
    hold_at(IN_UNATTRIBUTED);
    __real_sp_drain_unattributed(drain, window);
}

int __real_usleep(useconds_t us);
int __wrap_usleep(useconds_t us);
int __wrap_usleep(useconds_t us)
{
    hold_at(IN_HOLD);
    return __real_usleep(us);
}

bool __real_sp_threads_scan(void);
bool __wrap_sp_threads_scan(void);
bool __wrap_sp_threads_scan(void)
{
    if (is_held_collector())
        atomic_fetch_add(&scans, 1);
    return __real_sp_threads_scan();
}

void __real_sp_symbolizer_destroy(sp_symbolizer *symbolizer);
void __wrap_sp_symbolizer_destroy(sp_symbolizer *symbolizer);
void __wrap_sp_symbolizer_destroy(sp_symbolizer *symbolizer)
{
    bool is_end = is_held_collector();
    __real_sp_symbolizer_destroy(symbolizer);
    if (is_end)
        sem_post(&freed);
}

static char directory[64], prefix[80];

static void start(uint32_t hz)
{
    spanprof_options options = SPANPROF_OPTIONS_INIT;
    options.exporter = "file";
    options.file = prefix;
    options.cpu_hz = hz;
    options.engine = "timer";
    assert_int_equal(spanprof_start(&options, NULL), SPANPROF_OK);
}

/* This thread has a state once it has attached. */
static void take_a_sample(void)
{
    spanprof_context context = {.trace_flags = SPANPROF_TRACE_FLAG_SAMPLED};
    memset(context.trace_id, 1, sizeof context.trace_id);
    memset(context.span_id, 1, sizeof context.span_id);
    spanprof_scope scope = spanprof_context_attach(&context);
    sp_sampler_tick_here(1);
    spanprof_scope_detach(&scope);
}

static int setup(void **state)
{
    (void)state;
    test_thread = pthread_self();
    atomic_store(&is_known, false);
    sem_init(&arrived, 0, 0);
    sem_init(&released, 0, 0);
    sem_init(&freed, 0, 0);
    strcpy(directory, "/tmp/spanprof-abandoned-XXXXXX");
    if (!mkdtemp(directory))
        return -1;
    snprintf(prefix, sizeof prefix, "%s/p", directory);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    spanprof_stop(60 * SECOND);
    return remove_folder(directory);
}

static spanprof_stats stats_now(void)
{
    spanprof_stats stats = SPANPROF_STATS_INIT;
    spanprof_stats_get(&stats);
    return stats;
}

/* The held collector is abandoned; a run with another rate starts; then the collector goes on until
 * it has freed itself. */
static void start_the_next_run_and_let_go(void)
{
    assert_int_equal(spanprof_stop(0), SPANPROF_ERROR_TIMEOUT);
    start(NEW_HZ);
    sem_post(&released);
    sem_wait(&freed);
}

/* A window of the next run closes, and its rate is still what its start asked for. */
static void expect_next_run_is_untouched(void)
{
    assert_int_equal(stats_now().cpu_hz, NEW_HZ);
    assert_int_equal(sp_sampler_period_ns(), SECOND / NEW_HZ);
    assert_int_equal(atomic_load(&scans), 0);
    assert_true(stats_now().threads >= 1);
    assert_int_equal(spanprof_flush(60 * SECOND), SPANPROF_OK);
    assert_int_equal(stats_now().cpu_hz, NEW_HZ);
}

static void collector_abandoned_while_naming_changes_nothing_of_the_next_run(void **state)
{
    (void)state;
    sp_sdk_use_synthetic_ticks();
    start(OLD_HZ);
    take_a_sample();
    atomic_store(&held_at, IN_NAMING);
    assert_int_equal(spanprof_flush(0), SPANPROF_ERROR_TIMEOUT);
    sem_wait(&arrived);
    start_the_next_run_and_let_go();
    expect_next_run_is_untouched();
}

/* The collector has disarmed all threads, and is about to arm them at the rate that was wished for.
 */
static void collector_abandoned_while_the_rate_changes_does_not_arm_the_next_run(void **state)
{
    (void)state;
    sp_sdk_use_synthetic_ticks();
    start(OLD_HZ);
    take_a_sample();
    atomic_store(&held_at, IN_UNATTRIBUTED);
    assert_int_equal(spanprof_set_rate(SPANPROF_PROFILE_CPU, WISHED_HZ), SPANPROF_OK);
    sem_wait(&arrived);
    start_the_next_run_and_let_go();
    expect_next_run_is_untouched();
}

/* The collector has given the engine's lock back until signals that are on their way have arrived.
 */
static void collector_abandoned_while_it_disarms_does_not_disarm_the_next_run(void **state)
{
    (void)state;
#ifdef __SANITIZE_THREAD__
    print_message("[skipped: real ticks come late under TSan]\n");
    skip();
#endif
    start(OLD_HZ);
    atomic_store(&held_at, IN_HOLD);
    assert_int_equal(spanprof_set_rate(SPANPROF_PROFILE_CPU, WISHED_HZ), SPANPROF_OK);
    sem_wait(&arrived);
    start_the_next_run_and_let_go();
    expect_next_run_is_untouched();
}

#define CASE(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
    alarm(300);
    const struct CMUnitTest tests[] = {
        CASE(collector_abandoned_while_it_disarms_does_not_disarm_the_next_run),
        CASE(collector_abandoned_while_naming_changes_nothing_of_the_next_run),
        CASE(collector_abandoned_while_the_rate_changes_does_not_arm_the_next_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
