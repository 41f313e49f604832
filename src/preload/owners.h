/* SPDX-License-Identifier: Apache-2.0 */
/* Reads from glibc's locks which thread holds them, and whether others wait. For another C library
 * nothing is known, and holders are not named. Threads: any. Signals: safe. */
#ifndef SP_PRELOAD_OWNERS_H
#define SP_PRELOAD_OWNERS_H

#include <pthread.h>
#include <stddef.h>
#include <threads.h>

#include "preload/waits.h"

#if defined(__GLIBC__)
/* glibc's bits of a mutex's kind and of its lock word. They cannot change, because programs are
 * compiled with them. */
enum { SP_KIND_ROBUST = 16, SP_WORD_OWNER = 0x3fffffff, SP_WORD_OWNER_DIED = 0x40000000 };

/* Points to the id of the thread that holds MUTEX; the id is 0 when none does. */
static inline const int *sp_mutex_owner(const pthread_mutex_t *mutex)
{
    return &mutex->__data.__owner;
}

/* The same for the thread that holds LOCK for writing. */
static inline const int *sp_rwlock_writer(const pthread_rwlock_t *lock)
{
    return &lock->__data.__cur_writer;
}

static inline int sp_mutex_word(const pthread_mutex_t *mutex)
{
    return __atomic_load_n(&mutex->__data.__lock, __ATOMIC_RELAXED);
}

/* A robust mutex that cannot be recovered must not be tried: glibc's trylock then leaves it locked,
 * and the next call waits for ever. */
static inline int sp_mutex_may_be_tried(const pthread_mutex_t *mutex)
{
    return !(__atomic_load_n(&mutex->__data.__kind, __ATOMIC_RELAXED) & SP_KIND_ROBUST);
}

/* Whether a try would return EBUSY, for a mutex that must not be tried. */
static inline int sp_mutex_is_held(const pthread_mutex_t *mutex)
{
    int word = sp_mutex_word(mutex);
    return (word & SP_WORD_OWNER) != 0 && !(word & SP_WORD_OWNER_DIED);
}

/* Whether the calling thread has locked MUTEX, which it holds, more than once. */
static inline int sp_mutex_is_taken_again(const pthread_mutex_t *mutex)
{
    return mutex->__data.__count > 1;
}

/* The word of a free mutex is 0, and 1 when a thread has it and no thread waits. A robust mutex,
 * and one with priority inheritance, has the owner's id there. */
static inline int sp_mutex_may_have_waiters(const pthread_mutex_t *mutex)
{
    return (unsigned)sp_mutex_word(mutex) > 1;
}
#else
static inline const int *sp_mutex_owner(const pthread_mutex_t *mutex)
{
    (void)mutex;
    return NULL;
}

static inline const int *sp_rwlock_writer(const pthread_rwlock_t *lock)
{
    (void)lock;
    return NULL;
}

static inline int sp_mutex_may_be_tried(const pthread_mutex_t *mutex)
{
    (void)mutex;
    return 1;
}

static inline int sp_mutex_is_held(const pthread_mutex_t *mutex)
{
    (void)mutex;
    return 0;
}

static inline int sp_mutex_is_taken_again(const pthread_mutex_t *mutex)
{
    (void)mutex;
    return 0;
}

static inline int sp_mutex_may_have_waiters(const pthread_mutex_t *mutex)
{
    (void)mutex;
    return 0;
}
#endif

/* Whether the next unlock of the calling thread, which holds MUTEX, gives it back, and others may
 * wait for it. */
static inline int sp_mutex_has_waiters(const pthread_mutex_t *mutex)
{
    return sp_mutex_may_have_waiters(mutex) && sp_wait_has_waiters(mutex) &&
           !sp_mutex_is_taken_again(mutex);
}

/* A mtx_t is a pthread_mutex_t of another name. */
static inline const int *sp_mtx_owner(const mtx_t *mutex)
{
    return sp_mutex_owner((const pthread_mutex_t *)(const void *)mutex);
}

static inline int sp_mtx_has_waiters(const mtx_t *mutex)
{
    return sp_mutex_has_waiters((const pthread_mutex_t *)(const void *)mutex);
}

#endif
