/* SPDX-License-Identifier: Apache-2.0 */
/* Time that the host of a virtual machine takes while threads are on a core ("steal",
 * proc_stat(5)). Such a thread neither runs nor waits: no clock of its own counts that time. Two
 * sources measure it. (1) Visits at random moments find threads on a core in proportion to the time
 * that they are there, steal included, and their CPU clocks count the time without it: the
 * difference is steal, with the error of a sample. (2) The kernel counts exactly what the host took
 * of all cores, but most of that is time of cores that were about to wake, where it prolongs a
 * wait. So (1) is the estimate and (2) its upper bound: when the kernel counts no steal, the result
 * is 0. Threads: one. Signals: not safe. */
#ifndef SP_CORE_STEAL_H
#define SP_CORE_STEAL_H

#include <stdint.h>

/* Sums over the last windows, in which older windows weigh less. The two members of a line have the
 * same unit of time. */
typedef struct sp_steal {
    double on_core, ran; /* of threads that are visited */
    double busy, stolen; /* of the machine */
    uint64_t last_busy, last_stolen;
} sp_steal;

/* Begin to measure. *STEAL is all zero. */
void sp_steal_begin(sp_steal *steal);
/* A window has ended, in which threads were ON_CORE_NS on a core, by visits, and RAN_NS, by their
 * clocks. Returns the stolen time as a fraction of RAN_NS: 0.03 means 30 ms for each second that
 * the threads ran. 0 where /proc/stat cannot be read. */
double sp_steal_share(sp_steal *steal, uint64_t on_core_ns, uint64_t ran_ns);
/* The same with STAT in place of the text of /proc/stat. */
double sp_steal_share_of(sp_steal *steal, const char *stat, uint64_t on_core_ns, uint64_t ran_ns);

#endif
