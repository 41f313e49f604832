/* SPDX-License-Identifier: Apache-2.0 */
/* The interposed functions that take a lock and give it back. While nothing is sampled, a call is a
 * load, a branch, and a jump to the next function. Else the lock is tried first: if it was free,
 * the call is over. Any other result of the try is ignored: the call that waits is made, and
 * returns what it would return without this library. A thread that gives back a lock for which
 * others wait first writes its span and stack into their places. */
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>

#include "core/atomic.h"
#include "core/compiler.h"
#include "preload/next_locks.h"
#include "preload/owners.h"
#include "preload/waits.h"

/* --- a wait ----------------------------------------------------------------------------------- */

static int mutex_has_waited(const pthread_mutex_t *mutex, int result)
{
    bool is_owned = result == 0 || result == EOWNERDEAD;
    return sp_has_waited(result) && !(is_owned && sp_mutex_is_taken_again(mutex));
}

static int mtx_has_waited(int result)
{
    return result == thrd_success || result == thrd_timedout;
}

/* --- mutexes ---------------------------------------------------------------------------------- */

/* Returns 0, EBUSY, or another error when the mutex must not be tried and is not held. */
static inline __attribute__((always_inline)) int try_mutex(pthread_mutex_t *mutex)
{
    if (SP_LIKELY(sp_mutex_may_be_tried(mutex)))
        return sp_next_locks.pthread_mutex_trylock(mutex);
    return sp_mutex_is_held(mutex) ? EBUSY : ENOTSUP;
}

#define WAIT_FOR_MUTEX(mutex, tried, waiting, return_address)                                      \
    const sp_contention wait =                                                                     \
        sp_wait_begin(SP_CONTENTION_LOCK, mutex, sp_mutex_owner(mutex), (tried) == EBUSY);         \
    int result = waiting;                                                                          \
    return sp_wait_end(&wait, mutex_has_waited(mutex, result), result, return_address)

/* Try, then wait by WAITING. */
#define TAKE_MUTEX(mutex, waiting)                                                                 \
    int tried = try_mutex(mutex);                                                                  \
    if (SP_LIKELY(tried == 0))                                                                     \
        return 0;                                                                                  \
    WAIT_FOR_MUTEX(mutex, tried, waiting, RETURN_ADDRESS)

/* A function of its own, so that taking a free mutex saves no registers. */
static __attribute__((noinline)) int wait_for_mutex(pthread_mutex_t *mutex, int tried,
                                                    const void *return_address)
{
    WAIT_FOR_MUTEX(mutex, tried, sp_next_locks.pthread_mutex_lock(mutex), return_address);
}

PUBLIC int pthread_mutex_lock(pthread_mutex_t *mutex)
{
    if (!sp_wait_is_sampled())
        return sp_next_locks.pthread_mutex_lock(mutex);
    int tried = try_mutex(mutex);
    return SP_LIKELY(tried == 0) ? 0 : wait_for_mutex(mutex, tried, RETURN_ADDRESS);
}

PUBLIC int pthread_mutex_unlock(pthread_mutex_t *mutex)
{
    if (sp_wait_is_sampled() && sp_mutex_has_waiters(mutex))
        sp_wait_give(mutex, sp_mutex_owner(mutex), RETURN_ADDRESS);
    return sp_next_locks.pthread_mutex_unlock(mutex);
}

PUBLIC int pthread_mutex_timedlock(pthread_mutex_t *mutex, const struct timespec *until)
{
    if (!sp_wait_is_sampled())
        return sp_next_locks.pthread_mutex_timedlock(mutex, until);
    TAKE_MUTEX(mutex, sp_next_locks.pthread_mutex_timedlock(mutex, until));
}

/* The C library refuses an unknown clock even if the mutex is free. */
PUBLIC int pthread_mutex_clocklock(pthread_mutex_t *mutex, clockid_t clock,
                                   const struct timespec *until)
{
    if (!sp_wait_is_sampled() || !sp_is_clock(clock))
        return sp_next_locks.pthread_mutex_clocklock(mutex, clock, until);
    TAKE_MUTEX(mutex, sp_next_locks.pthread_mutex_clocklock(mutex, clock, until));
}

/* --- locks for readers and writers ------------------------------------------------------------ */

#define TAKE_RWLOCK(lock, trying, waiting)                                                         \
    int tried = sp_next_locks.trying(lock);                                                        \
    if (SP_LIKELY(tried == 0))                                                                     \
        return 0;                                                                                  \
    const sp_contention wait =                                                                     \
        sp_wait_begin(SP_CONTENTION_LOCK, lock, sp_rwlock_writer(lock), tried == EBUSY);           \
    int result = waiting;                                                                          \
    return sp_wait_end(&wait, sp_has_waited(result), result, RETURN_ADDRESS)

