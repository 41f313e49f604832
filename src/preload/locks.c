/* SPDX-License-Identifier: Apache-2.0 */
/* The functions that take a lock, in front of the C library's. While nothing is sampled: a load and
 * a branch, then the next function is entered by a jump. Else the lock is tried first: when it is
 * free, the call is over. What a try answers instead of "taken" is not passed on: the call that
 * waits finds out by itself, and so does what it always did. */
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>

#include "core/atomic.h"
#include "core/compiler.h"
#include "preload/next_locks.h"
#include "preload/waits.h"

/* --- who holds it ----------------------------------------------------------------------------- */

#if defined(__GLIBC__)
static const int *mutex_owner(const pthread_mutex_t *mutex)
{
    return &mutex->__data.__owner;
}

static const int *writer(const pthread_rwlock_t *lock)
{
    return &lock->__data.__cur_writer;
}

/* glibc's bits of a mutex's kind and of its lock word, which have to stay what they are: programs
 * have them compiled in. */
enum { KIND_ROBUST = 16, WORD_OWNER = 0x3fffffff, WORD_OWNER_DIED = 0x40000000 };

/* A robust mutex that cannot be recovered must not be tried: glibc's trylock then leaves it locked,
 * and the next call waits for ever. */
static inline int may_be_tried(const pthread_mutex_t *mutex)
{
    return !(__atomic_load_n(&mutex->__data.__kind, __ATOMIC_RELAXED) & KIND_ROBUST);
}

/* What a try would say, of a mutex that must not be tried. */
static int is_held(const pthread_mutex_t *mutex)
{
    int word = __atomic_load_n(&mutex->__data.__lock, __ATOMIC_RELAXED);
    return (word & WORD_OWNER) != 0 && !(word & WORD_OWNER_DIED);
}

/* The calling thread has MUTEX, and had it before. */
static int is_taken_again(const pthread_mutex_t *mutex)
{
    return mutex->__data.__count > 1;
}

/* glibc's mtx_t is a pthread_mutex_t of another name. */
static const int *mtx_owner(const mtx_t *mutex)
{
    return mutex_owner((const pthread_mutex_t *)(const void *)mutex);
}
#else
static inline int may_be_tried(const pthread_mutex_t *mutex)
{
    (void)mutex;
    return 1;
}

static int is_held(const pthread_mutex_t *mutex)
{
    (void)mutex;
    return 0;
}

static int is_taken_again(const pthread_mutex_t *mutex)
{
    (void)mutex;
    return 0;
}

static const int *mutex_owner(const pthread_mutex_t *mutex)
{
    (void)mutex;
    return NULL;
}

static const int *writer(const pthread_rwlock_t *lock)
{
    (void)lock;
    return NULL;
}

static const int *mtx_owner(const mtx_t *mutex)
{
    (void)mutex;
    return NULL;
}
#endif

/* --- a wait ----------------------------------------------------------------------------------- */

static int mutex_has_waited(const pthread_mutex_t *mutex, int result)
{
    bool is_owned = result == 0 || result == EOWNERDEAD;
    return sp_has_waited(result) && !(is_owned && is_taken_again(mutex));
}

static int mtx_has_waited(int result)
{
    return result == thrd_success || result == thrd_timedout;
}

/* --- mutexes ---------------------------------------------------------------------------------- */

/* 0, EBUSY, or another number when the mutex may not be tried and is free. */
static inline __attribute__((always_inline)) int try_mutex(pthread_mutex_t *mutex)
{
    if (SP_LIKELY(may_be_tried(mutex)))
        return sp_next_locks.pthread_mutex_trylock(mutex);
    return is_held(mutex) ? EBUSY : ENOTSUP;
}

/* Try, then wait by WAITING. */
#define TAKE_MUTEX(mutex, waiting)                                                                 \
    int tried = try_mutex(mutex);                                                                  \
    if (SP_LIKELY(tried == 0))                                                                     \
        return 0;                                                                                  \
    const sp_contention wait =                                                                     \
        sp_wait_begin(SP_CONTENTION_LOCK, mutex_owner(mutex), tried == EBUSY);                     \
    int result = waiting;                                                                          \
    return sp_wait_end(&wait, mutex_has_waited(mutex, result), result, RETURN_ADDRESS)

PUBLIC int pthread_mutex_lock(pthread_mutex_t *mutex)
{
    if (!sp_wait_is_sampled())
        return sp_next_locks.pthread_mutex_lock(mutex);
    TAKE_MUTEX(mutex, sp_next_locks.pthread_mutex_lock(mutex));
}

PUBLIC int pthread_mutex_timedlock(pthread_mutex_t *mutex, const struct timespec *until)
{
    if (!sp_wait_is_sampled())
        return sp_next_locks.pthread_mutex_timedlock(mutex, until);
    TAKE_MUTEX(mutex, sp_next_locks.pthread_mutex_timedlock(mutex, until));
}

/* A clock that it does not know is refused also when the mutex is free. */
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
    const sp_contention wait = sp_wait_begin(SP_CONTENTION_LOCK, writer(lock), tried == EBUSY);    \
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
        sp_wait_begin(SP_CONTENTION_LOCK, mtx_owner(mutex), tried == thrd_busy);                   \
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
