/* SPDX-License-Identifier: Apache-2.0 */
/* The interface between libspanprof-preload.so, which intercepts waits for locks, and the SDK,
 * which samples them. The library exports one function, spanprof_preload_locks, which returns an
 * sp_lock_preload; the SDK finds it by name, and fills in its functions. Both sides may be of
 * different versions, and there may be several copies of the SDK, of which one at a time
 * samples. */
#ifndef SP_LOCK_LOCK_LINK_H
#define SP_LOCK_LOCK_LINK_H

#include <stdatomic.h>
#include <stdint.h>

#include "call/sampling_thread.h"
#include "context/ring_sig.h"
#include "core/atomic.h"

/* What a thread waits for. */
typedef enum sp_contention_kind {
    SP_CONTENTION_LOCK = 0, /* a lock that another thread holds */
    SP_CONTENTION_CONDITION,
    SP_CONTENTION_SEMAPHORE,
} sp_contention_kind;

/* A wait, from its begin to its end. The library sets kind and lock, the SDK sets the other
 * members. */
typedef struct sp_contention {
    uint64_t begin_ns; /* 0: it is not counted */
    /* The span under which another thread held the lock when the wait began; ids are in memory
     * order, all zero for none. */
    uint64_t holder_trace_id[2];
    uint64_t holder_span_id;
    uint32_t kind;    /* sp_contention_kind */
    uint32_t place;   /* its number in the table of waiters, plus one; 0: none */
    const void *lock; /* the lock, condition or semaphore that is waited for */
} sp_contention;

/* --- waiters ---------------------------------------------------------------------------------- */

/* Waiters of one lock are in one set. A set has SP_LOCK_WAYS places; further waiters have none. */
enum { SP_LOCK_SETS = 32, SP_LOCK_WAYS = 8 };

static inline uint32_t sp_lock_set(const void *lock)
{
    return (uint32_t)((uint64_t)(uintptr_t)lock * UINT64_C(0x9e3779b97f4a7c15) >> 59);
}

_Static_assert(SP_LOCK_SETS == 1 << (64 - 59), "a hash of so many bits");

/* The thread that gave a lock back: its span, as in sp_call_holder, and its stack, an
 * sp_sample_record. */
typedef struct sp_lock_giver {
    sp_call_holder span;
    uint64_t stack[sizeof(sp_sample_record) / sizeof(uint64_t) + SP_CALL_HOLDER_DEPTH];
} sp_lock_giver;

static inline sp_sample_record *sp_lock_giver_stack(const sp_lock_giver *giver)
{
    return (sp_sample_record *)(uintptr_t)giver->stack; // NOLINT(performance-no-int-to-ptr)
}

/* A wait that is under way (src/lock/lock_waiters.h). */
typedef struct sp_lock_waiter {
    _Alignas(SP_CACHE_LINE) _Atomic uint32_t state;
    _Atomic(const void *) lock;
    _Atomic uint64_t due_ns; /* the next moment that is sampled */
    uint64_t period_ns;      /* mean time between two sampled moments */
    uint64_t accounted_ns;   /* time that the moments so far represent */
    sp_lock_giver giver;
} sp_lock_waiter;

/* Zero-initialised. */
typedef struct sp_lock_waiters {
    _Atomic uint32_t waiting[SP_LOCK_SETS]; /* number of waiters in each set */
    sp_lock_waiter places[SP_LOCK_SETS][SP_LOCK_WAYS];
} sp_lock_waiters;

/* --- the functions ---------------------------------------------------------------------------- */

/* The calling thread is about to wait for WAIT's lock, which is taken, or for its condition or
 * semaphore. *OWNER: the id of the thread that holds the lock, which may change at any moment; 0:
 * none. OWNER is NULL if that is not known. */
typedef void sp_lock_begins(sp_sampling_thread *thread, sp_contention *wait, const int *owner);
/* The function that waited has returned; WAIT was begun. HAS_WAITED: the wait counts.
 * RETURN_ADDRESS is the interposed function's. */
typedef void sp_lock_ends(sp_sampling_thread *thread, const sp_contention *wait, int has_waited,
                          const void *return_address);
/* The calling thread is about to give LOCK back, which others wait for. OWNER is as above. */
typedef void sp_lock_gives(const void *lock, const int *owner, const void *return_address);

enum { SP_LOCK_PRELOAD_VERSION = 5 };

typedef struct sp_lock_preload {
    uint32_t version;
    _Atomic uint32_t run; /* 0: nothing is sampled. Written last (release) */
    _Atomic(sp_lock_begins *) begins;
    _Atomic(sp_lock_ends *) ends;
    _Atomic(sp_lock_gives *) gives; /* once set, all three stay */
    sp_lock_waiters waiters;
} sp_lock_preload;

/* NULL when the library does not know VERSION. */
typedef sp_lock_preload *sp_lock_preload_function(uint32_t version);

#endif
