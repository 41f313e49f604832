/* SPDX-License-Identifier: Apache-2.0 */
/* The CPU time that a perf event does not count. Its clock stops while the kernel switches the
 * thread in and out, and the thread's CPU clock does not. The difference is 1 to 5 µs in each time
 * slice, which is a few percent for a thread that works for 100 µs and then sleeps. So the event's
 * period is made shorter by that share, and there is one tick in each period of the thread's CPU
 * clock, as with a timer.
 *
 * The kernel counts the slices (/proc/self/task/TID/schedstat). The loss in a slice depends on the
 * machine and on how long the thread sleeps, so it is estimated for each thread: CPU time less
 * weights, divided by slices, at most LOSS_MAX. Nothing else shortens a period: if a thread lost
 * ticks because it blocked the signal, its few slices do not explain the loss. The ticks stay lost,
 * and their time is unattributed. Threads: under the engine's lock. Signals: not safe. */
#ifndef SP_CPU_SWITCH_LOSS_H
#define SP_CPU_SWITCH_LOSS_H

#include "cpu/cpu_threads_sig.h"

/* The period of THREAD's event that gives one tick in PERIOD_NS of its CPU clock. Uses the thread's
 * work since the last call that had enough data; without enough data it returns the previous
 * result. */
uint64_t sp_switch_loss_period(sp_thread *thread, uint64_t period_ns);

#endif
