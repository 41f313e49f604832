/* SPDX-License-Identifier: Apache-2.0 */
/* The life of a run: start, stop, fork, and the checks in between. See docs/design/sampling.md. */
#include "cpu/engine.h"

#include <errno.h>
#include <string.h>
#include <sys/auxv.h>
#include <ucontext.h>
#include <unistd.h>

#include "context/self.h"
#include "core/clock.h"
#include "core/lock.h"
#include "core/log.h"
#include "cpu/cpu_source.h"
#include "cpu/handler_install.h"
#include "cpu/switch_loss.h"
#include "unwind/stack_bounds.h"

/* Linux, Documentation/arch/x86/elf_auxvec.rst: the instructions that read the segment bases are
 * allowed. On other architectures the bit has another meaning; they do not use it. */
#define HWCAP2_FSGSBASE 2

/* A thread that shares its core often sleeps at the kernel's timer ticks. The time between two
 * timer ticks that find it running is about a jiffy (the time between two timer ticks), and longer
 * times are exponentially rarer: more than ten jiffies occur once in 22,000 timer ticks. */
enum { JIFFIES_AT_ONCE = 2, JIFFIES_MISSED = 10 };

/* A jiffy has this many parts, to measure the CPU time that a thread has used at its first timer
 * tick. */
enum { JIFFY_UNITS = 32 };

sp_engine_run sp_run = {.lock = SP_LOCK_AT(SP_LOCK_CPU_RUN),
                        .pausing = SP_LOCK_AT(SP_LOCK_CPU_PAUSING)};

uint64_t sp_engine_period_ns(void)
{
    return sp_load_relaxed(&sp_run.period_ns);
}

/* The time between two timer ticks of the kernel, at which it checks CPU timers. */
static uint64_t jiffy_ns(void)
{
    struct timespec resolution;
    if (clock_getres(CLOCK_MONOTONIC_COARSE, &resolution) != 0 || resolution.tv_nsec <= 0)
        return 10 * SP_NS_PER_MS;
    return (uint64_t)resolution.tv_nsec;
}

/* Room for an eighth of a second of the deepest stacks: the collector drains three times as often.
 */
static uint64_t ring_size(uint32_t cpu_hz)
{
    uint64_t interval =
        sp_handler.with_attributes ? SP_INTERVAL_BYTES_MAX : sizeof(sp_interval_record);
    uint64_t record =
        interval + sizeof(sp_sample_record) + (sp_run.config.max_depth + 1) * sizeof(uint64_t);
    uint64_t jiffies_hz = SP_NS_PER_S / jiffy_ns(); /* a timer does not signal more often */
    bool by_timer = !sp_run.config.synthetic && sp_run.choice.source == &sp_cpu_timer;
    uint64_t wanted = record * (by_timer ? sp_min_u64(cpu_hz, jiffies_hz) : cpu_hz) / 8;
    uint64_t size = 16 * 1024;
    while (size < wanted && size < 1024 * 1024)
        size *= 2;
    return size;
}

/* Whole periods that may pass within JIFFIES. */
static uint32_t periods_of_jiffies(uint32_t jiffies)
{
    return (uint32_t)(jiffies * sp_handler.jiffy_ns / sp_handler.period_ns) + 1;
}

/* No tick is under way, and the rings have been drained. */
void sp_engine_set_rate(uint32_t cpu_hz)
{
    sp_run.config.cpu_hz = cpu_hz;
    sp_store_relaxed(&sp_run.period_ns, SP_NS_PER_S / cpu_hz);
    sp_run.ring_bytes = ring_size(cpu_hz);
    sp_handler.period_ns = SP_NS_PER_S / cpu_hz;
    sp_handler.jiffy_ns = jiffy_ns();
    sp_handler.jiffy_unit_ns = sp_handler.jiffy_ns / JIFFY_UNITS;
    sp_handler.max_periods = periods_of_jiffies(JIFFIES_AT_ONCE);
    sp_handler.blocked_periods = periods_of_jiffies(JIFFIES_MISSED);
}

/* Called before a new run reads anything, because the counts and samples of an earlier run do not
 * belong to it. */
