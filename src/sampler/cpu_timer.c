/* SPDX-License-Identifier: Apache-2.0 */
/* The engine `timer`: a POSIX timer on each thread's CPU clock, which signals that very thread (SIGEV_THREAD_ID) and carries its
 * state. The first expiry is random within a period, so that threads shorter than a period count right on average and no two
 * threads tick in step. The kernel looks at CPU timers once a jiffy; what it missed comes as the overrun, and the weight is
 * 1 + overrun whole periods. See docs/design/sampling.md for why this and not setitimer or perf events.
 *
 * One lock serializes arming and disarming. Order: engine.lock before the registry's. */
#include "sampler/sampler.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/log.h"
#include "sampler/stack_bounds.h"
#include "thread/self.h"

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

/* A thread that shares its core often sleeps when the kernel looks: jiffies of CPU time that may pass unseen. */
enum { LOOKS_MISSED = 2 };

static struct {
    pthread_mutex_t lock;
    bool running;
    bool forking; /* mask_before_fork is to be put back */
    sigset_t mask_before_fork;
    bool in_chain; /* our handler is still installed, perhaps below another that passes on to it */
    sp_sampler_config config;
    uint64_t period_ns;
    uint64_t ring_bytes;
    _Atomic uint32_t armed_threads;
    _Atomic uint64_t failed_threads;
} engine = {.lock = PTHREAD_MUTEX_INITIALIZER};

uint64_t sp_sampler_period_ns(void)
{
    return engine.period_ns;
}

uint32_t sp_sampler_threads(void)
{
    return sp_load_relaxed(&engine.armed_threads);
}

uint64_t sp_sampler_failed_threads(void)
{
    return sp_load_relaxed(&engine.failed_threads);
}

/* How often the kernel looks at CPU timers. */
static uint64_t jiffy_ns(void)
{
    struct timespec resolution;
    if (clock_getres(CLOCK_MONOTONIC_COARSE, &resolution) != 0 || resolution.tv_nsec <= 0)
        return 10 * SP_NS_PER_MS;
    return (uint64_t)resolution.tv_nsec;
}

/* Room for 200 ms of the deepest stacks: the collector drains ten times a second. */
static uint64_t ring_size(const sp_sampler_config *config)
{
    uint64_t record = sizeof(sp_interval_record) + sizeof(sp_sample_record) +
                      config->max_depth * sizeof(uint64_t);
    uint64_t looks = SP_NS_PER_S / jiffy_ns(); /* the kernel signals no oftener */
    uint64_t ticks = config->synthetic ? config->cpu_hz : sp_min_u64(config->cpu_hz, looks);
    uint64_t wanted = record * ticks / 5;
    uint64_t size = 32 * 1024;
    while (size < wanted && size < 1024 * 1024)
        size *= 2;
    return size;
}

static uint64_t random_below(uint64_t bound)
{
    uint64_t value = 0;
    if (getrandom(&value, sizeof value, GRND_NONBLOCK) != sizeof value)
        value = sp_clock_monotonic_ns() * 0x9e3779b97f4a7c15u;
    return value % bound;
}

/* Whether the timer could be made and set; errno tells why not. */
static bool start_timer(sp_thread *thread)
{
    struct sigevent event;
    memset(&event, 0, sizeof event);
    event.sigev_notify = SIGEV_THREAD_ID;
    event.sigev_signo = engine.config.signal;
    event.sigev_value.sival_ptr = thread;
    event.sigev_notify_thread_id = thread->tid;
    if (timer_create(sp_clock_thread_cpu_id(thread->tid), &event, &thread->timer) != 0)
        return false;
    struct itimerspec when = {
        .it_value = sp_timespec_from_ns(1 + random_below(engine.period_ns)),
        .it_interval = sp_timespec_from_ns(engine.period_ns),
    };
    if (timer_settime(thread->timer, 0, &when, NULL) != 0) {
        timer_delete(thread->timer);
        return false;
    }
    thread->has_timer = 1;
    return true;
}

static void say_failure(sp_thread *thread)
{
    int error = errno;
    if (atomic_fetch_add_explicit(&engine.failed_threads, 1, memory_order_relaxed) == 0)
        sp_log_warn("sampler",
                    "thread %d gets no CPU timer: %s (RLIMIT_SIGPENDING bounds timers); further "
                    "ones are counted only",
                    (int)thread->tid, strerror(error));
}

static bool make_ring(sp_thread *thread)
{
    return sp_ring_exists(&thread->ring) || sp_ring_init(&thread->ring, engine.ring_bytes);
}

/* A run begins its counts at zero. No tick is under way: the thread is not armed. */
static void reset_counts(sp_thread *thread)
{
    sp_store_relaxed(&thread->ticks, 0);
    sp_store_relaxed(&thread->weights, 0);
    sp_store_relaxed(&thread->dropped_ring_full, 0);
    sp_store_relaxed(&thread->dropped_small_stack, 0);
    sp_store_relaxed(&thread->truncated, 0);
    sp_store_relaxed(&thread->incomplete, 0);
    thread->last_recorded = 1;
}

