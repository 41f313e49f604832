/* SPDX-License-Identifier: Apache-2.0 */
/* Opens and closes a thread's ticker. The first tick is at a random moment within a period, so that
 * threads that live for less than a period count right on average, and threads do not tick in step.
 * See docs/design/sampling.md. */
#include <errno.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/lock.h"
#include "core/log.h"
#include "cpu/cpu_source.h"
#include "cpu/engine.h"

enum { SETTLE_US = 500 };

sp_cpu_thread sp_cpu_threads[SP_THREADS_MAX];

static uint64_t random_below(uint64_t bound)
{
    uint64_t value = 0;
    if (getrandom(&value, sizeof value, GRND_NONBLOCK) != sizeof value)
        value = sp_clock_monotonic_ns() * 0x9e3779b97f4a7c15u;
    return value % bound;
}

static void log_failure(sp_thread *thread)
{
    int error = errno;
    if (sp_run.failed_threads++ == 0 && sp_run.choice.ticks)
        sp_log_warn("engine",
                    "thread %d cannot be made to tick: %s%s; further ones are counted only",
                    (int)thread->registered.tid, strerror(error),
                    error == EAGAIN ? " (RLIMIT_SIGPENDING bounds timers)" : "");
}

static void log_fallback(void)
{
    if (!sp_run.logged_fallback)
        sp_log_warn("engine", "no more perf events: %s%s; further threads tick by timer",
                    strerror(errno),
                    errno == EMFILE ? " (they take at most a quarter of RLIMIT_NOFILE)" : "");
    sp_run.logged_fallback = true;
}

/* Threads of the application call this, too. It makes a ring, but never replaces one, because the
 * collector may be reading it. */
static bool make_ring(sp_thread *thread)
{
    return sp_ring_exists(&thread->tick.ring) ||
           sp_ring_init(&thread->tick.ring, sp_run.ring_bytes);
}

/* Whether no tick writes to the ring of THREAD, which is not armed, and all of it has been read. A
 * hazard that is not NULL means that a tick is under way. */
static bool ring_is_unused(const sp_thread *thread)
{
    return sp_load_acquire(&thread->tick.hazard) == NULL &&
           sp_load_relaxed(&thread->tick.ring.tail) == sp_load_relaxed(&thread->tick.ring.head);
}

void sp_drop_misfit_ring_locked(sp_thread *thread)
{
    sp_ring free_ring;
    if (!sp_ring_exists(&thread->tick.ring) || thread->tick.ring.size == sp_run.ring_bytes)
        return;
    if (sp_load_acquire(&thread->registered.life) != SP_THREAD_FREE) {
        if (ring_is_unused(thread))
            sp_ring_deinit(&thread->tick.ring);
    } else if (sp_thread_take_free_ring(thread, &free_ring)) {
        sp_ring_deinit(&free_ring);
    }
}

/* A timer begins with short intervals, so that their number at the first timer tick of the kernel
 * shows how much CPU time the thread has used. Then the handler sets whole periods. */
static bool open_with(const sp_cpu_source *source, sp_thread *thread)
{
    uint64_t period = sp_engine_period_ns(), moment = 1 + random_below(period);
    bool by_timer = source == &sp_cpu_timer;
    sp_tick_plan plan = {.signal = sp_run.config.signal,
                         .period_ns = by_timer ? sp_handler.jiffy_unit_ns : period,
                         .first_ns =
                             by_timer ? 1 + random_below(sp_handler.jiffy_unit_ns) : moment};
    sp_store_relaxed(&thread->tick.first_moment_ns, by_timer ? moment : 0);
    sp_store_relaxed(&thread->tick.event_period_ns, period);
    sp_store_relaxed(&thread->tick.event_period_set_ns, plan.first_ns);
    sp_cpu_thread_of(thread)->switch_loss = (sp_switch_loss){0};
    return source->open(&sp_cpu_thread_of(thread)->ticker, thread->registered.tid, thread, &plan);
}

