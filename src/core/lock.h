/* SPDX-License-Identifier: Apache-2.0 */
/* Mutexes that have a place in one order. A thread takes a lock only while every lock that it holds
 * has an earlier place. Then no two threads can wait for each other.
 * docs/design/locks.md says what each lock guards.
 *
 * Builds with SPANPROF_CHECK_LOCKS (the presets debug, asan and tsan) abort when a thread takes
 * locks in another order, and name both locks. Other builds only have the mutex.
 * Threads: any.  Signals: never.
 * Fork: the child's thread holds what the parent's thread held. Locks that another thread may have
 * held are initialized again. */
#ifndef SP_CORE_LOCK_H
#define SP_CORE_LOCK_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* The order, outermost first. */
#define SP_LOCK_PLACES(X)                                                                          \
    X(SDK_CALL)        /* one start, flush or stop at a time */                                    \
    X(SDK_LIFE)        /* start, stop and fork against each other */                               \
    X(SDK_PARTS)       /* which exporter the tracer wakes */                                       \
    X(PULL_SERVER)     /* the worker that answers requests for profiles */                         \
    X(PULL)            /* the pending requests to the collector */                                 \
    X(COLLECTOR)       /* the collector's worker */                                                \
    X(SWITCH_FILE)     /* the recorder's worker */                                                 \
    X(DEBUGINFOD)      /* the worker that fetches debug files */                                   \
    X(CPU_PAUSING)     /* start, stop, pause and resume of ticks */                                \
    X(CPU_RUN)         /* the state of the CPU engine */                                           \
    X(WALL)            /* the wall profiler's state and places */                                  \
    X(WALL_WORKER)     /* its worker */                                                            \
    X(EXPORTER)        /* the exporter's worker, and its queue of profiles */                      \
    X(LOADER)          /* held while the loader's lock is held */                                  \
    X(PROCESS_CONTEXT) /* the published process context */                                         \
    X(SPAN_PROCESSORS) /* the list of registered span processors */                                \
    X(TRACERS)         /* the list of tracers */                                                   \
    X(SPAN_CACHES)     /* the list of the threads' caches of slots */                              \
    X(SLOT_POOL)       /* a pool's free slots */                                                   \
    X(VALUE_TYPES)     /* additions to the types of the application's own values */                \
    X(CALL_RINGS)      /* making the rings of sampled calls */                                     \
    X(CARRIERS)        /* the table of tracestate, baggage and attributes */                       \
    X(SAMPLE_KEYS)     /* the table of sample attributes' keys */                                  \
    X(DEFAULT_CONTEXT) /* the context of threads that have none */                                 \
    X(REGISTRY)        /* the table of threads */                                                  \
    X(FIBERS)          /* the table of fibers */                                                   \
    X(FOREIGN_STARTS)  /* a share of the spans that another tracer has started */                  \
    X(CPU_ACCOUNTS)    /* a share of the accounts of CPU time */                                   \
    X(LOG_SINK)        /* the host's log function and its user */                                  \
    X(LOG)             /* lines that wait for a thread that writes them */

typedef enum sp_lock_place {
#define SP_LOCK_PLACE(name) SP_LOCK_##name,
    SP_LOCK_PLACES(SP_LOCK_PLACE)
#undef SP_LOCK_PLACE
} sp_lock_place;

typedef struct sp_lock {
    pthread_mutex_t mutex;
    uint8_t place;
} sp_lock;

/* Initializer of a static lock. */
#define SP_LOCK_AT(place)                                                                          \
    {                                                                                              \
        PTHREAD_MUTEX_INITIALIZER, place                                                           \
    }

/* Abort when the calling thread holds a lock that is not before LOCK; else record that it holds
 * LOCK. */
void sp_lock_order_take(const sp_lock *lock);
/* Record that the calling thread holds LOCK, which it took without waiting. */
void sp_lock_order_note(const sp_lock *lock);
/* Record that the calling thread does not hold LOCK. */
void sp_lock_order_give(const sp_lock *lock);

#ifdef SPANPROF_CHECK_LOCKS
enum { SP_LOCKS_ARE_CHECKED = 1 };
#else
enum { SP_LOCKS_ARE_CHECKED = 0 };
#endif

/* Initialize LOCK. In a forked child, it may be a lock that another thread of the parent process
 * held. */
static inline void sp_lock_init(sp_lock *lock, sp_lock_place place)
{
    if (SP_LOCKS_ARE_CHECKED)
        sp_lock_order_give(lock);
    pthread_mutex_init(&lock->mutex, NULL);
    lock->place = (uint8_t)place;
}

static inline void sp_lock_deinit(sp_lock *lock)
{
    pthread_mutex_destroy(&lock->mutex);
}

/* Wait for a lock that another thread may hold. Checked builds take every lock in this way, because
 * a lock checker (TSan) cannot derive an order of locks from trylock. */
void sp_lock_take_slowly(sp_lock *lock);
int sp_lock_take_slowly_until(sp_lock *lock, const struct timespec *until);
/* Whether the calling thread waits inside one of these two functions, or in sp_lock_wait or
 * _wait_until. Such waits are not the application's, so they are not sampled as contention. */
bool sp_lock_is_waiting(void);

static inline void sp_lock_take(sp_lock *lock)
{
    if (SP_LOCKS_ARE_CHECKED)
        sp_lock_order_take(lock);
    if (SP_LOCKS_ARE_CHECKED || pthread_mutex_trylock(&lock->mutex) != 0)
        sp_lock_take_slowly(lock);
}

/* True when the lock was free. Does not wait, so it may be called with any lock held. */
static inline bool sp_lock_try(sp_lock *lock)
{
    bool taken = pthread_mutex_trylock(&lock->mutex) == 0;
    if (SP_LOCKS_ARE_CHECKED && taken)
        sp_lock_order_note(lock);
    return taken;
}

static inline void sp_lock_give(sp_lock *lock)
{
    pthread_mutex_unlock(&lock->mutex);
    if (SP_LOCKS_ARE_CHECKED)
        sp_lock_order_give(lock);
}

/* UNTIL is realtime, as pthread_mutex_timedlock has it. Returns 0 or an errno value. */
static inline int sp_lock_take_until(sp_lock *lock, const struct timespec *until)
{
    if (SP_LOCKS_ARE_CHECKED)
        sp_lock_order_take(lock);
    bool taken = !SP_LOCKS_ARE_CHECKED && pthread_mutex_trylock(&lock->mutex) == 0;
    int error = taken ? 0 : sp_lock_take_slowly_until(lock, until);
    if (SP_LOCKS_ARE_CHECKED && error)
        sp_lock_order_give(lock);
    return error;
}

/* Waits on a condition with LOCK held, as pthread_cond_wait and pthread_cond_timedwait do. */
int sp_lock_wait(sp_lock *lock, pthread_cond_t *condition);
int sp_lock_wait_until(sp_lock *lock, pthread_cond_t *condition, const struct timespec *until);

#endif
