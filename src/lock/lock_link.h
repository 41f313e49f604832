/* SPDX-License-Identifier: Apache-2.0 */
/* How libspanprof-preload.so, which sees the waits for locks, and the SDK, which samples them, know
 * each other. The library exports one function, spanprof_preload_locks, which returns an
 * sp_lock_preload; the SDK finds it by name, and fills in its functions. Both sides may be of
 * different versions, and the SDK may come in several copies: one at a time samples. */
#ifndef SP_LOCK_LOCK_LINK_H
#define SP_LOCK_LOCK_LINK_H

#include <stdatomic.h>
#include <stdint.h>

#include "call/sampling_thread.h"

/* What a thread waits for. */
typedef enum sp_contention_kind {
    SP_CONTENTION_LOCK = 0, /* a lock that another thread holds */
    SP_CONTENTION_CONDITION,
    SP_CONTENTION_SEMAPHORE,
} sp_contention_kind;

/* A wait, from its begin to its end. The library sets the kind, the SDK all else. */
typedef struct sp_contention {
    uint64_t begin_ns; /* 0: it is not counted */
    /* The span under which another thread held the lock when the wait began; ids as in memory, all
     * zero for none. */
    uint64_t holder_trace_id[2];
    uint64_t holder_span_id;
    uint32_t kind; /* sp_contention_kind */
} sp_contention;

/* The calling thread is about to wait for a lock that is taken, a semaphore or a condition. *OWNER:
 * the thread id of who holds it, which may change at any moment, 0 for nobody; OWNER is NULL where
 * that is not known. */
typedef void sp_lock_begins(sp_contention *wait, const int *owner);
/* WAIT is over. RETURN_ADDRESS is the interposed function's. */
typedef void sp_lock_ends(sp_sampling_thread *thread, const sp_contention *wait,
                          const void *return_address);

enum { SP_LOCK_PRELOAD_VERSION = 2 };

typedef struct sp_lock_preload {
    uint32_t version;
    _Atomic uint32_t run; /* 0: nothing is sampled. Written last (release) */
    _Atomic(sp_lock_begins *) begins;
    _Atomic(sp_lock_ends *) ends; /* both stay once they are there */
} sp_lock_preload;

/* NULL when the library does not know VERSION. */
typedef sp_lock_preload *sp_lock_preload_function(uint32_t version);

#endif
