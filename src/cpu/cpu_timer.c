/* SPDX-License-Identifier: Apache-2.0 */
/* The engine `timer`: a POSIX timer on each thread's CPU clock, which signals that very thread
 * (SIGEV_THREAD_ID) and carries its owner. The kernel checks CPU timers at its timer ticks. The
 * expirations in between are reported as the overrun, so the weight is 1 + overrun whole periods.
 * It needs no privilege; it counts against RLIMIT_SIGPENDING. */
#include <signal.h>
#include <string.h>

#include "core/clock.h"
#include "cpu/cpu_source.h"

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

static bool prepare(int signal, const char **why_not)
{
    (void)signal;
    *why_not = NULL;
    return true;
}

static bool open_timer(sp_ticker *ticker, pid_t tid, void *owner, const sp_tick_plan *plan)
{
    struct sigevent event;
    memset(&event, 0, sizeof event);
    event.sigev_notify = SIGEV_THREAD_ID;
    event.sigev_signo = plan->signal;
    event.sigev_value.sival_ptr = owner;
    event.sigev_notify_thread_id = tid;
    timer_t timer;
    if (timer_create(sp_clock_thread_cpu_id(tid), &event, &timer) != 0)
        return false;
    /* Stored before the timer is set, because ticks on thread TID read it. */
    sp_store_relaxed(&ticker->timer, timer);
    struct itimerspec when = {
        .it_value = sp_timespec_from_ns(plan->first_ns),
        .it_interval = sp_timespec_from_ns(plan->period_ns),
    };
    if (timer_settime(timer, 0, &when, NULL) != 0) {
        timer_delete(timer);
        return false;
    }
    ticker->source = &sp_cpu_timer;
    return true;
}

static void suspend_timer(sp_ticker *ticker)
{
    static const struct itimerspec never;
    timer_settime(ticker->timer, 0, &never, NULL);
}

static void close_timer(sp_ticker *ticker)
{
    timer_delete(ticker->timer);
    ticker->source = NULL;
}

static bool is_open(const sp_ticker *ticker)
{
    (void)ticker;
    return true; /* no other code knows its number */
}

static void after_fork(void)
{
    /* Timers are not inherited: timer_create(2). */
}

const sp_cpu_source sp_cpu_timer = {.name = "timer",
                                    .prepare = prepare,
                                    .open = open_timer,
                                    .suspend = suspend_timer,
                                    .close = close_timer,
                                    .is_open = is_open,
                                    .after_fork = after_fork};
