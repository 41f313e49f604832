/* SPDX-License-Identifier: Apache-2.0 */
/* Spends CPU time so that the thread gets ticks, also on a busy machine.
 *
 * The kernel checks CPU timers at its periodic timer tick. When a thread reads a CPU clock, the
 * kernel updates the thread's account, and if the thread's slice of the core is over, the thread
 * loses the core at once: before the next timer tick. So on shared cores a loop that reads a CPU
 * clock all the time gets hardly any ticks: 15 to 69 of 250 in a second, beside four busy loops on
 * two cores. The loop here reads the CPU clock only when its time may be over, and gets 245 to 250.
 * It knows when by the wall clock, because a thread cannot use more CPU time than passes. */
#ifndef TESTS_CPU_WORK_H
#define TESTS_CPU_WORK_H

#include <stdbool.h>
#include <time.h>

/* A loop that lasts for some seconds of CPU time. */
typedef struct cpu_work {
    clockid_t clock;
    double end;  /* by `clock` */
    double look; /* by CLOCK_MONOTONIC: when to read `clock` again */
} cpu_work;

static inline double clock_seconds(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* CLOCK is the CPU clock of the thread or of the process. */
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

/* Computes until SECONDS have passed on the wall clock. This is for the short pieces of a longer
 * work: to read the CPU clock after each piece would be to read it all the time. */
static inline void spin(double seconds)
{
    double end = clock_seconds(CLOCK_MONOTONIC) + seconds;
    while (clock_seconds(CLOCK_MONOTONIC) < end)
        ;
}

#endif