/* Before anything of a new run looks: what a slot counted and sampled in an earlier one is not this one's, and its ring may have
 * another size. */
static void forget_last_run(sp_thread *thread)
{
    if (thread->ring.size != engine.ring_bytes)
        sp_ring_deinit(&thread->ring);
    sp_store_relaxed(&thread->ring.tail, sp_load_relaxed(&thread->ring.head));
    reset_counts(thread);
}

static void arm_locked(sp_thread *thread)
{
    /* life first: what stands beside it belongs to the thread that it speaks of (pairs with create_locked) */
    if (!engine.running || sp_load_acquire(&thread->life) != SP_THREAD_LIVE || thread->internal ||
        sp_load_relaxed(&thread->armed))
        return;
    if (!make_ring(thread)) {
        errno = ENOMEM;
        say_failure(thread);
        return;
    }
    reset_counts(thread);
    sp_store_release(&thread->armed, 1);
    if (engine.config.synthetic || start_timer(thread)) {
        sp_count(&engine.armed_threads, 1);
        return;
    }
    sp_store_release(&thread->armed, 0);
    if (errno != EINVAL && errno != ESRCH) /* the thread has ended meanwhile: nothing is lost */
        say_failure(thread);
}

static void disarm_locked(sp_thread *thread)
{
    if (!sp_load_relaxed(&thread->armed))
        return;
    sp_store_release(&thread->armed, 0);
    sp_fence_full(); /* pairs with the one in sp_tick: the tick sees armed == 0, or we see in_tick */
    if (thread->has_timer) {
        timer_delete(thread->timer);
        thread->has_timer = 0;
    }
    atomic_fetch_sub_explicit(&engine.armed_threads, 1, memory_order_relaxed);
}

static void learn_own_stack(sp_thread *thread)
{
    sp_stack_bounds bounds = sp_stack_bounds_of_self();
    sp_store_relaxed(&thread->stack_low, bounds.low);
    sp_store_release(&thread->stack_high, bounds.high);
}

static void on_registered(sp_thread *thread)
{
    if (thread == sp_self)
        learn_own_stack(thread);
    pthread_mutex_lock(&engine.lock);
    arm_locked(thread);
    pthread_mutex_unlock(&engine.lock);
}

static void on_exiting(sp_thread *thread)
{
    pthread_mutex_lock(&engine.lock);
    disarm_locked(thread);
    pthread_mutex_unlock(&engine.lock);
}

/* The top of a stack that glibc made is where the thread's control block begins; the main thread's is the end of its mapping. What
 * cannot be told so stays guarded: a mapping's end proves nothing, for neighbours merge. */
void sp_sampler_learn_stack(sp_thread *thread)
{
    uint64_t sp = sp_load_relaxed(&thread->seen_sp), tp = sp_load_relaxed(&thread->seen_tp);
    sp_stack_bounds mapping;
    if (sp_load_relaxed(&thread->stack_high) || sp == 0 ||
        !sp_stack_bounds_of_address(sp, &mapping))
        return;
    uint64_t high = thread->tid == getpid() ? mapping.high : tp > sp && tp < mapping.high ? tp : 0;
    if (high == 0)
        return;
    sp_store_relaxed(&thread->stack_low, mapping.low);
    sp_store_release(&thread->stack_high, high);
}

static bool is_ours(const struct sigaction *action)
{
    return (action->sa_flags & SA_SIGINFO) && action->sa_sigaction == sp_handle_tick;
}

/* Whether a signal reaches our handler through the one that is installed now. It is asked by sending one. */
static bool is_reached(void)
{
    siginfo_t info;
    memset(&info, 0, sizeof info);
    info.si_code = SI_QUEUE;
    info.si_pid = getpid();
    info.si_uid = getuid();
    info.si_value.sival_ptr = &sp_handler.probe;
    sigset_t one, before;
    sigemptyset(&one);
    sigaddset(&one, engine.config.signal);
    sp_store_relaxed(&sp_handler.probe, 0);
    pthread_sigmask(SIG_UNBLOCK, &one, &before);
    long failed =
        syscall(SYS_rt_tgsigqueueinfo, getpid(), syscall(SYS_gettid), engine.config.signal, &info);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return failed == 0 && sp_load_relaxed(&sp_handler.probe) != 0;
}

static bool is_handler(const struct sigaction *action)
{
    return (action->sa_flags & SA_SIGINFO) ||
           (action->sa_handler != SIG_DFL && action->sa_handler != SIG_IGN);
}

/* Another handler may have been put over ours since the last stop, and pass on to it what it does not know (a second copy of the
 * SDK does). Then ours is reached already, and putting it on top once more would close a circle. */
