/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/engine_choice.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/cycles_sig.h"
#include "core/log.h"
#include "sampler/handler_install.h"

enum { SIGNALS_TIMED = 64, LONGEST_TICKS_TIMED = 5 };

/* A jiffy lasts 10 ms at most; the event's timer is exact to microseconds. */
#define TIMER_PATIENCE_NS (45 * SP_NS_PER_MS)
#define PERF_PATIENCE_NS  (5 * SP_NS_PER_MS)
#define PROBE_PERIOD_NS   UINT64_C(200000)

/* The deepest stack that is walked takes half of this; a thread that loses its core, ten times as long. */
#define LONGEST_TICK_NS UINT64_C(200000)

static void SP_PRINTF(2, 3) say(sp_engine_choice *choice, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(choice->reason, sizeof choice->reason, format, arguments);
    va_end(arguments);
}

static uint64_t thread_cpu_ns(void)
{
    uint64_t now = 0;
    sp_clock_thread_cpu_ns((pid_t)syscall(SYS_gettid), &now);
    return now;
}

/* The CPU clock is not asked before the time may be over: asking makes the kernel take the core from a thread whose slice is over, and on
 * a busy machine that is before the periodic tick, each time, so that no timer would ever be seen to expire. */
static bool tick_arrives(uint64_t patience_ns)
{
    uint64_t give_up = thread_cpu_ns() + patience_ns, look = 0;
    while (!sp_load_relaxed(&sp_handler.probe)) {
        uint64_t now = sp_clock_monotonic_ns();
        if (now < look)
            continue;
        uint64_t used = thread_cpu_ns();
        if (used >= give_up)
            return false;
        look = now + give_up - used;
    }
    return true;
}

/* Whether a tick of SOURCE arrives on this thread. errno: why its ticker could not be had; 0 when it could, and none came. */
static bool probe(const sp_cpu_source *source, int signal, uint64_t patience_ns)
{
    sp_tick_plan plan = {
        .signal = signal, .period_ns = PROBE_PERIOD_NS, .first_ns = PROBE_PERIOD_NS};
    sp_ticker ticker = {0};
    sigset_t one, before;
    sigemptyset(&one);
    sigaddset(&one, signal);
    sp_store_relaxed(&sp_handler.probe, 0);
    if (!source->open(&ticker, (pid_t)syscall(SYS_gettid), &sp_handler.probe, &plan))
        return false;
    pthread_sigmask(SIG_UNBLOCK, &one, &before);
    bool arrives = tick_arrives(patience_ns);
    source->close(&ticker);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = 0;
    return arrives;
}

/* kernel.perf_event_paranoid; 99 when it cannot be read. */
static int paranoid_level(void)
{
    char text[16] = "";
    int fd = open("/proc/sys/kernel/perf_event_paranoid", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 99;
    ssize_t length = read(fd, text, sizeof text - 1);
    close(fd);
    return length > 0 ? atoi(text) : 99;
}

static void say_why_not_perf(sp_engine_choice *choice, int error)
{
    int level = paranoid_level();
    if (error == 0)
        say(choice, "a perf event could be opened, and no tick of it arrived");
    else if (error == EACCES && level > 1 && level != 99)
        say(choice,
            "perf_event_open: %s; kernel.perf_event_paranoid is %d: 1 or less, or CAP_PERFMON, "
            "would allow it",
            strerror(error), level);
    else if (error == EPERM)
        say(choice, "perf_event_open: %s; a seccomp profile forbids it, most likely",
            strerror(error));
    else
        say(choice, "perf_event_open: %s", strerror(error));
}

static bool choose_perf(sp_engine_choice *choice, int signal)
{
    const char *why_not;
    choice->source = &sp_cpu_perf;
    if (!sp_cpu_perf.prepare(signal, &why_not)) {
        say(choice, "%s", why_not);
        return false;
    }
    if (probe(&sp_cpu_perf, signal, PERF_PATIENCE_NS)) {
        say(choice, "perf events with kernel time are allowed, and ticks arrive");
        choice->ticks = true;
        return true;
    }
    say_why_not_perf(choice, errno);
    return false;
}

/* Appended, so that the whole story is told: why not perf, and what of the timer. */
static void append(sp_engine_choice *choice, const char *text)
{
    size_t length = strlen(choice->reason);
    snprintf(choice->reason + length, sizeof choice->reason - length, "%s%s", length ? "; " : "",
             text);
}

static void choose_timer(sp_engine_choice *choice, int signal)
{
    char text[96];
    choice->source = &sp_cpu_timer;
    choice->ticks = true;
    if (probe(&sp_cpu_timer, signal, TIMER_PATIENCE_NS))
        return;
    if (errno)
        snprintf(text, sizeof text, "timer_create: %s", strerror(errno));
    else
        snprintf(text, sizeof text, "a CPU timer could be made, and no tick of it arrived");
    append(choice, text);
    choice->ticks = false;
    sp_log_warn("sampler", "no engine ticks here, CPU time will be residual: %s", choice->reason);
}

/* The kernel sends a timer's signal when the thread is about to leave it, and an event's at once, so that a call on its way to sleep
 * returns EINTR: one of some thousand short waits. */
static bool choose_sparing(sp_engine_choice *choice, int signal)
{
    if (!probe(&sp_cpu_timer, signal, TIMER_PATIENCE_NS))
        return false;
    choice->source = &sp_cpu_timer;
    choice->ticks = true;
    say(choice, "wall time is sampled, which cuts no system call short; ticks of perf events "
                "sometimes do, those of timers do not");
    return true;
}

void sp_engine_choose(sp_engine_choice *choice, sp_engine wanted, int signal, bool spares_calls)
{
    choice->reason[0] = 0;
    if (wanted == SP_ENGINE_TIMER) {
        choose_timer(choice, signal);
        append(choice, "SPANPROF_ENGINE asks for it");
    } else if (wanted == SP_ENGINE_AUTO && spares_calls && choose_sparing(choice, signal)) {
        /* told already */
    } else if (!choose_perf(choice, signal)) {
        if (wanted == SP_ENGINE_PERF)
            sp_log_warn("sampler", "SPANPROF_ENGINE=perf cannot be had, using timer: %s",
                        choice->reason);
        choose_timer(choice, signal);
    }
    sp_log_info("sampler", "CPU ticks by engine %s: %s", choice->source->name, choice->reason);
}

/* The shortest of some tries, for one may lose its core. */
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
