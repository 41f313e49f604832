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
#include "context/thread.h"
#include "cpu/cpu_engine.h"
#include "cpu/switch_loss.h"
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

typedef enum place { NOWHERE, IN_NAMING, IN_UNATTRIBUTED, IN_HOLD, IN_FOLLOW, IN_REPAIR } place;

static _Atomic int held_at; /* a place; the next collector that comes there is held */
static sem_t arrived, released, freed;
static pthread_t test_thread, collector; /* collector: valid when is_known */
static _Atomic bool is_known;
static _Atomic int scans;             /* by that collector */
static _Atomic int periods, repaired; /* that it has changed, and threads that it has armed anew */
static _Atomic int repaired_by_others;

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

void __real_sp_drain_settle_unattributed(sp_drain *drain, sp_window *window);
void __wrap_sp_drain_settle_unattributed(sp_drain *drain, sp_window *window);
void __wrap_sp_drain_settle_unattributed(sp_drain *drain, sp_window *window)
{
    hold_at(IN_UNATTRIBUTED);
    __real_sp_drain_settle_unattributed(drain, window);
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

void __real_sp_engine_follow_switches(uint32_t run);
void __wrap_sp_engine_follow_switches(uint32_t run);
void __wrap_sp_engine_follow_switches(uint32_t run)
{
    hold_at(IN_FOLLOW);
    __real_sp_engine_follow_switches(run);
}

uint64_t __real_sp_switch_loss_period(sp_thread *thread, uint64_t period_ns);
uint64_t __wrap_sp_switch_loss_period(sp_thread *thread, uint64_t period_ns);
uint64_t __wrap_sp_switch_loss_period(sp_thread *thread, uint64_t period_ns)
{
    if (is_held_collector())
        atomic_fetch_add(&periods, 1);
    return __real_sp_switch_loss_period(thread, period_ns);
}

uint32_t __real_sp_engine_repair(uint32_t run);
uint32_t __wrap_sp_engine_repair(uint32_t run);
uint32_t __wrap_sp_engine_repair(uint32_t run)
{
    hold_at(IN_REPAIR);
    uint32_t count = __real_sp_engine_repair(run);
    atomic_fetch_add(is_held_collector() ? &repaired : &repaired_by_others, (int)count);
    return count;
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

static const char *engine;

static void start(uint32_t hz)
{
    spanprof_options options = SPANPROF_OPTIONS_INIT;
    options.exporter = "file";
    options.file = prefix;
    options.cpu_hz = hz;
    options.engine = engine;
    assert_int_equal(spanprof_start(&options, NULL), SPANPROF_OK);
}

/* This thread has a state once it has attached. */
static void take_a_sample(void)
{
    spanprof_context context = {.trace_flags = SPANPROF_TRACE_FLAG_SAMPLED};
    memset(context.trace_id, 1, sizeof context.trace_id);
    memset(context.span_id, 1, sizeof context.span_id);
    spanprof_scope scope = spanprof_context_attach(&context);
    sp_engine_tick_here(1);
    spanprof_scope_detach(&scope);
}

static int setup(void **state)
{
    (void)state;
    engine = "timer";
    test_thread = pthread_self();
    atomic_store(&is_known, false);
    atomic_store(&periods, 0);
    atomic_store(&repaired, 0);
    atomic_store(&repaired_by_others, 0);
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
    assert_int_equal(sp_engine_period_ns(), SECOND / NEW_HZ);
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

/* Only perf events have a period that follows switches, and descriptors that can be closed. */
static void start_with_perf(place where)
{
    engine = "perf";
    atomic_store(&held_at, where);
    start(OLD_HZ);
    if (strcmp(stats_now().engine, "perf") == 0)
        return;
    print_message("[skipped: no perf events here: %s]\n", stats_now().engine_reason);
    atomic_store(&held_at, NOWHERE);
    sem_post(&released);
    skip();
}

/* The collector is about to set the periods of all threads' events. */
static void
collector_abandoned_while_it_follows_switches_sets_no_period_of_the_next_run(void **state)
{
    (void)state;
    start_with_perf(IN_FOLLOW);
    sem_wait(&arrived);
    start_the_next_run_and_let_go();
    assert_int_equal(atomic_load(&periods), 0);
    expect_next_run_is_untouched();
}

/* The collector is about to look for events that were closed, and this thread's is: that is the
 * next collector's to repair. */
static void collector_abandoned_while_it_repairs_arms_no_thread_of_the_next_run(void **state)
{
    (void)state;
    start_with_perf(IN_REPAIR);
    assert_int_equal(spanprof_flush(0), SPANPROF_ERROR_TIMEOUT);
    sem_wait(&arrived);
    assert_int_equal(spanprof_stop(0), SPANPROF_ERROR_TIMEOUT);
    start(NEW_HZ);
    close(sp_cpu_thread_of(sp_thread_self_create())->ticker.fd);
    sem_post(&released);
    sem_wait(&freed);
    assert_int_equal(atomic_load(&repaired), 0);
    expect_next_run_is_untouched();
    assert_int_equal(atomic_load(&repaired_by_others), 1);
}

#define CASE(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
    alarm(300);
    const struct CMUnitTest tests[] = {
        CASE(collector_abandoned_while_it_disarms_does_not_disarm_the_next_run),
        CASE(collector_abandoned_while_it_follows_switches_sets_no_period_of_the_next_run),
        CASE(collector_abandoned_while_it_repairs_arms_no_thread_of_the_next_run),
        /* From here on ticks are synthetic. */
        CASE(collector_abandoned_while_naming_changes_nothing_of_the_next_run),
        CASE(collector_abandoned_while_the_rate_changes_does_not_arm_the_next_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