/* Open the engine's ticker. If no more perf events can be opened, open a timer. False, with errno,
 * when the thread has ended or no ticker can be opened. */
static bool open_ticker(sp_thread *thread)
{
    if (open_with(sp_run.choice.source, thread))
        return true;
    if (sp_run.choice.source == &sp_cpu_timer || errno == ESRCH)
        return false;
    log_fallback();
    if (!open_with(&sp_cpu_timer, thread))
        return false;
    sp_run.fallback_threads++;
    return true;
}

void sp_arm_locked(sp_thread *thread)
{
    /* life is read first, so that the other members are of the same thread (pairs with
     * create_locked) */
    if (!sp_run.running || sp_run.config.without_ticks || sp_run.held || sp_run.paused ||
        sp_load_acquire(&thread->registered.life) != SP_THREAD_LIVE ||
        thread->registered.internal || sp_load_relaxed(&thread->tick.armed) ||
        sp_cpu_thread_of(thread)->ticker.source)
        return;
    if (!make_ring(thread)) {
        errno = ENOMEM;
        log_failure(thread);
        return;
    }
    thread->tick.owed_periods = 0; /* they were of another rate; a tick reads `armed` first */
    sp_store_release(&thread->tick.armed, 1);
    if (sp_run.config.synthetic || open_ticker(thread)) {
        sp_run.armed_threads++;
        return;
    }
    sp_store_release(&thread->tick.armed, 0);
    if (errno != EINVAL && errno != ESRCH) /* else the thread has ended: nothing is lost */
        log_failure(thread);
}

static void close_ticker(sp_ticker *ticker)
{
    if (!ticker->source)
        return;
    if (ticker->source != sp_run.choice.source)
        sp_run.fallback_threads--;
    ticker->source->close(ticker);
}

void sp_disarm_locked(sp_thread *thread)
{
    sp_ticker *ticker = &sp_cpu_thread_of(thread)->ticker;
    bool was_armed = sp_load_relaxed(&thread->tick.armed) || ticker->source;
    if (!was_armed)
        return;
    sp_store_release(&thread->tick.armed, 0);
    /* sp_tick stores its hazard, then loads `armed`. Because of this fence, the tick reads 0, or
     * this thread reads the hazard. */
    sp_fence_full();
    close_ticker(ticker);
    sp_run.armed_threads--;
}

/* THREAD takes no tick from now on. A signal that was already sent still reaches the SDK's
 * handler. */
static void suspend_locked(sp_thread *thread)
{
    sp_ticker *ticker = &sp_cpu_thread_of(thread)->ticker;
    if (!sp_load_relaxed(&thread->tick.armed))
        return;
    sp_store_release(&thread->tick.armed, 0);
    sp_fence_full(); /* as in sp_disarm_locked */
    if (ticker->source)
        ticker->source->suspend(ticker);
    else
        sp_run.armed_threads--; /* synthetic: nothing is left to close */
}

static bool wait_until_no_tick_runs(void)
{
    for (int round = 0; round < 1000; round++) {
        bool busy = false;
        for (uint32_t slot = 0; slot < sp_thread_slots(); slot++)
            busy |= sp_load_acquire(&sp_thread_by_slot(slot)->tick.hazard) != NULL;
        if (!busy)
            return true;
        usleep(1000);
    }
    return false;
}

/* First all threads are suspended. Then pending signals get time to arrive, because they must not
 * reach the host's handler. */
bool sp_disarm_all_locked(void)
{
    uint32_t run = sp_run.number;
    sp_for_each_thread(suspend_locked);
    sp_lock_give(&sp_run.lock);
    if (sp_run_has_signal())
        usleep(SETTLE_US);
    bool quiet = wait_until_no_tick_runs();
    sp_lock_take(&sp_run.lock);
    if (sp_run.number == run)
        sp_for_each_thread(sp_disarm_locked);
    return quiet && sp_run.number == run;
}
