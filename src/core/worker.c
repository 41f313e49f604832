/* SPDX-License-Identifier: Apache-2.0 */
#include "core/worker.h"

#include <errno.h>
#include <signal.h>

#include "core/atomic.h"
#include "core/clock.h"
#include "core/compiler.h"
#include "core/lock.h"
#include "core/signal_mask_sig.h"

void sp_condition_init(pthread_cond_t *condition)
{
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(condition, &attributes);
    pthread_condattr_destroy(&attributes);
}

static uint64_t blocked_signals(sp_worker_signals signals)
{
    static const uint64_t faults = SP_SIGNAL_BIT(SIGSEGV) | SP_SIGNAL_BIT(SIGBUS) |
                                   SP_SIGNAL_BIT(SIGFPE) | SP_SIGNAL_BIT(SIGILL) |
                                   SP_SIGNAL_BIT(SIGTRAP) | SP_SIGNAL_BIT(SIGSYS) |
                                   SP_SIGNAL_BIT(SIGABRT);
    return signals == SP_WORKER_KEEPS_FAULTS ? SP_SIGNALS_ALL & ~faults : SP_SIGNALS_ALL;
}

/* The thread inherits the mask. So do the threads that it starts, and those that libraries start
 * when it calls them. */
int sp_worker_thread_create(pthread_t *thread, sp_worker_signals signals, void *(*run)(void *),
                            void *argument)
{
    uint64_t before = sp_signal_mask_set(blocked_signals(signals));
    int error = pthread_create(thread, NULL, run, argument);
    sp_signal_mask_set(before);
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

/* One critical section decides which thread frees the worker: either this thread reads that it is
 * abandoned, or the thread in sp_worker_end reads that it has ended. After the unlock this thread
 * accesses the worker only in the first case. */
static void *live(void *argument)
{
    sp_worker *worker = argument;
    const sp_worker_role *role = worker->role;
    void *owner = worker->owner;
    /* The thread names itself: to name another thread the C library opens a file, and a child of a
     * fork would inherit that descriptor. */
    pthread_setname_np(pthread_self(), role->name);
    role->run(owner);
    sp_lock_take(&worker->lock);
    bool abandoned = sp_load_relaxed(&worker->abandoned);
    worker->ended = !abandoned;
    sp_worker_publish_progress(worker);
    sp_lock_give(&worker->lock);
    if (abandoned)
        role->destroy(owner);
    return NULL;
}

int sp_worker_start(sp_worker *worker, const sp_worker_role *role, void *owner)
{
    worker->role = role;
    worker->owner = owner;
    return sp_worker_thread_create(&worker->thread, role->signals, live, worker);
}

void sp_worker_publish_ready(sp_worker *worker, bool works)
{
    sp_lock_take(&worker->lock);
    worker->published_ready = true;
    worker->works = works;
    sp_worker_publish_progress(worker);
    sp_lock_give(&worker->lock);
}

bool sp_worker_wait_until_ready(sp_worker *worker)
{
    sp_lock_take(&worker->lock);
    while (!worker->published_ready)
        sp_worker_wait_for_progress(worker, UINT64_MAX);
    bool works = worker->works;
    sp_lock_give(&worker->lock);
    return works;
}

static bool has_orders(const sp_worker *worker)
{
    return worker->ending != worker->ending_is_taken || worker->woken ||
           worker->flush_requested != worker->flush_taken;
}

/* With the lock held. */
static sp_worker_orders take_orders(sp_worker *worker)
{
    sp_worker_orders orders = {
        .flush_ticket = worker->flush_requested,
        .flush_until_ns = worker->flush_until_ns,
        .any = has_orders(worker),
        .flush = worker->flush_requested != worker->flush_taken,
        .woken = worker->woken,
        .ending = worker->ending,
    };
    worker->flush_taken = worker->flush_requested;
    worker->flush_until_ns = 0;
    worker->woken = false;
    worker->ending_is_taken = worker->ending;
    return orders;
}

/* With the lock held. Returns false when UNTIL_NS (UINT64_MAX: never) has passed. */
static bool wait_on(sp_worker *worker, pthread_cond_t *condition, uint64_t until_ns)
{
    struct timespec until = sp_timespec_from_ns(until_ns);
    if (until_ns == UINT64_MAX)
        return sp_lock_wait(&worker->lock, condition) == 0;
    return sp_lock_wait_until(&worker->lock, condition, &until) != ETIMEDOUT;
}

sp_worker_orders sp_worker_wait(sp_worker *worker, uint64_t until_ns)
{
    sp_lock_take(&worker->lock);
    while (!has_orders(worker))
        if (!wait_on(worker, &worker->work_condition, until_ns))
            break;
    sp_worker_orders orders = take_orders(worker);
    sp_lock_give(&worker->lock);
    return orders;
}

sp_worker_orders sp_worker_take_orders(sp_worker *worker)
{
    sp_lock_take(&worker->lock);
    sp_worker_orders orders = take_orders(worker);
    sp_lock_give(&worker->lock);
    return orders;
}

void sp_worker_publish_progress(sp_worker *worker)
{
    pthread_cond_broadcast(&worker->progress_condition);
}

/* With the lock held. */
static void publish_flushed(sp_worker *worker, uint64_t ticket)
{
    worker->flushed = ticket;
    sp_worker_publish_progress(worker);
}

void sp_worker_publish_flushed(sp_worker *worker, uint64_t ticket)
{
    sp_lock_take(&worker->lock);
    publish_flushed(worker, ticket);
    sp_lock_give(&worker->lock);
}

void sp_worker_give_up_flush(sp_worker *worker, uint64_t ticket)
{
    sp_lock_take(&worker->lock);
    worker->unmet_after = worker->flushed;
    worker->unmet_last = ticket;
    publish_flushed(worker, ticket);
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

bool sp_worker_wait_for_progress(sp_worker *worker, uint64_t deadline_ns)
{
    return wait_on(worker, &worker->progress_condition, deadline_ns);
}

/* With the lock held. */
static bool is_done(const sp_worker *worker, uint64_t ticket)
{
    bool is_unmet = ticket > worker->unmet_after && ticket <= worker->unmet_last;
    return ticket <= worker->flushed && !is_unmet;
}

/* The condition is read once more after the deadline: it may have become true before the wait got
 * the lock back. */
bool sp_worker_flush(sp_worker *worker, uint64_t deadline_ns)
{
    sp_lock_take(&worker->lock);
    uint64_t ticket = ++worker->flush_requested;
    worker->flush_until_ns = sp_max_u64(worker->flush_until_ns, deadline_ns);
    pthread_cond_signal(&worker->work_condition);
    while (worker->flushed < ticket)
        if (!sp_worker_wait_for_progress(worker, deadline_ns))
            break;
    bool done = is_done(worker, ticket);
    sp_lock_give(&worker->lock);
    return done;
}

bool sp_worker_is_flushed(const sp_worker *worker)
{
    return is_done(worker, worker->flush_requested);
}

bool sp_worker_end(sp_worker *worker, uint64_t deadline_ns)
{
    sp_lock_take(&worker->lock);
    worker->ending = true;
    worker->flush_requested++;
    pthread_cond_signal(&worker->work_condition);
    while (!worker->ended)
        if (!sp_worker_wait_for_progress(worker, deadline_ns))
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
