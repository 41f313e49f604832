/* SPDX-License-Identifier: Apache-2.0 */
/* The interposed functions that wait for a condition or a semaphore. A call for a condition always
 * waits. A semaphore is tried first, like a lock. All are cancellation points: a thread that is
 * cancelled leaves by an exception that goes through these functions, and there is nothing to clean
 * up. */
#include <stdbool.h>
#include <stddef.h>

#include "preload/next_locks.h"
#include "preload/owners.h"
#include "preload/waits.h"

/* --- conditions ------------------------------------------------------------------------------- */

/* A wait for a condition gives the mutex back, as an unlock does. HAS_WAITED is an expression that
 * may use RESULT. */
#define WAIT(kind, condition, mutex, waiting, has_waited)                                          \
    if (sp_##kind##_has_waiters(mutex))                                                            \
        sp_wait_give(mutex, sp_##kind##_owner(mutex), RETURN_ADDRESS);                             \
    const sp_contention wait = sp_wait_begin(SP_CONTENTION_CONDITION, condition, NULL, true);      \
    int result = waiting;                                                                          \
    return sp_wait_end(&wait, has_waited, result, RETURN_ADDRESS)

PUBLIC int pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *mutex)
{
    if (!sp_wait_is_sampled())
        return sp_next_locks.pthread_cond_wait(condition, mutex);
    WAIT(mutex, condition, mutex, sp_next_locks.pthread_cond_wait(condition, mutex),
         sp_has_waited(result));
}

PUBLIC int pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *mutex,
                                  const struct timespec *until)
{
    if (!sp_wait_is_sampled())
        return sp_next_locks.pthread_cond_timedwait(condition, mutex, until);
    WAIT(mutex, condition, mutex, sp_next_locks.pthread_cond_timedwait(condition, mutex, until),
         sp_has_waited(result));
}

PUBLIC int pthread_cond_clockwait(pthread_cond_t *condition, pthread_mutex_t *mutex,
                                  clockid_t clock, const struct timespec *until)
{
    if (!sp_wait_is_sampled())
        return sp_next_locks.pthread_cond_clockwait(condition, mutex, clock, until);
    WAIT(mutex, condition, mutex,
         sp_next_locks.pthread_cond_clockwait(condition, mutex, clock, until),
         sp_has_waited(result));
}

static int has_waited_in_c11(int result)
{
    return result == thrd_success || result == thrd_timedout;
}

PUBLIC int cnd_wait(cnd_t *condition, mtx_t *mutex)
{
    if (!sp_wait_is_sampled())
        return sp_next_locks.cnd_wait(condition, mutex);
    WAIT(mtx, condition, mutex, sp_next_locks.cnd_wait(condition, mutex),
         has_waited_in_c11(result));
}

PUBLIC int cnd_timedwait(cnd_t *restrict condition, mtx_t *restrict mutex,
                         const struct timespec *restrict until)
{
    if (!sp_wait_is_sampled())
        return sp_next_locks.cnd_timedwait(condition, mutex, until);
    WAIT(mtx, condition, mutex, sp_next_locks.cnd_timedwait(condition, mutex, until),
         has_waited_in_c11(result));
}

/* --- semaphores ------------------------------------------------------------------------------- */

/* A try keeps errno. A pending cancellation acts even if the semaphore is free. */
static int try_semaphore(sem_t *semaphore)
{
    int before = errno;
    pthread_testcancel();
    int error = sp_next_locks.sem_trywait(semaphore) == 0 ? 0 : errno;
    errno = before;
    return error;
}

/* A signal handler ends a wait, too. */
static int semaphore_has_waited(int result)
{
    return result == 0 || errno == ETIMEDOUT || errno == EINTR;
}

#define TAKE_SEMAPHORE(semaphore, waiting)                                                         \
    int tried = try_semaphore(semaphore);                                                          \
    if (tried == 0)                                                                                \
        return 0;                                                                                  \
    const sp_contention wait =                                                                     \
        sp_wait_begin(SP_CONTENTION_SEMAPHORE, semaphore, NULL, tried == EAGAIN);                  \
    int result = waiting;                                                                          \
    return sp_wait_end(&wait, semaphore_has_waited(result), result, RETURN_ADDRESS)

PUBLIC int sem_wait(sem_t *semaphore)
{
    if (!sp_wait_is_sampled())
        return sp_next_locks.sem_wait(semaphore);
    TAKE_SEMAPHORE(semaphore, sp_next_locks.sem_wait(semaphore));
}

PUBLIC int sem_timedwait(sem_t *restrict semaphore, const struct timespec *restrict until)
{
    if (!sp_wait_is_sampled() || !sp_is_time(until))
        return sp_next_locks.sem_timedwait(semaphore, until);
    TAKE_SEMAPHORE(semaphore, sp_next_locks.sem_timedwait(semaphore, until));
}

PUBLIC int sem_clockwait(sem_t *restrict semaphore, clockid_t clock,
                         const struct timespec *restrict until)
{
    if (!sp_wait_is_sampled() || !sp_is_clock(clock) || !sp_is_time(until))
        return sp_next_locks.sem_clockwait(semaphore, clock, until);
    TAKE_SEMAPHORE(semaphore, sp_next_locks.sem_clockwait(semaphore, clock, until));
}
