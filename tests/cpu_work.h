/* SPDX-License-Identifier: Apache-2.0 */
/* Spending CPU time so that ticks meet it, also on a busy machine.
 *
 * Whoever asks a CPU clock makes the kernel bring the thread's account up to date, and a thread
 * whose slice of the core is over gives it up then and there: before the periodic tick, at which
 * the kernel looks at CPU timers. A loop that asks all the time is so hardly ever met by a tick
 * where cores are shared: of 250 in a second, 15 to 69 beside four busy loops on two cores, and 245
 * to 250 when it asks as here, not before the time may be over by the wall's clock. A thread cannot
 * use more CPU time than passes. */
#ifndef TESTS_CPU_WORK_H
#define TESTS_CPU_WORK_H

#include <stdbool.h>
#include <time.h>

/* A loop that lasts for some seconds of CPU time. */
typedef struct cpu_work {
    clockid_t clock;
    double end;  /* by CLOCK */
    double look; /* by CLOCK_MONOTONIC: when to ask CLOCK again */
} cpu_work;

static inline double clock_seconds(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* CLOCK: the thread's CPU clock, or the process's. */
static inline cpu_work cpu_work_of(clockid_t clock, double seconds)
{
    return (cpu_work){.clock = clock, .end = clock_seconds(clock) + seconds};
}

static inline bool cpu_work_goes_on(cpu_work *work)
{
    double now = clock_seconds(CLOCK_MONOTONIC);
    if (now < work->look)
        return true;
    double left = work->end - clock_seconds(work->clock);
    work->look = now + left;
    return left > 0;
}

/* Spends SECONDS of CPU time on this thread. */
static inline void burn(double seconds)
{
    cpu_work work = cpu_work_of(CLOCK_THREAD_CPUTIME_ID, seconds);
    while (cpu_work_goes_on(&work))
        ;
}

/* Computes until SECONDS have passed on the wall's clock: a piece of longer work, so short that a
 * look at the CPU clock after each would be one all the time. */
static inline void spin(double seconds)
{
    double end = clock_seconds(CLOCK_MONOTONIC) + seconds;
    while (clock_seconds(CLOCK_MONOTONIC) < end)
        ;
}

#endif
