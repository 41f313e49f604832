/* SPDX-License-Identifier: Apache-2.0 */
/* Clocks, all in nanoseconds. Threads: any. */
#ifndef SP_CORE_CLOCK_H
#define SP_CORE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#define SP_NS_PER_MS UINT64_C(1000000)
#define SP_NS_PER_S  UINT64_C(1000000000)

uint64_t sp_clock_monotonic_ns(void);
uint64_t sp_clock_monotonic_coarse_ns(
    void); /* the time of the kernel's last timer tick; four times as fast */
uint64_t sp_clock_realtime_ns(void);
uint64_t sp_clock_process_cpu_ns(void);
uint64_t sp_clock_own_cpu_ns(void); /* of the calling thread */

/* The clock id of the CPU time of thread TID of this process (the kernel's encoding,
 * linux/posix-timers_types.h). */
static inline clockid_t sp_clock_thread_cpu_id(pid_t tid)
{
    return (clockid_t)((~(unsigned)tid << 3) | 6u);
}

/* CPU time of thread TID of this process in *OUT, read from outside. False when the thread is gone.
 */
bool sp_clock_thread_cpu_ns(pid_t tid, uint64_t *out);

/* NOW + NS, or UINT64_MAX when that overflows (a deadline that never passes). */
static inline uint64_t sp_deadline_after(uint64_t now, uint64_t ns)
{
    return ns > UINT64_MAX - now ? UINT64_MAX : now + ns;
}

struct timespec sp_timespec_from_ns(uint64_t ns);

#endif
