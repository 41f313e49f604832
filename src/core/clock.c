/* SPDX-License-Identifier: Apache-2.0 */
#include "core/clock.h"

static uint64_t read_clock(clockid_t clock)
{
    struct timespec t;
    if (clock_gettime(clock, &t) != 0)
        return 0;
    return (uint64_t)t.tv_sec * SP_NS_PER_S + (uint64_t)t.tv_nsec;
}

uint64_t sp_clock_monotonic_ns(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

uint64_t sp_clock_monotonic_coarse_ns(void)
{
    return read_clock(CLOCK_MONOTONIC_COARSE);
}

uint64_t sp_clock_realtime_ns(void)
{
    return read_clock(CLOCK_REALTIME);
}

uint64_t sp_clock_own_cpu_ns(void)
{
    return read_clock(CLOCK_THREAD_CPUTIME_ID);
}

uint64_t sp_clock_process_cpu_ns(void)
{
    return read_clock(CLOCK_PROCESS_CPUTIME_ID);
}

bool sp_clock_thread_cpu_ns(pid_t tid, uint64_t *out)
{
    struct timespec t;
    if (clock_gettime(sp_clock_thread_cpu_id(tid), &t) != 0)
        return false;
    *out = (uint64_t)t.tv_sec * SP_NS_PER_S + (uint64_t)t.tv_nsec;
    return true;
}

struct timespec sp_timespec_from_ns(uint64_t ns)
{
    struct timespec t = {.tv_sec = (time_t)(ns / SP_NS_PER_S), .tv_nsec = (long)(ns % SP_NS_PER_S)};
    return t;
}
