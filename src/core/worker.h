/* SPDX-License-Identifier: Apache-2.0 */
/* The life of the SDK's threads, implemented once: how a thread starts, sleeps, serves flushes,
 * ends, or is abandoned because it does not end in time. See docs/design/worker.md.
 *
 * An owner (the collector, the time recorder) has a worker inside and describes its thread by a
 * role.
 *
 * | operation                                   | setup | any thread | the worker's thread |
 * |---------------------------------------------|-------|------------|---------------------|
 * | init, start, wait_until_ready               |  yes  |            |                     |
 * | end, release, deinit                        |  yes  |            |                     |
 * | wake, flush, is_flushed, wait_for_progress  |       |    yes     |                     |
 * | publish_ready, wait, take_orders            |       |            |         yes         |
 * | publish_progress, _flushed, give_up_flush   |       |            |         yes         |
 * | enter, leave, is_abandoned                  |       |            |         yes         |
 *
 * A flush must have returned before end is called, because the worker may free itself after that.
 * Signals: not safe; the thread blocks the signals that its role says. Fork: the child has no such
 * thread and must not touch the worker. */
#ifndef SP_CORE_WORKER_H
#define SP_CORE_WORKER_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/lock.h"

/* Which signals a thread of the SDK blocks, because signals belong to the application. */
typedef enum sp_worker_signals {
    SP_WORKER_BLOCKS_ALL,
    /* All but those of faults, so that a fault of this thread reaches the application's crash
     * reporter. */
    SP_WORKER_KEEPS_FAULTS,
} sp_worker_signals;

typedef struct sp_worker_role {
    const char *name; /* of the thread, at most 15 bytes; static */
    void (*run)(void *owner);
    /* Frees the owner, deinit of the worker included. NULL: end is called without a deadline only,
     * so the thread is never abandoned. */
    void (*destroy)(void *owner);
    sp_worker_signals signals;
} sp_worker_role;

/* Invariants: flushed <= flush_taken <= flush_requested; ended and abandoned are never both true.
 */
typedef struct sp_worker {
    /* Guards all below, and what the owner says that it guards. The owner's callees may take
     * further locks while it is held. */
    sp_lock lock;
    pthread_cond_t work_condition;     /* the thread waits: for a wake, a flush, or the end */
    pthread_cond_t progress_condition; /* callers wait: for what the thread publishes, its end */
    uint64_t flush_requested;          /* tickets */
    uint64_t flush_taken;              /* the tickets that the thread has taken */
    uint64_t flushed;
    uint64_t flush_until_ns;          /* the latest deadline of flushes that are not taken yet */
    uint64_t unmet_after, unmet_last; /* the tickets (after, last] were given up */
    bool published_ready, works;      /* the thread has set itself up, or has failed to */
    bool woken;
    bool ending, ending_is_taken; /* the thread has to end; it has taken that order */
    bool ended;                   /* run has returned and the owner frees */
    /* The owner has given up waiting and the thread frees. Changed with the lock held; a read
     * without the lock is only a hint. */
    _Atomic bool abandoned;
    pthread_t thread;
    const sp_worker_role *role;
    void *owner;
} sp_worker;

/* Requests to the thread. */
typedef struct sp_worker_orders {
    uint64_t flush_ticket; /* for publish_flushed */
    uint64_t
        flush_until_ns; /* no caller waits longer for the flush; 0 when only the end asks for it */
    bool any;           /* there is a request since the last orders; false: UNTIL_NS has passed */
    bool flush;         /* a flush was requested since then; the end requests one, too */
    bool woken;         /* sp_worker_wake was called since then */
    bool ending;        /* the thread has to end; stays true */
} sp_worker_orders;

/* PLACE is that of the worker's lock. */
void sp_worker_init(sp_worker *worker, sp_lock_place place);
/* Call it when no thread was started, or the thread has ended. */
void sp_worker_deinit(sp_worker *worker);

/* Start the thread: it names itself and calls ROLE->run. Returns 0 or an errno value. OWNER
 * contains WORKER and is borrowed until end returns true; when end returns false, the thread
 * destroys it after run has returned. */
int sp_worker_start(sp_worker *worker, const sp_worker_role *role, void *owner);

/* Wait until the thread has set itself up. Returns what it has published: false means that its run
 * returns by itself. Only for threads that publish it. */
bool sp_worker_wait_until_ready(sp_worker *worker);

/* --- the worker's thread ---------------------------------------------------------------------- */

/* Report that the thread has set itself up, or, when WORKS is false, is about to return. */
void sp_worker_publish_ready(sp_worker *worker, bool works);

/* Sleep until the monotonic UNTIL_NS (UINT64_MAX: without a limit), a wake, a flush, or the end. */
sp_worker_orders sp_worker_wait(sp_worker *worker, uint64_t until_ns);
/* The same without sleeping. */
sp_worker_orders sp_worker_take_orders(sp_worker *worker);
/* Report that all flushes up to TICKET are done. */
void sp_worker_publish_flushed(sp_worker *worker, uint64_t ticket);
/* Report that the flushes up to TICKET that are not done yet cannot be done in time: they return
 * false. */
void sp_worker_give_up_flush(sp_worker *worker, uint64_t ticket);

/* With the lock held: wake the threads that wait for progress. */
void sp_worker_publish_progress(sp_worker *worker);

/* Call it before accessing anything that a later run may own. Returns true, with the lock held,
 * when the worker is not abandoned. Then it cannot be abandoned before leave is called. False:
 * access nothing of that, and return from run soon. */
bool sp_worker_enter(sp_worker *worker);
void sp_worker_leave(sp_worker *worker);
/* A hint that ends long work early. It may become true right after false was returned. */
bool sp_worker_is_abandoned(const sp_worker *worker);

/* --- other threads ---------------------------------------------------------------------------- */

void sp_worker_wake(sp_worker *worker);
/* Request a flush and wait until it is done. False when the monotonic DEADLINE_NS (UINT64_MAX:
 * never) passed first. */
bool sp_worker_flush(sp_worker *worker, uint64_t deadline_ns);
/* With the lock held: whether all requested flushes are done. */
bool sp_worker_is_flushed(const sp_worker *worker);
/* With the lock held: wait until the thread publishes anything, or ends. It may return earlier, so
 * the caller checks its condition again. False when the monotonic DEADLINE_NS (UINT64_MAX: never)
 * passed. */
bool sp_worker_wait_for_progress(sp_worker *worker, uint64_t deadline_ns);

/* Ask the thread to flush and end, and wait for that until DEADLINE_NS. Returns with the lock held,
 * so that the owner may be read once more; release must follow. True: it has ended, and the caller
 * frees after release. False: it is abandoned, and the thread frees. */
bool sp_worker_end(sp_worker *worker, uint64_t deadline_ns);
/* Give the lock back and join the thread that has ended, or detach the abandoned one. Returns what
 * end returned. After false the owner may be gone. */
bool sp_worker_release(sp_worker *worker);

/* --- parts, for threads that live otherwise --------------------------------------------------- */

/* docs/design/worker.md lists their users. */

/* Initialize a condition whose deadlines are of the monotonic clock. */
void sp_condition_init(pthread_cond_t *condition);
/* Start a thread. Returns 0 or an errno value. */
int sp_worker_thread_create(pthread_t *thread, sp_worker_signals signals, void *(*run)(void *),
                            void *argument);

#endif
