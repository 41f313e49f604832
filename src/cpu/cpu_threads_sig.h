/* SPDX-License-Identifier: Apache-2.0 */
/* The CPU engine's data of each thread: an array, indexed by the slot of the registry. The memory
 * of slots that were never used is never touched. Threads: under the engine's lock, except that the
 * handler on the thread itself reads `timer`. Fork: the child forgets all tickers. */
#ifndef SP_CPU_CPU_THREADS_SIG_H
#define SP_CPU_CPU_THREADS_SIG_H

#include <stdint.h>
#include <time.h>

#include "context/thread.h"

/* What makes a thread tick: a timer, or a perf event (cpu_source.h). */
typedef struct sp_ticker {
    const struct sp_cpu_source *source; /* NULL: it is closed */
    _Atomic(timer_t) timer;
    int fd;
    uint64_t event_id; /* the kernel's id of the event; shows whether fd is still that event */
} sp_ticker;

/* The work of a thread up to a check, and the CPU time that its event loses in a time slice
 * (switch_loss.h). */
typedef struct sp_slices {
    uint64_t cpu_ns, count, weights;
} sp_slices;

typedef struct sp_switch_loss {
    sp_slices seen_at, learned_at;
    double slice_ns;
} sp_switch_loss;

/* Invariants: ticker.source is set from the moment that the thread is armed by a signal until its
 * ticker is closed, which happens before the slot serves another thread. excluded_cpu_ns is of the
 * thread that had the generation excluded_of of the slot. */
typedef struct sp_cpu_thread {
    sp_ticker ticker;
    sp_switch_loss switch_loss;
    int64_t excluded_cpu_ns; /* CPU time during pauses */
    uint32_t excluded_of;
} sp_cpu_thread;

extern sp_cpu_thread sp_cpu_threads[SP_THREADS_MAX];

/* By the state's address, not by its member `slot`: a handler that gets a state from a signal is
 * not ordered with the store of `slot`. */
SP_SIGSAFE static inline sp_cpu_thread *sp_cpu_thread_of(const sp_thread *thread)
{
    return &sp_cpu_threads[thread - sp_thread_states];
}

#endif
