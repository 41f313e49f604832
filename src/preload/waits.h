/* SPDX-License-Identifier: Apache-2.0 */
/* Reports waits to the SDK. Shared by the interposed functions of locks.c and conditions.c.
 * Threads: any. Signals: as the interposed function. Fork: nothing to do. */
#ifndef SP_PRELOAD_WAITS_H
#define SP_PRELOAD_WAITS_H

#include <errno.h>
#include <time.h>

#include "core/atomic.h"
#include "core/compiler.h"
#include "lock/lock_link.h"

#define PUBLIC         __attribute__((visibility("default")))
#define HIDDEN         __attribute__((visibility("hidden")))
#define RETURN_ADDRESS __builtin_return_address(0)

extern HIDDEN sp_lock_preload sp_preload_waits;

static inline int sp_wait_is_sampled(void)
{
    return SP_UNLIKELY(sp_load_relaxed(&sp_preload_waits.run) != 0);
}

/* A wait for LOCK begins; OWNER is as for sp_lock_begins. The wait is not counted unless
 * IS_TAKEN. */
HIDDEN sp_contention sp_wait_begin(sp_contention_kind kind, const void *lock, const int *owner,
                                   int is_taken);
/* The wait is over. Returns RESULT, and keeps errno. The wait is not counted unless HAS_WAITED. */
HIDDEN int sp_wait_end(const sp_contention *wait, int has_waited, int result,
                       const void *return_address);

/* The calling thread is about to give LOCK back. OWNER is as for sp_lock_gives. */
HIDDEN void sp_wait_give(const void *lock, const int *owner, const void *return_address);

/* Whether some thread waits for LOCK, or for another lock of its set. */
static inline int sp_wait_has_waiters(const void *lock)
{
    return sp_load_relaxed(&sp_preload_waits.waiters.waiting[sp_lock_set(lock)]) != 0;
}

/* Whether RESULT is that of a wait: errors such as EDEADLK are returned at once. */
static inline int sp_has_waited(int result)
{
    return result == 0 || result == ETIMEDOUT || result == EOWNERDEAD || result == ENOTRECOVERABLE;
}

/* The C library checks the time limit of an rwlock or a semaphore even if it is free. So a lock is
 * not tried with a limit that the library refuses. */
static inline int sp_is_time(const struct timespec *until)
{
    return until->tv_nsec >= 0 && until->tv_nsec < 1000000000;
}

/* The C library refuses an unknown clock even if the lock is free. */
static inline int sp_is_clock(clockid_t clock)
{
    return clock == CLOCK_REALTIME || clock == CLOCK_MONOTONIC;
}

#endif
