/* SPDX-License-Identifier: Apache-2.0 */
/* Time that the host of a virtual machine takes while threads are on a core ("steal",
 * proc_stat(5)). Such a thread neither runs nor waits: no clock of its own counts that time. How
 * much it was comes from two sides. Visits at random moments find threads on a core as long as they
 * are there, steal included, and their CPU clocks tell how long they ran: the difference is steal,
 * but spreads as samples do. The kernel tells exactly what the host took of all cores, but most of
 * that is from cores that were just to wake, where it is the end of a wait. So the first is the
 * estimate and the second its bound: without steal there is none. Threads: one.  Signals: not safe.
 */
#ifndef SP_CORE_STEAL_H
#define SP_CORE_STEAL_H

#include <stdint.h>

/* Any unit of time, but the same for both in a line. Sums of the last windows, older ones less and
 * less. */
typedef struct sp_steal {
    double on_core, ran; /* of threads that are visited */
    double busy, stolen; /* of the machine */
    uint64_t last_busy, last_stolen;
} sp_steal;

/* From here on. *STEAL is all zero. */
void sp_steal_begin(sp_steal *steal);
/* A window has ended, in which threads were ON_CORE_NS on a core, by visits, and RAN_NS, by their
 * clocks. Returns what was stolen beside RAN_NS as a part of it: 0.03 means 30 ms beside each
 * second. 0 where /proc/stat cannot be read. */
double sp_steal_share(sp_steal *steal, uint64_t on_core_ns, uint64_t ran_ns);
/* The same with what /proc/stat would say. */
double sp_steal_share_of(sp_steal *steal, const char *stat, uint64_t on_core_ns, uint64_t ran_ns);

#endif