static bool install_handler(void)
{
    struct sigaction action, current;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = sp_handle_tick;
    /* RESTART: system calls go on after a tick. ONSTACK: a Go program's threads have small stacks and demand it. */
    action.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK;
    sigfillset(
        &action.sa_mask); /* no other handler runs on top of a tick: its own stack may be small */
    if (sigaction(engine.config.signal, NULL, &current) != 0)
        return false;
    if (is_ours(&current) || (engine.in_chain && is_handler(&current) && is_reached()))
        return true;
    sp_handler.previous = current;
    if (is_handler(&current))
        sp_log_info(
            "sampler",
            "signal %d has a handler already: what our timers did not send is passed on to it",
            engine.config.signal);
    engine.in_chain = true;
    return sigaction(engine.config.signal, &action, NULL) == 0;
}

/* Give the host its handler back. Where there was none ours stays: a tick still on its way would end the process otherwise. */
static void restore_handler(void)
{
    struct sigaction current;
    if (!is_handler(&sp_handler.previous) || sigaction(engine.config.signal, NULL, &current) != 0 ||
        !is_ours(&current))
        return;
    sigaction(engine.config.signal, &sp_handler.previous, NULL);
    engine.in_chain = false;
}

static void for_each_thread(void (*function)(sp_thread *))
{
    for (uint32_t slot = 0; slot < sp_thread_slots(); slot++)
        function(sp_thread_by_slot(slot));
}

static void fill_error(spanprof_error *error, const char *message)
{
    if (error)
        *error = (spanprof_error){
            .status = SPANPROF_ERROR_SYSTEM, .message = message, .system_errno = errno};
}

spanprof_status sp_sampler_start(const sp_sampler_config *config, spanprof_error *error)
{
    pthread_mutex_lock(&engine.lock);
    engine.config = *config;
    engine.period_ns = SP_NS_PER_S / config->cpu_hz;
    engine.ring_bytes = ring_size(config);
    sp_store_relaxed(&engine.failed_threads, 0);
    sp_handler.modules = config->modules;
    sp_handler.max_depth = config->max_depth;
    sp_handler.max_periods = (uint32_t)(LOOKS_MISSED * jiffy_ns() / engine.period_ns) + 1;
    if (!config->synthetic && !install_handler()) {
        fill_error(error, "the sampling signal's handler could not be installed");
        pthread_mutex_unlock(&engine.lock);
        return SPANPROF_ERROR_SYSTEM;
    }
    for_each_thread(forget_last_run);
    engine.running = true;
    sp_threads_set_hook(on_registered,
                        on_exiting); /* before the scan, so that no thread falls between */
    for_each_thread(arm_locked);
    pthread_mutex_unlock(&engine.lock);
    if (sp_self)
        learn_own_stack(sp_self);
    if (!sp_threads_scan())
        sp_log_warn("sampler",
                    "/proc/self/task cannot be read: only threads that attach are sampled");
    if (sp_thread_slots() == 0)
        sp_log_warn("sampler", "no memory for the states of threads: nothing is sampled");
    return SPANPROF_OK;
}

static bool wait_for_ticks(void)
{
    for (int round = 0; round < 1000; round++) {
        bool busy = false;
        for (uint32_t slot = 0; slot < sp_thread_slots(); slot++)
            busy |= sp_load_acquire(&sp_thread_by_slot(slot)->in_tick) != 0;
        if (!busy)
            return true;
        usleep(1000);
    }
    return false;
}

bool sp_sampler_stop(void)
{
    pthread_mutex_lock(&engine.lock);
    sp_threads_set_hook(NULL, NULL);
    engine.running = false;
    for_each_thread(disarm_locked);
    if (!engine.config.synthetic)
        restore_handler();
    pthread_mutex_unlock(&engine.lock);
    return wait_for_ticks();
}

/* A tick that is pending makes kernels before 4.20 begin the fork anew, for ever when forking takes longer than a period: the signal
 * is blocked on this thread meanwhile. Its weight comes afterwards, as an overrun. */
void sp_sampler_fork_prepare(void)
{
    pthread_mutex_lock(&engine.lock);
    engine.forking = engine.running;
    if (!engine.forking)
        return;
    sigset_t one;
    sigemptyset(&one);
    sigaddset(&one, engine.config.signal);
    pthread_sigmask(SIG_BLOCK, &one, &engine.mask_before_fork);
}

static void unblock_after_fork(void)
{
    if (engine.forking)
        pthread_sigmask(SIG_SETMASK, &engine.mask_before_fork, NULL);
}

void sp_sampler_fork_parent(void)
{
    unblock_after_fork();
    pthread_mutex_unlock(&engine.lock);
}

void sp_sampler_fork_child(void)
{
    sp_threads_set_hook(NULL, NULL);
    engine.running = false;
    sp_store_relaxed(&engine.armed_threads, 0);
    unblock_after_fork();
    pthread_mutex_unlock(&engine.lock);
}

void sp_sampler_tick_here(uint32_t periods)
{
    ucontext_t context;
    sp_thread *thread = sp_self;
    if (thread && sp_load_relaxed(&thread->armed) && getcontext(&context) == 0)
        sp_tick(thread, periods, &context);
}