static void forget_last_run(sp_thread *thread)
{
    /* A slot that is free now, or is just being taken by a thread, is reset when it is taken. */
    if (sp_load_acquire(&thread->registered.life) == SP_THREAD_FREE) /* pairs with create_locked */
        return;
    sp_thread_reset_ticks(thread);
    sp_cpu_thread_of(thread)->excluded_cpu_ns = 0;
}

static void on_registered(sp_thread *thread)
{
    if (thread == sp_self)
        sp_stack_learn_own(thread);
    sp_lock_take(&sp_run.lock);
    sp_arm_locked(thread);
    sp_lock_give(&sp_run.lock);
}

static void on_exiting(sp_thread *thread)
{
    sp_lock_take(&sp_run.lock);
    sp_disarm_locked(thread);
    sp_lock_give(&sp_run.lock);
}

static void fill_error(spanprof_error *error, const char *message)
{
    if (error)
        *error = (spanprof_error){
            .status = SPANPROF_ERROR_SYSTEM, .message = message, .system_errno = errno};
}

static bool choose_engine(void)
{
    memset(&sp_run.choice, 0, sizeof sp_run.choice);
    if (!sp_run_has_signal())
        return true;
    if (!sp_handler_install(sp_run.config.signal))
        return false;
    sp_engine_choose(&sp_run.choice, &sp_run.config, (uint32_t)(SP_NS_PER_S / jiffy_ns()));
    sp_run.signal_cost_ns =
        sp_run.config.measure_cost ? sp_engine_signal_cost_ns(sp_run.config.signal) : 0;
    return true;
}

static spanprof_status start(const sp_engine_config *config, spanprof_error *error)
{
    sp_lock_take(&sp_run.lock);
    sp_run.config = *config;
    sp_run.number++;
    sp_run.failed_threads = 0;
    sp_run.excluded_cpu_ns = 0;
    sp_run.held = sp_run.paused = sp_run.logged_fallback = false;
    sp_handler.modules = config->modules;
    sp_handler.max_depth = config->max_depth;
    sp_handler.with_attributes = config->with_attributes;
    sp_handler.with_times = config->with_times;
    sp_handler.cost_limit_cycles = config->measure_cost ? sp_engine_longest_tick_cycles() : 0;
    sp_handler.has_fsgsbase = (getauxval(AT_HWCAP2) & HWCAP2_FSGSBASE) != 0;
    if (!choose_engine()) {
        fill_error(error,
                   "spanprof_start: the handler of the sampling signal could not be installed: "
                   "choose another signal (SPANPROF_SIGNAL)");
        sp_lock_give(&sp_run.lock);
        return SPANPROF_ERROR_SYSTEM;
    }
    sp_engine_set_rate(config->cpu_hz);
    sp_for_each_thread(forget_last_run);
    sp_for_each_thread(sp_drop_misfit_ring_locked);
    sp_run.running = true;
    /* set before the scan, so that no thread is missed */
    sp_threads_set_hook(on_registered, on_exiting);
    sp_for_each_thread(sp_arm_locked);
    sp_lock_give(&sp_run.lock);
    if (sp_self)
        sp_stack_learn_own(sp_self);
    sp_threads_scan();
    if (sp_thread_slots() == 0)
        sp_log_warn("engine", "no memory for the states of threads: nothing is sampled");
    return SPANPROF_OK;
}

/* A pause releases sp_run.lock for a while. The lock `pausing` prevents that another run starts
 * meanwhile. */
spanprof_status sp_engine_start(const sp_engine_config *config, spanprof_error *error)
{
    sp_lock_take(&sp_run.pausing);
    spanprof_status status = start(config, error);
    sp_lock_give(&sp_run.pausing);
    return status;
}

bool sp_engine_stop(void)
{
    sp_lock_take(&sp_run.pausing);
    sp_lock_take(&sp_run.lock);
    sp_threads_set_hook(NULL, NULL);
    sp_run.running = false;
    bool quiet = sp_disarm_all_locked();
    if (sp_run_has_signal())
        sp_handler_restore(sp_run.config.signal);
    sp_lock_give(&sp_run.lock);
    sp_lock_give(&sp_run.pausing);
    return quiet;
}

uint32_t sp_engine_run_number(void)
{
    sp_lock_take(&sp_run.lock);
    uint32_t number = sp_run.number;
    sp_lock_give(&sp_run.lock);
    return number;
}

