/* SPDX-License-Identifier: Apache-2.0 */
#include "core/worker.h"

#include <errno.h>
#include <signal.h>

#include "core/atomic.h"
#include "core/clock.h"
#include "core/lock.h"

void sp_condition_init(pthread_cond_t *condition)
{
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(condition, &attributes);
    pthread_condattr_destroy(&attributes);
}

int sp_worker_thread_create(pthread_t *thread, void *(*run)(void *), void *argument)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(thread, NULL, run, argument);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}

void sp_worker_init(sp_worker *worker, sp_lock_place place)
{
    *worker = (sp_worker){.ended = false};
    sp_lock_init(&worker->lock, place);
    sp_condition_init(&worker->work_condition);
    sp_condition_init(&worker->progress_condition);
}

void sp_worker_deinit(sp_worker *worker)
{
    pthread_cond_destroy(&worker->work_condition);
    pthread_cond_destroy(&worker->progress_condition);
    sp_lock_deinit(&worker->lock);
}

/* One critical section decides who frees: either this thread sees that it is abandoned, or the
 * thread in sp_worker_end sees that it has ended. After the unlock this thread touches the worker
 * only in the first case. */
static void *live(void *argument)
{
    sp_worker *worker = argument;
    const sp_worker_role *role = worker->role;
    void *owner = worker->owner;
    pthread_setname_np(pthread_self(), role->name);
    role->run(owner);
    sp_lock_take(&worker->lock);
    bool abandoned = sp_load_relaxed(&worker->abandoned);
    worker->ended = !abandoned;
    pthread_cond_broadcast(&worker->progress_condition);
    sp_lock_give(&worker->lock);
    if (abandoned)
        role->destroy(owner);
    return NULL;
}

int sp_worker_start(sp_worker *worker, const sp_worker_role *role, void *owner)
{
    worker->role = role;
    worker->owner = owner;
    return sp_worker_thread_create(&worker->thread, live, worker);
}

static bool has_orders(const sp_worker *worker)
{
    return worker->ending || worker->woken || worker->flush_requested != worker->flushed;
}

sp_worker_orders sp_worker_wait(sp_worker *worker, uint64_t until_ns)
{
    struct timespec until = sp_timespec_from_ns(until_ns);
    sp_lock_take(&worker->lock);
    while (!has_orders(worker))
        if (sp_lock_wait_until(&worker->lock, &worker->work_condition, &until) != 0)
            break;
    sp_worker_orders orders = {
        .flush_ticket = worker->flush_requested,
        .flush = worker->ending || worker->flush_requested != worker->flushed,
        .woken = worker->woken,
        .ending = worker->ending,
    };
    worker->woken = false;
    sp_lock_give(&worker->lock);
    return orders;
}

void sp_worker_publish_flushed(sp_worker *worker, uint64_t ticket)
{
    sp_lock_take(&worker->lock);
    worker->flushed = ticket;
    pthread_cond_broadcast(&worker->progress_condition);
    sp_lock_give(&worker->lock);
}

bool sp_worker_enter(sp_worker *worker)
{
    sp_lock_take(&worker->lock);
    if (!sp_load_relaxed(&worker->abandoned))
        return true;
    sp_lock_give(&worker->lock);
    return false;
}

void sp_worker_leave(sp_worker *worker)
{
    sp_lock_give(&worker->lock);
}

bool sp_worker_is_abandoned(const sp_worker *worker)
{
    return sp_load_relaxed(&worker->abandoned);
}

void sp_worker_wake(sp_worker *worker)
{
    sp_lock_take(&worker->lock);
    worker->woken = true;
    pthread_cond_signal(&worker->work_condition);
    sp_lock_give(&worker->lock);
}

/* With the lock held: wait for progress. False when DEADLINE_NS has come. */
static bool wait_for_progress(sp_worker *worker, uint64_t deadline_ns)
{
    struct timespec until = sp_timespec_from_ns(deadline_ns);
    if (deadline_ns == UINT64_MAX)
        return sp_lock_wait(&worker->lock, &worker->progress_condition) == 0;
    return sp_lock_wait_until(&worker->lock, &worker->progress_condition, &until) != ETIMEDOUT;
}

/* The condition is read once more after the deadline: it may have become true before the wait got
 * the lock back. */
bool sp_worker_flush(sp_worker *worker, uint64_t deadline_ns)
{
    sp_lock_take(&worker->lock);
    uint64_t ticket = ++worker->flush_requested;
    pthread_cond_signal(&worker->work_condition);
    while (worker->flushed < ticket)
        if (!wait_for_progress(worker, deadline_ns))
            break;
    bool done = worker->flushed >= ticket;
    sp_lock_give(&worker->lock);
    return done;
}

bool sp_worker_end(sp_worker *worker, uint64_t deadline_ns)
{
    sp_lock_take(&worker->lock);
    worker->ending = true;
    pthread_cond_signal(&worker->work_condition);
    while (!worker->ended)
        if (!wait_for_progress(worker, deadline_ns))
            break;
    sp_store_relaxed(&worker->abandoned, !worker->ended);
    return worker->ended;
}

bool sp_worker_release(sp_worker *worker)
{
    bool ended = worker->ended;
    pthread_t thread = worker->thread;
    sp_lock_give(&worker->lock);
    if (ended)
        pthread_join(thread, NULL);
    else
        pthread_detach(thread);
    return ended;
}
