/* SPDX-License-Identifier: Apache-2.0 */
/* Which engine auto takes at which rate, and what the probe of an engine finds out. The engines
 * themselves are asked by unit/sdk/engine. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <cmocka.h>

#include "core/clock.h"
#include "cpu/engine_choice.h"
#include "cpu/handler_install.h"

enum { KERNEL_TICK_HZ = 250, PROBES_MAX = 10000 };

static sp_engine_choice choose(sp_engine engine, uint32_t cpu_hz, bool with_wall)
{
    sp_engine_config config = {
        .engine = engine, .cpu_hz = cpu_hz, .signal = SIGPROF, .spares_calls = with_wall};
    sp_engine_choice choice = {0};
    sp_engine_choose(&choice, &config, KERNEL_TICK_HZ);
    printf("%u Hz: %s: %s\n", cpu_hz, choice.source->name, choice.reason);
    assert_true(choice.ticks);
    return choice;
}

static void auto_within_the_kernels_tick_takes_timers(void **state)
{
    (void)state;
    static const uint32_t rates_hz[] = {1, 99, KERNEL_TICK_HZ};
    for (size_t i = 0; i < SP_ARRAY_LENGTH(rates_hz); i++) {
        sp_engine_choice choice = choose(SP_ENGINE_AUTO, rates_hz[i], false);
        assert_string_equal(choice.source->name, "timer");
        assert_non_null(strstr(choice.reason, "within the kernel's timer tick (250 Hz)"));
    }
}

/* Where perf events are not allowed, timers it is. */
static void auto_above_the_kernels_tick_takes_perf_and_says_that_waits_may_end(void **state)
{
    (void)state;
    sp_engine_choice choice = choose(SP_ENGINE_AUTO, KERNEL_TICK_HZ + 1, false);
    assert_non_null(strstr(choice.reason, "251 Hz is above the kernel's timer tick (250 Hz)"));
    if (strcmp(choice.source->name, "perf") == 0)
        assert_non_null(strstr(choice.reason, "may end a wait with EINTR"));
    else
        assert_non_null(strstr(choice.reason, "perf"));
}

static void auto_with_wall_time_takes_timers_at_any_rate(void **state)
{
    (void)state;
    sp_engine_choice choice = choose(SP_ENGINE_AUTO, 10000, true);
    assert_string_equal(choice.source->name, "timer");
    assert_non_null(strstr(choice.reason, "wall time is sampled"));
}

static void perf_that_is_asked_for_says_that_waits_may_end(void **state)
{
    (void)state;
    sp_engine_choice choice = choose(SP_ENGINE_PERF, 99, false);
    if (strcmp(choice.source->name, "perf") != 0) {
        printf("SKIPPED: perf events are not allowed here\n");
        skip();
    }
    assert_non_null(strstr(choice.reason, "may end a wait with EINTR"));
}

/* --- sources of ticks whose way to the thread is known ---------------------------------------- */

static pid_t ticked_tid;
static pthread_t sender;

static void send_tick(void)
{
    siginfo_t info;
    memset(&info, 0, sizeof info);
    info.si_code = SI_QUEUE;
    info.si_pid = getpid();
    info.si_value.sival_ptr = &sp_handler.probe;
    assert_int_equal(syscall(SYS_rt_tgsigqueueinfo, getpid(), ticked_tid, SIGPROF, &info), 0);
}

static void close_nothing(sp_ticker *ticker)
{
    (void)ticker;
}

static bool send_at_once(sp_ticker *ticker, pid_t tid, void *owner, const sp_tick_plan *plan)
{
    (void)ticker, (void)owner, (void)plan;
    ticked_tid = tid;
    send_tick();
    return true;
}

static void *send_later(void *unused)
{
    usleep(1000);
    send_tick();
    return unused;
}

static bool start_sender(sp_ticker *ticker, pid_t tid, void *owner, const sp_tick_plan *plan)
{
    (void)ticker, (void)owner, (void)plan;
    ticked_tid = tid;
    return pthread_create(&sender, NULL, send_later, NULL) == 0;
}

static void join_sender(sp_ticker *ticker)
{
    (void)ticker;
    pthread_join(sender, NULL);
}

static bool refuse(sp_ticker *ticker, pid_t tid, void *owner, const sp_tick_plan *plan)
{
    (void)ticker, (void)tid, (void)owner, (void)plan;
    errno = EAGAIN;
    return false;
}

static void tick_between_calls_is_found_to_end_none(void **state)
{
    (void)state;
    static const sp_cpu_source source = {.open = send_at_once, .close = close_nothing};
    sp_engine_probe probe = sp_engine_probe_source(&source, SIGPROF, SP_NS_PER_S);
    assert_true(probe.ticks);
    assert_false(probe.ends_waits);
    assert_int_equal(probe.error, 0);
}

/* Another thread sends the signal at a random moment, as an interrupt would. */
static void tick_inside_a_call_is_found_to_end_it(void **state)
{
    (void)state;
    static const sp_cpu_source source = {.open = start_sender, .close = join_sender};
    bool ends_waits = false;
    for (int i = 0; i < PROBES_MAX && !ends_waits; i++) {
        sp_engine_probe probe = sp_engine_probe_source(&source, SIGPROF, 100 * SP_NS_PER_S);
        assert_true(probe.ticks);
        ends_waits = probe.ends_waits;
    }
    assert_true(ends_waits);
}

static void source_that_cannot_be_opened_is_told_with_its_errno(void **state)
{
    (void)state;
    static const sp_cpu_source source = {.open = refuse, .close = close_nothing};
    sp_engine_probe probe = sp_engine_probe_source(&source, SIGPROF, SP_NS_PER_S);
    assert_false(probe.ticks);
    assert_int_equal(probe.error, EAGAIN);
}

static int install(void **state)
{
    (void)state;
    return sp_handler_install(SIGPROF) ? 0 : -1;
}

int main(void)
{
#if defined(__SANITIZE_THREAD__)
    puts("SKIPPED: TSan delivers signals late");
    return 77;
#endif
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(auto_within_the_kernels_tick_takes_timers),
        cmocka_unit_test(auto_above_the_kernels_tick_takes_perf_and_says_that_waits_may_end),
        cmocka_unit_test(auto_with_wall_time_takes_timers_at_any_rate),
        cmocka_unit_test(perf_that_is_asked_for_says_that_waits_may_end),
        cmocka_unit_test(tick_between_calls_is_found_to_end_none),
        cmocka_unit_test(tick_inside_a_call_is_found_to_end_it),
        cmocka_unit_test(source_that_cannot_be_opened_is_told_with_its_errno),
    };
    return cmocka_run_group_tests(tests, install, NULL);
}