void sp_engine_follow_switches(uint32_t run)
{
    for (uint32_t slot = 0; slot < sp_thread_slots(); slot++) {
        sp_thread *thread = sp_thread_by_slot(slot);
        if (!sp_load_relaxed(&thread->tick.armed))
            continue;
        sp_lock_take(&sp_run.lock);
        if (sp_run_is_current_locked(run) &&
            sp_cpu_thread_of(thread)->ticker.source == &sp_cpu_perf)
            sp_store_relaxed(&thread->tick.event_period_ns,
                             sp_switch_loss_period(thread, sp_engine_period_ns()));
        sp_lock_give(&sp_run.lock);
    }
}

uint32_t sp_engine_repair(uint32_t run)
{
    uint32_t repaired = 0;
    sp_lock_take(&sp_run.lock);
    for (uint32_t slot = 0; slot < sp_thread_slots() && sp_run_is_current_locked(run); slot++) {
        sp_thread *thread = sp_thread_by_slot(slot);
        const sp_ticker *ticker = &sp_cpu_thread_of(thread)->ticker;
        if (!ticker->source || ticker->source->is_open(ticker))
            continue;
        sp_disarm_locked(thread);
        sp_arm_locked(thread);
        repaired++;
    }
    sp_lock_give(&sp_run.lock);
    return repaired;
}

bool sp_engine_owns_signal(uint32_t run)
{
    sp_lock_take(&sp_run.lock);
    bool owns = !sp_run_is_current_locked(run) || !sp_run_has_signal() ||
                sp_handler_is_on_top(sp_run.config.signal);
    sp_lock_give(&sp_run.lock);
    return owns;
}

void sp_engine_state_get(sp_engine_state *out)
{
    sp_lock_take(&sp_run.lock);
    const sp_cpu_source *source = sp_run.choice.source;
    *out = (sp_engine_state){
        .cpu_hz = sp_run.config.cpu_hz,
        .paused = sp_run.paused,
        .counts_steal = source && source->counts_steal,
        .threads = sp_run.armed_threads,
        .fallback_threads = sp_run.fallback_threads,
        .failed_threads = sp_run.failed_threads,
        .signal_cost_ns = sp_run.signal_cost_ns,
    };
    strcpy(out->engine, source ? source->name : sp_run.config.synthetic ? "synthetic" : "");
    strcpy(out->reason, sp_run.choice.reason);
    sp_lock_give(&sp_run.lock);
}

/* --- fork ------------------------------------------------------------------------------------- */

/* A pending tick makes kernels before 4.20 restart the fork, without end when a fork takes longer
 * than a period. So the signal is blocked on this thread during the fork. The weight of those ticks
 * is delivered afterwards, as an overrun. */
void sp_engine_fork_prepare(void)
{
    sp_lock_take(&sp_run.lock);
    sp_run.forking = sp_run.running;
    if (!sp_run.forking)
        return;
    sigset_t one;
    sigemptyset(&one);
    sigaddset(&one, sp_run.config.signal);
    pthread_sigmask(SIG_BLOCK, &one, &sp_run.mask_before_fork);
}

static void unblock_after_fork(void)
{
    if (sp_run.forking)
        pthread_sigmask(SIG_SETMASK, &sp_run.mask_before_fork, NULL);
}

void sp_engine_fork_parent(void)
{
    unblock_after_fork();
    sp_lock_give(&sp_run.lock);
}

static void forget_ticker(sp_thread *thread)
{
    sp_cpu_thread_of(thread)->ticker.source = NULL;
}

void sp_engine_fork_child(void)
{
    sp_threads_set_hook(NULL, NULL);
    sp_run.running = false;
    sp_run.armed_threads = sp_run.fallback_threads = 0;
    sp_lock_init(&sp_run.pausing,
                 SP_LOCK_CPU_PAUSING); /* another thread of the parent may hold it */
    sp_cpu_perf.after_fork();
    sp_cpu_timer.after_fork();
    sp_for_each_thread(forget_ticker);
    unblock_after_fork();
    sp_lock_give(&sp_run.lock);
}

void sp_engine_tick_here(uint32_t periods)
{
    ucontext_t context;
    sp_thread *thread = sp_self;
    if (thread && sp_load_relaxed(&thread->tick.armed) && getcontext(&context) == 0)
        sp_tick(thread, periods, &context);
}
