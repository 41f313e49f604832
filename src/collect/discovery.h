/* SPDX-License-Identifier: Apache-2.0 */
/* Decides when the collector scans for threads that have not attached. (The wall profiler scans in
 * its rounds, too: wall_rounds.c.) A listing of /proc/self/task costs 2 µs a thread, so it is made
 * when there is a reason: the number of threads changed (one system call), or known ones ended, or
 * CPU time passed that no thread's ticks account for, or a second passed. The check runs every
 * 40 ms, so a busy thread is found before it has used 50 ms. Collector thread only.
 *
 * A timer on the process's CPU clock is not used. Before Linux 6.4 its signal is delivered to any
 * thread, even to one that sleeps, whose system call then ends with EINTR. And if our thread waited
 * for that signal, it could take one that the host sent to the process. */
#ifndef SP_COLLECT_DISCOVERY_H
#define SP_COLLECT_DISCOVERY_H

#include "collect/drain.h"

/* Zero-initialised. */
typedef struct sp_discovery {
    uint64_t checked_at_ns; /* monotonic */
    uint64_t scanned_at_ns; /* monotonic */
    uint64_t scan_took_ns;  /* CPU time */
    uint64_t asked_at_ns;   /* when the CPU clocks were read; monotonic */
    uint64_t asking_took_ns;
    int64_t ahead_ns; /* of the process's clock, before the weights, at the last scan */
    bool warned_unreadable;
} sp_discovery;

/* Whether there is a reason to scan. Reads clocks only. */
bool sp_discovery_is_due(sp_discovery *discovery, const sp_drain *drain);
/* Scan; no other scan of this process may run meanwhile. */
void sp_discovery_scan(sp_discovery *discovery);

#endif