PUBLIC int pthread_rwlock_rdlock(pthread_rwlock_t *lock)
{
    if (!sp_wait_is_sampled())
        return sp_next_locks.pthread_rwlock_rdlock(lock);
    TAKE_RWLOCK(lock, pthread_rwlock_tryrdlock, sp_next_locks.pthread_rwlock_rdlock(lock));
}

PUBLIC int pthread_rwlock_wrlock(pthread_rwlock_t *lock)
{
    if (!sp_wait_is_sampled())
        return sp_next_locks.pthread_rwlock_wrlock(lock);
    TAKE_RWLOCK(lock, pthread_rwlock_trywrlock, sp_next_locks.pthread_rwlock_wrlock(lock));
}

PUBLIC int pthread_rwlock_unlock(pthread_rwlock_t *lock)
{
    if (sp_wait_is_sampled() && sp_wait_has_waiters(lock))
        sp_wait_give(lock, sp_rwlock_writer(lock), RETURN_ADDRESS);
    return sp_next_locks.pthread_rwlock_unlock(lock);
}

PUBLIC int pthread_rwlock_timedrdlock(pthread_rwlock_t *lock, const struct timespec *until)
{
    if (!sp_wait_is_sampled() || !sp_is_time(until))
        return sp_next_locks.pthread_rwlock_timedrdlock(lock, until);
    TAKE_RWLOCK(lock, pthread_rwlock_tryrdlock,
                sp_next_locks.pthread_rwlock_timedrdlock(lock, until));
}

PUBLIC int pthread_rwlock_timedwrlock(pthread_rwlock_t *lock, const struct timespec *until)
{
    if (!sp_wait_is_sampled() || !sp_is_time(until))
        return sp_next_locks.pthread_rwlock_timedwrlock(lock, until);
    TAKE_RWLOCK(lock, pthread_rwlock_trywrlock,
                sp_next_locks.pthread_rwlock_timedwrlock(lock, until));
}

PUBLIC int pthread_rwlock_clockrdlock(pthread_rwlock_t *lock, clockid_t clock,
                                      const struct timespec *until)
{
    if (!sp_wait_is_sampled() || !sp_is_clock(clock) || !sp_is_time(until))
        return sp_next_locks.pthread_rwlock_clockrdlock(lock, clock, until);
    TAKE_RWLOCK(lock, pthread_rwlock_tryrdlock,
                sp_next_locks.pthread_rwlock_clockrdlock(lock, clock, until));
}

PUBLIC int pthread_rwlock_clockwrlock(pthread_rwlock_t *lock, clockid_t clock,
                                      const struct timespec *until)
{
    if (!sp_wait_is_sampled() || !sp_is_clock(clock) || !sp_is_time(until))
        return sp_next_locks.pthread_rwlock_clockwrlock(lock, clock, until);
    TAKE_RWLOCK(lock, pthread_rwlock_trywrlock,
                sp_next_locks.pthread_rwlock_clockwrlock(lock, clock, until));
}

/* --- C11 -------------------------------------------------------------------------------------- */

#define TAKE_MTX(mutex, waiting)                                                                   \
    int tried = sp_next_locks.mtx_trylock(mutex);                                                  \
    if (SP_LIKELY(tried == thrd_success))                                                          \
        return tried;                                                                              \
    const sp_contention wait =                                                                     \
        sp_wait_begin(SP_CONTENTION_LOCK, mutex, sp_mtx_owner(mutex), tried == thrd_busy);         \
    int result = waiting;                                                                          \
    return sp_wait_end(&wait, mtx_has_waited(result), result, RETURN_ADDRESS)

PUBLIC int mtx_lock(mtx_t *mutex)
{
    if (!sp_wait_is_sampled())
        return sp_next_locks.mtx_lock(mutex);
    TAKE_MTX(mutex, sp_next_locks.mtx_lock(mutex));
}

PUBLIC int mtx_timedlock(mtx_t *restrict mutex, const struct timespec *restrict until)
{
    if (!sp_wait_is_sampled())
        return sp_next_locks.mtx_timedlock(mutex, until);
    TAKE_MTX(mutex, sp_next_locks.mtx_timedlock(mutex, until));
}

PUBLIC int mtx_unlock(mtx_t *mutex)
{
    if (sp_wait_is_sampled() && sp_mtx_has_waiters(mutex))
        sp_wait_give(mutex, sp_mtx_owner(mutex), RETURN_ADDRESS);
    return sp_next_locks.mtx_unlock(mutex);
}
