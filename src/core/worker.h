/* SPDX-License-Identifier: Apache-2.0 */
/* The life of a thread of ours, once: how it starts, sleeps, answers flushes, ends, or is abandoned
 * because it does not end in time. See docs/design/worker.md.
 *
 * An owner (the collector, the time recorder) has a worker inside and describes its thread by a
 * role.
 *
 * | operation                            | setup | any thread | the worker's thread |
 * |--------------------------------------|-------|------------|---------------------|
 * | init, start, end, release, deinit    |  yes  |            |                     |
 * | wake, flush                          |       |    yes     |                     |
 * | wait, publish_flushed, enter, leave  |       |            |         yes         |
 * | is_abandoned                         |       |            |         yes         |
 *
 * A flush must have returned before end is called, because the worker may free itself after that.
 * Signals: not safe; the thread blocks all signals.  Fork: the child has no such thread and must
 * not touch the worker. */
#ifndef SP_CORE_WORKER_H
#define SP_CORE_WORKER_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/lock.h"

typedef struct sp_worker_role {
    const char *name; /* of the thread, at most 15 bytes; static */
    void (*run)(void *owner);
    void (*destroy)(void *owner); /* frees the owner, deinit of the worker included */
} sp_worker_role;

/* Invariants: flushed <= flush_requested; ended and abandoned are never both true. */
typedef struct sp_worker {
    /* Guards all below, and what the owner says that it guards. The owner's callees may take
     * further locks while it is held. */
    sp_lock lock;
    pthread_cond_t work_condition; /* the thread waits: for a wake, a flush, or the end */
    pthread_cond_t
        progress_condition;   /* callers wait: flushed has grown, or the thread has ended */
    uint64_t flush_requested; /* tickets */
    uint64_t flushed;
    bool woken;
    bool ending; /* the thread is to end */
    bool ended;  /* run has returned and the owner frees */
    /* The owner has given up waiting and the thread frees. Changed with the lock held; reading it
     * without is a hint only. */
    _Atomic bool abandoned;
    pthread_t thread;
    const sp_worker_role *role;
    void *owner;
} sp_worker;

/* Why wait returned; all false: the time has come. */
typedef struct sp_worker_orders {
    uint64_t flush_ticket; /* for publish_flushed */
    bool flush;            /* a flush is waiting, or the thread is to end */
    bool woken;            /* sp_worker_wake was called */
    bool ending;
} sp_worker_orders;

/* PLACE is that of the worker's lock. */
void sp_worker_init(sp_worker *worker, sp_lock_place place);
/* No thread runs, or it has ended. */
void sp_worker_deinit(sp_worker *worker);

/* Start the thread with all signals blocked: it names itself and calls ROLE->run. Returns 0 or an
 * errno value. OWNER contains WORKER and is borrowed until end returns true; when end returns false
 * the thread destroys it after run has returned. */
int sp_worker_start(sp_worker *worker, const sp_worker_role *role, void *owner);

/* --- the worker's thread ---------------------------------------------------------------------- */

/* Sleep until the monotonic UNTIL_NS, a wake, a flush, or the end. */
sp_worker_orders sp_worker_wait(sp_worker *worker, uint64_t until_ns);
/* All that was requested up to TICKET is done. */
void sp_worker_publish_flushed(sp_worker *worker, uint64_t ticket);

/* Before anything that a later run may own: true, with the lock held, when the worker is not
 * abandoned. Then it cannot be abandoned before leave is called. False: touch nothing, and return
 * from run soon. */
bool sp_worker_enter(sp_worker *worker);
void sp_worker_leave(sp_worker *worker);
/* A hint that ends long work early. It may become true right after false was returned. */
bool sp_worker_is_abandoned(const sp_worker *worker);

/* --- other threads ---------------------------------------------------------------------------- */

void sp_worker_wake(sp_worker *worker);
/* Request a flush and wait until it is done. False when the monotonic DEADLINE_NS (UINT64_MAX:
 * never) came first. */
bool sp_worker_flush(sp_worker *worker, uint64_t deadline_ns);

/* Have the thread end, and wait for that until DEADLINE_NS. Returns with the lock held, so that the
 * owner may be read once more; release must follow. True: it has ended, and the caller frees after
 * release. False: it is abandoned, and the thread frees. */
bool sp_worker_end(sp_worker *worker, uint64_t deadline_ns);
/* Give the lock back and join the thread that has ended, or leave the abandoned one alone. Returns
 * what end returned. After false the owner may be gone. */
bool sp_worker_release(sp_worker *worker);

/* --- parts, for threads that live otherwise --------------------------------------------------- */

/* A condition whose deadlines are of the monotonic clock. */
void sp_condition_init(pthread_cond_t *condition);
/* Start a thread that blocks all signals, because they are the application's. Returns 0 or an errno
 * value. */
int sp_worker_thread_create(pthread_t *thread, void *(*run)(void *), void *argument);

#endif
