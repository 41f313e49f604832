/* SPDX-License-Identifier: Apache-2.0 */
#include "cpu/engine_choice.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/cycles_sig.h"
#include "core/kernel_setting.h"
#include "core/log.h"
#include "cpu/handler_install.h"

enum { SIGNALS_TIMED = 64, LONGEST_TICKS_TIMED = 5 };

/* Enough entries that a poll spends most of its time on them, and fewer than the usual
 * RLIMIT_NOFILE, because poll refuses more. */
enum { POLLED_ENTRIES = 1000 };

static struct pollfd polled[POLLED_ENTRIES]; /* under the engine's lock */

/* The kernel's timer ticks are at most 10 ms apart; the event's timer is exact to microseconds. */
#define TIMER_PATIENCE_NS (45 * SP_NS_PER_MS)
#define PERF_PATIENCE_NS  (5 * SP_NS_PER_MS)
#define PROBE_PERIOD_NS   UINT64_C(200000)

/* A walk of the deepest stack takes half of this; a tick whose thread loses its core takes ten
 * times as long. */
#define LONGEST_TICK_NS UINT64_C(200000)

/* Add a clause to the reason: why not perf, and then what became of the timer. */
static void SP_PRINTF(2, 3) append(sp_engine_choice *choice, const char *format, ...)
{
    char clause[SP_ENGINE_REASON_SIZE];
    size_t length = strlen(choice->reason);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(clause, sizeof clause, format, arguments);
    va_end(arguments);
    snprintf(choice->reason + length, sizeof choice->reason - length, "%s%s", length ? "; " : "",
             clause);
}

static uint64_t thread_cpu_ns(void)
{
    uint64_t now = 0;
    sp_clock_thread_cpu_ns((pid_t)syscall(SYS_gettid), &now);
    return now;
}

/* Make a system call that returns at once, but checks for a signal before it does. Returns whether
 * the first tick ended it with EINTR: then the kernel sent that tick while this thread was inside
 * the call, and ticks end waits in the same way. A kernel that sends ticks only when a thread
 * leaves it never ends the call. */
static bool tick_ends_call(void)
{
    bool had_tick = sp_load_relaxed(&sp_handler.probe) != 0;
    bool interrupted = poll(polled, POLLED_ENTRIES, 0) < 0 && errno == EINTR;
    return !had_tick && interrupted && sp_load_relaxed(&sp_handler.probe) != 0;
}

/* Wait until a tick arrives, or PATIENCE_NS of CPU time have passed. The CPU clock is read only
 * when that time may have passed, because reading it makes the kernel deschedule a thread whose
 * slice is over. On a busy machine this would happen before each timer tick, and no timer would
 * ever expire. */
static sp_engine_probe wait_for_tick(uint64_t patience_ns)
{
    sp_engine_probe result = {0};
    memset(polled, 0xff, sizeof polled); /* descriptors of -1, which poll skips */
    uint64_t give_up = thread_cpu_ns() + patience_ns, next_check_ns = 0;
    while (!sp_load_relaxed(&sp_handler.probe)) {
        result.ends_waits = tick_ends_call();
        uint64_t now = sp_clock_monotonic_ns();
        if (now < next_check_ns)
            continue;
        uint64_t used = thread_cpu_ns();
        if (used >= give_up)
            return result;
        next_check_ns = now + give_up - used;
    }
    result.ticks = true;
    return result;
}

sp_engine_probe sp_engine_probe_source(const sp_cpu_source *source, int signal,
                                       uint64_t patience_ns)
{
    sp_tick_plan plan = {
        .signal = signal, .period_ns = PROBE_PERIOD_NS, .first_ns = PROBE_PERIOD_NS};
    sp_ticker ticker = {0};
    sigset_t one, before;
    sigemptyset(&one);
    sigaddset(&one, signal);
    sp_store_relaxed(&sp_handler.probe, 0);
    if (!source->open(&ticker, (pid_t)syscall(SYS_gettid), &sp_handler.probe, &plan))
        return (sp_engine_probe){.error = errno};
    pthread_sigmask(SIG_UNBLOCK, &one, &before);
    sp_engine_probe result = wait_for_tick(patience_ns);
    source->close(&ticker);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return result;
}

static void append_why_not_perf(sp_engine_choice *choice, int error)
{
    enum { NOT_KNOWN = 99 };
    long level = sp_kernel_setting("kernel/perf_event_paranoid", NOT_KNOWN);
    if (error == 0)
        append(choice, "a perf event could be opened, and no tick of it arrived");
    else if (error == EACCES && level > 1 && level != NOT_KNOWN)
        append(choice,
               "perf_event_open: %s; kernel.perf_event_paranoid is %ld: 1 or less, or CAP_PERFMON, "
               "would allow it",
               strerror(error), level);
    else if (error == EPERM)
        append(choice, "perf_event_open: %s; a seccomp profile forbids it, most likely",
               strerror(error));
    else
        append(choice, "perf_event_open: %s", strerror(error));
}

