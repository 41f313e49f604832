/* SPDX-License-Identifier: Apache-2.0 */
/* The next functions for locks after this library's: the C library's. */
#ifndef SP_PRELOAD_NEXT_LOCKS_H
#define SP_PRELOAD_NEXT_LOCKS_H

#include <pthread.h>
#include <semaphore.h>
#include <threads.h>
#include <time.h>

/* Name, parameters, arguments. */
#define SP_NEXT_LOCKS(X)                                                                           \
    X(pthread_mutex_lock, (pthread_mutex_t * lock), (lock))                                        \
    X(pthread_mutex_trylock, (pthread_mutex_t * lock), (lock))                                     \
    X(pthread_mutex_unlock, (pthread_mutex_t * lock), (lock))                                      \
    X(pthread_mutex_timedlock, (pthread_mutex_t * lock, const struct timespec *until),             \
      (lock, until))                                                                               \
    X(pthread_mutex_clocklock,                                                                     \
      (pthread_mutex_t * lock, clockid_t clock, const struct timespec *until),                     \
      (lock, clock, until))                                                                        \
    X(pthread_rwlock_rdlock, (pthread_rwlock_t * lock), (lock))                                    \
    X(pthread_rwlock_unlock, (pthread_rwlock_t * lock), (lock))                                    \
    X(pthread_rwlock_tryrdlock, (pthread_rwlock_t * lock), (lock))                                 \
    X(pthread_rwlock_timedrdlock, (pthread_rwlock_t * lock, const struct timespec *until),         \
      (lock, until))                                                                               \
    X(pthread_rwlock_wrlock, (pthread_rwlock_t * lock), (lock))                                    \
    X(pthread_rwlock_trywrlock, (pthread_rwlock_t * lock), (lock))                                 \
    X(pthread_rwlock_timedwrlock, (pthread_rwlock_t * lock, const struct timespec *until),         \
      (lock, until))                                                                               \
    X(pthread_rwlock_clockrdlock,                                                                  \
      (pthread_rwlock_t * lock, clockid_t clock, const struct timespec *until),                    \
      (lock, clock, until))                                                                        \
    X(pthread_rwlock_clockwrlock,                                                                  \
      (pthread_rwlock_t * lock, clockid_t clock, const struct timespec *until),                    \
      (lock, clock, until))                                                                        \
    X(pthread_cond_wait, (pthread_cond_t * condition, pthread_mutex_t * lock), (condition, lock))  \
    X(pthread_cond_timedwait,                                                                      \
      (pthread_cond_t * condition, pthread_mutex_t * lock, const struct timespec *until),          \
      (condition, lock, until))                                                                    \
    X(pthread_cond_clockwait,                                                                      \
      (pthread_cond_t * condition, pthread_mutex_t * lock, clockid_t clock,                        \
       const struct timespec *until),                                                              \
      (condition, lock, clock, until))                                                             \
    X(cnd_wait, (cnd_t * condition, mtx_t * lock), (condition, lock))                              \
    X(cnd_timedwait, (cnd_t * condition, mtx_t * lock, const struct timespec *until),              \
      (condition, lock, until))                                                                    \
    X(sem_wait, (sem_t * semaphore), (semaphore))                                                  \
    X(sem_trywait, (sem_t * semaphore), (semaphore))                                               \
    X(sem_timedwait, (sem_t * semaphore, const struct timespec *until), (semaphore, until))        \
    X(sem_clockwait, (sem_t * semaphore, clockid_t clock, const struct timespec *until),           \
      (semaphore, clock, until))                                                                   \
    X(mtx_lock, (mtx_t * lock), (lock))                                                            \
    X(mtx_unlock, (mtx_t * lock), (lock))                                                          \
    X(mtx_trylock, (mtx_t * lock), (lock))                                                         \
    X(mtx_timedlock, (mtx_t * lock, const struct timespec *until), (lock, until))

typedef struct sp_lock_functions {
#define SP_NEXT_LOCK(name, parameters, arguments) int(*name) parameters;
    SP_NEXT_LOCKS(SP_NEXT_LOCK)
#undef SP_NEXT_LOCK
} sp_lock_functions;

/* All are found when the library is initialized. A function that is called earlier is found at that
 * call. */
extern sp_lock_functions sp_next_locks;

#endif
