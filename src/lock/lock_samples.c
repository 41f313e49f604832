/* SPDX-License-Identifier: Apache-2.0 */
#include "lock/lock_samples.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>

#include "call/call.h"
#include "call/call_sampling.h"
#include "call/preload_find.h"
#include "call/sampling_run.h"
#include "core/atomic.h"
#include "core/clock.h"
#include "core/compiler.h"
#include "core/lock.h"
#include "core/log.h"
#include "lock/lock_holder.h"
#include "lock/lock_link.h"
#include "lock/lock_waiters.h"

static struct {
    sp_sampling_run run;
    _Atomic uint64_t period_ns;
    sp_lock_preload *preload;           /* NULL: not loaded, or used by another copy */
    _Atomic(sp_lock_waiters *) waiters; /* in the library; once set, it stays */
} locks;

/* --- a wait ----------------------------------------------------------------------------------- */

/* The moment from which on a wait that begins at BEGIN_NS is a sample; UINT64_MAX: never. */
static uint64_t due_ns_of(sp_sampling_thread *thread, uint64_t begin_ns)
{
    uint32_t run = sp_load_acquire(&locks.run.number); /* then its period is stored */
    if (!run || !sp_sampling_enter(thread, run, sp_load_relaxed(&locks.period_ns)))
        return UINT64_MAX;
    uint64_t left_ns = thread->left;
    sp_sampling_leave(thread);
    return left_ns < UINT64_MAX - begin_ns ? begin_ns + left_ns : UINT64_MAX;
}

/* A wait of the SDK for its own lock, on a thread of the application, is not sampled. */
static void begins(sp_sampling_thread *thread, sp_contention *wait, const int *owner)
{
    int error = errno;
    if (!sp_lock_is_waiting() && sp_calls_are_taken()) {
        sp_lock_holder_find(wait, owner);
        wait->begin_ns = sp_clock_monotonic_ns();
        if (wait->kind == SP_CONTENTION_LOCK)
            wait->place = sp_lock_waiters_enter(sp_load_acquire(&locks.waiters), wait->lock,
                                                due_ns_of(thread, wait->begin_ns),
                                                sp_max_u64(sp_load_relaxed(&locks.period_ns), 1));
    }
    errno = error;
}

static void gives(const void *lock, const int *owner, const void *return_address)
{
    int error = errno;
    if (!sp_lock_is_waiting() && sp_calls_are_taken() && sp_lock_holder_may_be_here(owner))
        sp_lock_waiters_give(sp_load_acquire(&locks.waiters), lock, return_address);
    errno = error;
}

static uint32_t call_kind_of(const sp_contention *wait)
{
    static const uint32_t kinds[] = {[SP_CONTENTION_LOCK] = SP_CALL_LOCK,
                                     [SP_CONTENTION_CONDITION] = SP_CALL_CONDITION,
                                     [SP_CONTENTION_SEMAPHORE] = SP_CALL_SEMAPHORE};
    return kinds[wait->kind];
}

/* The holder that wrote GIVER when it gave the lock back takes precedence over the one that was
 * read when the wait began. */
static void take(const sp_contention *wait, const sp_lock_giver *giver, sp_sampling_weight weight,
                 const void *return_address)
{
    sp_call call = {.kind = call_kind_of(wait),
                    .value = weight.size,
                    .count = weight.count,
                    .lock = wait->lock,
                    .holder = {.trace_id = {wait->holder_trace_id[0], wait->holder_trace_id[1]},
                               .span_id = wait->holder_span_id},
                    .return_address = return_address};
    if (giver && sp_lock_giver_stack(giver)->count) {
        call.holder = giver->span;
        call.holder_stack = sp_lock_giver_stack(giver);
    }
    sp_call_take(&call);
}

static void sample(sp_sampling_thread *thread, const sp_contention *wait,
                   const sp_lock_giver *giver, const void *return_address)
{
    uint32_t run = sp_load_acquire(&locks.run.number); /* then its period is stored */
    uint64_t period_ns = sp_load_relaxed(&locks.period_ns);
    sp_sampling_weight weight;
    uint64_t waited_ns = sp_max_u64(sp_clock_monotonic_ns() - wait->begin_ns, 1);
    if (run && sp_sampling_enter(thread, run, period_ns)) {
        if (sp_sampling_pass(&thread->left, &thread->random, period_ns, waited_ns, &weight))
            take(wait, giver, weight, return_address);
        sp_sampling_leave(thread);
    }
}

static void ends(sp_sampling_thread *thread, const sp_contention *wait, int has_waited,
                 const void *return_address)
{
    int error = errno;
    sp_lock_waiters *waiters = sp_load_acquire(&locks.waiters);
    const sp_lock_giver *giver = wait->place ? sp_lock_waiters_close(waiters, wait->place) : NULL;
    if (has_waited)
        sample(thread, wait, giver, return_address);
    if (giver)
        sp_lock_waiters_leave(waiters, wait->place);
    errno = error;
}

/* --- life ------------------------------------------------------------------------------------- */

/* The library if it can be used now; else NULL, and *REASON says why not. */
static sp_lock_preload *find_preload(const char **reason)
{
    sp_lock_preload *preload = sp_preload_find("spanprof_preload_locks", SP_LOCK_PRELOAD_VERSION,
                                               "pthread_mutex_lock", reason);
    if (!preload || sp_load_relaxed(&preload->run) == 0)
        return preload;
    *reason = "another copy of spanprof in this process samples them";
    return NULL;
}

static void connect_preload(void)
{
    const char *reason;
    locks.preload = find_preload(&reason);
    if (!locks.preload) {
        sp_log_warn("lock", "waits for locks are not seen: %s", reason);
        return;
    }
    sp_store_release(&locks.waiters, &locks.preload->waiters);
    sp_store_release(&locks.preload->begins, begins); /* pairs with the library's acquire of each */
    sp_store_release(&locks.preload->ends, ends);
    sp_store_release(&locks.preload->gives, gives);
}

void sp_lock_samples_start(uint64_t period_ns)
{
    sp_store_relaxed(&locks.period_ns, period_ns);
    connect_preload();
    sp_sampling_run_start(&locks.run, locks.preload ? &locks.preload->run : NULL);
}

void sp_lock_samples_stop(void)
{
    sp_sampling_run_stop(&locks.run);
}

void sp_lock_samples_fork_child(void)
{
    sp_lock_samples_stop();
    sp_lock_waiters *waiters = sp_load_acquire(&locks.waiters);
    if (waiters)
        sp_lock_waiters_fork_child(waiters);
}

void sp_lock_samples_pause(void)
{
    sp_sampling_run_pause(&locks.run);
}

void sp_lock_samples_resume(void)
{
    sp_sampling_run_resume(&locks.run);
}