/* Whether perf events tick. The kernel sends an event's signal at once, from the interrupt, so on
 * every kernel it may end a wait. */
static bool try_perf(sp_engine_choice *choice, int signal)
{
    const char *why_not;
    choice->source = &sp_cpu_perf;
    if (!sp_cpu_perf.prepare(signal, &why_not)) {
        append(choice, "%s", why_not);
        return false;
    }
    sp_engine_probe probe = sp_engine_probe_source(&sp_cpu_perf, signal, PERF_PATIENCE_NS);
    choice->ticks = probe.ticks;
    if (probe.ticks)
        append(choice, "perf events with kernel time are allowed, and ticks arrive; a tick may end "
                       "a wait with EINTR");
    else
        append_why_not_perf(choice, probe.error);
    return probe.ticks;
}

/* Whether timers tick. */
static bool try_timer(sp_engine_choice *choice, int signal)
{
    sp_engine_probe probe = sp_engine_probe_source(&sp_cpu_timer, signal, TIMER_PATIENCE_NS);
    choice->source = &sp_cpu_timer;
    choice->ticks = probe.ticks;
    if (probe.error)
        append(choice, "timer_create: %s", strerror(probe.error));
    else if (!probe.ticks)
        append(choice, "a CPU timer could be made, and no tick of it arrived");
    else if (probe.ends_waits)
        append(choice, "on this kernel a timer's tick, too, may end a wait with EINTR");
    return probe.ticks;
}

/* A profiler that is on by default must not make a system call fail, and ticks of perf events do:
 * they end one of some thousand waits with EINTR. Timers are worse only above the rate of the
 * kernel's timer tick, because they do not expire more often. */
static void choose_auto(sp_engine_choice *choice, const sp_engine_config *config,
                        uint32_t kernel_tick_hz)
{
    bool within_tick = config->cpu_hz <= kernel_tick_hz;
    bool prefers_timer = within_tick || config->spares_calls;
    append(choice, "%u Hz is %s the kernel's timer tick (%u Hz)", config->cpu_hz,
           within_tick ? "within" : "above", kernel_tick_hz);
    if (!within_tick && config->spares_calls)
        append(choice, "wall time is sampled");
    if (prefers_timer)
        append(choice, "perf events would end some waits with EINTR");
    if (prefers_timer && try_timer(choice, config->signal))
        return;
    if (try_perf(choice, config->signal))
        return;
    if (prefers_timer)
        choice->source = &sp_cpu_timer; /* the reason says why it does not tick */
    else
        try_timer(choice, config->signal);
}

static void choose_perf(sp_engine_choice *choice, int signal)
{
    append(choice, "SPANPROF_ENGINE asks for perf");
    if (try_perf(choice, signal))
        return;
    sp_log_warn("engine", "SPANPROF_ENGINE=perf does not work here, using timer: %s",
                choice->reason);
    try_timer(choice, signal);
}

static void choose_timer(sp_engine_choice *choice, int signal)
{
    append(choice, "SPANPROF_ENGINE asks for timer");
    try_timer(choice, signal);
}

void sp_engine_choose(sp_engine_choice *choice, const sp_engine_config *config,
                      uint32_t kernel_tick_hz)
{
    choice->reason[0] = 0;
    if (config->engine == SP_ENGINE_TIMER)
        choose_timer(choice, config->signal);
    else if (config->engine == SP_ENGINE_PERF)
        choose_perf(choice, config->signal);
    else
        choose_auto(choice, config, kernel_tick_hz);
    if (!choice->ticks)
        sp_log_warn("engine", "no engine ticks here, CPU time will be unattributed: %s",
                    choice->reason);
    sp_log_info("engine", "CPU ticks by engine %s: %s", choice->source->name, choice->reason);
}

/* The shortest of several tries, because the thread may lose its core in any of them. */
uint64_t sp_engine_longest_tick_cycles(void)
{
    uint64_t best = UINT64_MAX;
    for (int i = 0; i < LONGEST_TICKS_TIMED; i++) {
        uint64_t begin = sp_cycles(), end_ns = sp_clock_monotonic_ns() + LONGEST_TICK_NS;
        while (sp_clock_monotonic_ns() < end_ns)
            ;
        best = sp_min_u64(best, sp_cycles() - begin);
    }
    return best;
}

uint64_t sp_engine_signal_cost_ns(int signal)
{
    uint64_t best = UINT64_MAX;
    for (int i = 0; i < SIGNALS_TIMED; i++) {
        uint64_t before = sp_clock_monotonic_ns();
        if (!sp_handler_is_reached(signal))
            return 0;
        uint64_t took = sp_clock_monotonic_ns() - before;
        best = sp_min_u64(best, took);
    }
    return best;
}
