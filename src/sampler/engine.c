/* SPDX-License-Identifier: Apache-2.0 */
/* Which threads tick, and how often. The first tick of a thread comes at a random moment within a period, so that threads shorter
 * than a period count right on average and no two threads tick in step. See docs/design/sampling.md.
 *
 * One lock serializes arming and disarming, and all that cpu_source.h does. Order: engine.lock before the registry's. */
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/log.h"
#include "sampler/engine_choice.h"
#include "sampler/handler_install.h"
#include "sampler/sampler.h"
#include "sampler/stack_bounds.h"
#include "sampler/switch_loss.h"
#include "thread/self.h"

/* linux/Documentation/arch/x86/elf_auxvec: the instructions that read the segment bases are allowed. Other architectures have another
 * meaning for the bit, and do not ask. */
#define HWCAP2_FSGSBASE 2

/* A thread that shares its core often sleeps when the kernel looks: jiffies of CPU time that may pass unseen. */
enum { LOOKS_MISSED = 2 };

/* Into so many parts a jiffy is divided to tell what a thread had used at the first look. */
enum { LOOK_UNITS = 32 };

enum { SETTLE_US = 500 };

static struct {
    pthread_mutex_t lock;
    pthread_mutex_t pausing; /* held by pause and resume for all that they do; before lock */
    bool running;
    bool held;    /* the collector changes the rate */
    bool paused;  /* the application wishes no ticks */
    bool forking; /* mask_before_fork is to be put back */
    sigset_t mask_before_fork;
    sp_sampler_config config;
    sp_engine_choice choice;
    uint64_t ring_bytes;
    int64_t excluded_cpu_ns; /* of the process, in pauses; see exclude */
    bool said_fallback;
    _Atomic uint64_t period_ns;
    uint64_t signal_cost_ns;
    uint32_t armed_threads, fallback_threads;
    uint64_t failed_threads;
} engine = {.lock = PTHREAD_MUTEX_INITIALIZER, .pausing = PTHREAD_MUTEX_INITIALIZER};

uint64_t sp_sampler_period_ns(void)
{
    return sp_load_relaxed(&engine.period_ns);
}

/* How often the kernel looks at CPU timers. */
static uint64_t jiffy_ns(void)
{
    struct timespec resolution;
    if (clock_getres(CLOCK_MONOTONIC_COARSE, &resolution) != 0 || resolution.tv_nsec <= 0)
        return 10 * SP_NS_PER_MS;
    return (uint64_t)resolution.tv_nsec;
}

/* Room for an eighth of a second of the deepest stacks: the collector drains three times as often. */
static uint64_t ring_size(uint32_t cpu_hz)
{
    uint64_t record = sizeof(sp_interval_record) + sizeof(sp_sample_record) +
                      engine.config.max_depth * sizeof(uint64_t);
    uint64_t looks = SP_NS_PER_S / jiffy_ns(); /* by timer, the kernel signals no oftener */
    bool by_look = !engine.config.synthetic && engine.choice.source == &sp_cpu_timer;
    uint64_t wanted = record * (by_look ? sp_min_u64(cpu_hz, looks) : cpu_hz) / 8;
    uint64_t size = 16 * 1024;
    while (size < wanted && size < 1024 * 1024)
        size *= 2;
    return size;
}

/* No tick is under way, and what is in the rings has been drained. */
static void set_rate(uint32_t cpu_hz)
{
    engine.config.cpu_hz = cpu_hz;
    sp_store_relaxed(&engine.period_ns, SP_NS_PER_S / cpu_hz);
    engine.ring_bytes = ring_size(cpu_hz);
    sp_handler.period_ns = SP_NS_PER_S / cpu_hz;
    sp_handler.jiffy_ns = jiffy_ns();
    sp_handler.look_unit_ns = sp_handler.jiffy_ns / LOOK_UNITS;
    sp_handler.max_periods =
        (uint32_t)(LOOKS_MISSED * sp_handler.jiffy_ns * cpu_hz / SP_NS_PER_S) + 1;
}

static uint64_t random_below(uint64_t bound)
{
    uint64_t value = 0;
    if (getrandom(&value, sizeof value, GRND_NONBLOCK) != sizeof value)
        value = sp_clock_monotonic_ns() * 0x9e3779b97f4a7c15u;
    return value % bound;
}

static void say_failure(sp_thread *thread)
{
    int error = errno;
    if (engine.failed_threads++ == 0 && engine.choice.ticks)
        sp_log_warn("sampler",
                    "thread %d cannot be made to tick: %s%s; further ones are counted only",
                    (int)thread->tid, strerror(error),
                    error == EAGAIN ? " (RLIMIT_SIGPENDING bounds timers)" : "");
}

static void say_fallback(void)
{
    if (!engine.said_fallback)
        sp_log_warn("sampler",
                    "no more perf events: %s (they take at most a quarter of RLIMIT_NOFILE); "
                    "further threads tick by timer",
                    strerror(errno));
    engine.said_fallback = true;
}

/* An empty ring of another rate's size makes way. */
static bool make_ring(sp_thread *thread)
{
    if (sp_ring_exists(&thread->ring) && thread->ring.size != engine.ring_bytes &&
        sp_load_relaxed(&thread->ring.tail) == sp_load_relaxed(&thread->ring.head))
        sp_ring_deinit(&thread->ring);
    return sp_ring_exists(&thread->ring) || sp_ring_init(&thread->ring, engine.ring_bytes);
}

/* Before anything of a new run looks: what a slot counted and sampled in an earlier one is not this one's. */
static void forget_last_run(sp_thread *thread)
{
    /* A slot that is free now, or is just being taken by a thread, begins anew by itself. */
    if (sp_load_acquire(&thread->life) == SP_THREAD_FREE) /* pairs with create_locked */
        return;
    sp_thread_reset_ticks(thread);
    thread->excluded_cpu_ns = 0;
}

/* A timer begins with short intervals, so that the first look tells by their number what the thread has used; then the handler gives
 * it whole periods. */
static bool open_with(const sp_cpu_source *source, sp_thread *thread)
{
    uint64_t period = sp_sampler_period_ns(), moment = 1 + random_below(period);
    bool by_timer = source == &sp_cpu_timer;
    sp_tick_plan plan = {.signal = engine.config.signal,
                         .period_ns = by_timer ? sp_handler.look_unit_ns : period,
                         .first_ns = by_timer ? 1 + random_below(sp_handler.look_unit_ns) : moment};
    thread->first_moment_ns = by_timer ? moment : 0;
    sp_store_relaxed(&thread->event_period_ns, period);
    thread->event_period_set_ns = plan.first_ns;
    thread->switch_loss = (sp_switch_loss){0};
    return source->open(&thread->ticker, thread->tid, thread, &plan);
}

/* By the engine, or by a timer where the engine cannot; errno tells why neither could. */
static bool open_ticker(sp_thread *thread)
{
    if (open_with(engine.choice.source, thread))
        return true;
    if (engine.choice.source == &sp_cpu_timer || errno == ESRCH)
        return false;
    say_fallback();
    if (!open_with(&sp_cpu_timer, thread))
        return false;
    engine.fallback_threads++;
    return true;
}

static void arm_locked(sp_thread *thread)
{
    /* life first: what stands beside it belongs to the thread that it speaks of (pairs with create_locked) */
    if (!engine.running || engine.held || engine.paused ||
        sp_load_acquire(&thread->life) != SP_THREAD_LIVE || thread->internal ||
        sp_load_relaxed(&thread->armed))
        return;
    if (!make_ring(thread)) {
        errno = ENOMEM;
        say_failure(thread);
        return;
    }
    sp_store_release(&thread->armed, 1);
    if (engine.config.synthetic || open_ticker(thread)) {
        engine.armed_threads++;
        return;
    }
    sp_store_release(&thread->armed, 0);
    if (errno != EINVAL && errno != ESRCH) /* the thread has ended meanwhile: nothing is lost */
        say_failure(thread);
}

static void close_ticker(sp_thread *thread)
{
    if (!thread->ticker.source)
        return;
    if (thread->ticker.source != engine.choice.source)
        engine.fallback_threads--;
    thread->ticker.source->close(&thread->ticker);
}

static void disarm_locked(sp_thread *thread)
{
    bool was_armed = sp_load_relaxed(&thread->armed) || thread->ticker.source;
    if (!was_armed)
        return;
    sp_store_release(&thread->armed, 0);
    sp_fence_full(); /* pairs with the one in sp_tick: the tick sees armed == 0, or we see in_tick */
    close_ticker(thread);
    engine.armed_threads--;
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

static bool choose_engine(void)
{
    memset(&engine.choice, 0, sizeof engine.choice);
    if (engine.config.synthetic)
        return true;
    if (!sp_handler_install(engine.config.signal))
        return false;
    sp_engine_choose(&engine.choice, engine.config.engine, engine.config.signal);
    engine.signal_cost_ns =
        engine.config.measure_cost ? sp_engine_signal_cost_ns(engine.config.signal) : 0;
    return true;
}

static void warn_of_what_is_missing(bool scanned)
{
    if (!scanned)
        sp_log_warn("sampler",
                    "/proc/self/task cannot be read: only threads that attach are sampled");
    if (sp_thread_slots() == 0)
        sp_log_warn("sampler", "no memory for the states of threads: nothing is sampled");
}

spanprof_status sp_sampler_start(const sp_sampler_config *config, spanprof_error *error)
{
    pthread_mutex_lock(&engine.lock);
    engine.config = *config;
    engine.failed_threads = 0;
    engine.excluded_cpu_ns = 0;
    engine.held = engine.paused = engine.said_fallback = false;
    sp_handler.modules = config->modules;
    sp_handler.max_depth = config->max_depth;
    sp_handler.measure_cost = config->measure_cost;
    sp_handler.has_fsgsbase = (getauxval(AT_HWCAP2) & HWCAP2_FSGSBASE) != 0;
    if (!choose_engine()) {
        fill_error(error, "the sampling signal's handler could not be installed");
        pthread_mutex_unlock(&engine.lock);
        return SPANPROF_ERROR_SYSTEM;
    }
    set_rate(config->cpu_hz);
    for_each_thread(forget_last_run);
    engine.running = true;
    /* before the scan, so that no thread falls between */
    sp_threads_set_hook(on_registered, on_exiting);
    for_each_thread(arm_locked);
    pthread_mutex_unlock(&engine.lock);
    if (sp_self)
        learn_own_stack(sp_self);
    warn_of_what_is_missing(sp_threads_scan());
    return SPANPROF_OK;
}

/* No thread takes a tick any more; signals on their way still find us. */
static void hush_locked(sp_thread *thread)
{
    if (!sp_load_relaxed(&thread->armed))
        return;
    sp_store_release(&thread->armed, 0);
    sp_fence_full(); /* pairs with the one in sp_tick, as in disarm_locked */
    if (thread->ticker.source)
        thread->ticker.source->hush(&thread->ticker);
    else
        engine.armed_threads--; /* synthetic: nothing is left to close */
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

/* With the lock held, and given back for a while: all threads disarmed. First all are hushed, then the signals that were on their way get
 * a moment to arrive: the host's handler must not see them. Returns whether no tick is under way. */
static bool disarm_all_locked(void)
{
    for_each_thread(hush_locked);
    pthread_mutex_unlock(&engine.lock);
    if (!engine.config.synthetic)
        usleep(SETTLE_US);
    bool quiet = wait_for_ticks();
    pthread_mutex_lock(&engine.lock);
    for_each_thread(disarm_locked);
    return quiet;
}

bool sp_sampler_stop(void)
{
    pthread_mutex_lock(&engine.lock);
    sp_threads_set_hook(NULL, NULL);
    engine.running = false;
    bool quiet = disarm_all_locked();
    if (!engine.config.synthetic)
        sp_handler_restore(engine.config.signal);
    pthread_mutex_unlock(&engine.lock);
    return quiet;
}

/* --- rate and pause -------------------------------------------------------------------------------------------------------- */

bool sp_sampler_hold(void)
{
    pthread_mutex_lock(&engine.lock);
    engine.held = true;
    bool quiet = disarm_all_locked();
    pthread_mutex_unlock(&engine.lock);
    return quiet;
}

void sp_sampler_go_on(uint32_t cpu_hz)
{
    pthread_mutex_lock(&engine.lock);
    if (cpu_hz != engine.config.cpu_hz)
        set_rate(cpu_hz);
    engine.held = false;
    for_each_thread(arm_locked);
    pthread_mutex_unlock(&engine.lock);
}

/* CPU time that passes in a pause is taken out of the books: the clock's reading is subtracted at its begin and added at its end. A
 * thread that was made meanwhile has its whole time added. */
static void exclude(sp_thread *thread, int64_t sign)
{
    uint64_t cpu_ns;
    if (sp_load_acquire(&thread->life) == SP_THREAD_LIVE &&
        sp_clock_thread_cpu_ns(thread->tid, &cpu_ns))
        thread->excluded_cpu_ns += sign * (int64_t)cpu_ns;
}

static void exclude_from(sp_thread *thread)
{
    exclude(thread, -1);
}

static void exclude_until(sp_thread *thread)
{
    exclude(thread, 1);
}

spanprof_status sp_sampler_pause(void)
{
    pthread_mutex_lock(&engine.pausing);
    pthread_mutex_lock(&engine.lock);
    bool running = engine.running;
    if (running && !engine.paused) {
        engine.paused = true;
        disarm_all_locked();
        engine.excluded_cpu_ns -= (int64_t)sp_threads_application_cpu_ns();
        for_each_thread(exclude_from);
    }
    pthread_mutex_unlock(&engine.lock);
    pthread_mutex_unlock(&engine.pausing);
    return running ? SPANPROF_OK : SPANPROF_ERROR_NOT_STARTED;
}

spanprof_status sp_sampler_resume(void)
{
    pthread_mutex_lock(&engine.pausing);
    pthread_mutex_lock(&engine.lock);
    bool running = engine.running;
    if (running && engine.paused) {
        engine.excluded_cpu_ns += (int64_t)sp_threads_application_cpu_ns();
        for_each_thread(exclude_until);
        engine.paused = false;
        for_each_thread(arm_locked);
    }
    pthread_mutex_unlock(&engine.lock);
    pthread_mutex_unlock(&engine.pausing);
    return running ? SPANPROF_OK : SPANPROF_ERROR_NOT_STARTED;
}

static uint64_t not_below_zero(int64_t value)
{
    return value > 0 ? (uint64_t)value : 0;
}

uint64_t sp_sampler_process_cpu_ns(void)
{
    pthread_mutex_lock(&engine.lock);
    int64_t clock = engine.paused ? 0 : (int64_t)sp_threads_application_cpu_ns();
    uint64_t cpu_ns = not_below_zero(clock - engine.excluded_cpu_ns);
    pthread_mutex_unlock(&engine.lock);
    return cpu_ns;
}

bool sp_sampler_thread_cpu_ns(sp_thread *thread, uint64_t *out)
{
    uint64_t clock = 0;
    pthread_mutex_lock(&engine.lock);
    bool alive = sp_load_acquire(&thread->life) == SP_THREAD_LIVE &&
                 (engine.paused || sp_clock_thread_cpu_ns(thread->tid, &clock));
    *out = not_below_zero((int64_t)clock - thread->excluded_cpu_ns);
    pthread_mutex_unlock(&engine.lock);
    return alive;
}

/* --- what may have gone wrong ---------------------------------------------------------------------------------------------- */

void sp_sampler_follow_switches(void)
{
    for (uint32_t slot = 0; slot < sp_thread_slots(); slot++) {
        sp_thread *thread = sp_thread_by_slot(slot);
        if (!sp_load_relaxed(&thread->armed))
            continue;
        pthread_mutex_lock(&engine.lock);
        if (thread->ticker.source == &sp_cpu_perf)
            sp_store_relaxed(&thread->event_period_ns,
                             sp_switch_loss_period(thread, sp_sampler_period_ns()));
        pthread_mutex_unlock(&engine.lock);
    }
}

uint32_t sp_sampler_repair(void)
{
    uint32_t repaired = 0;
    pthread_mutex_lock(&engine.lock);
    for (uint32_t slot = 0; slot < sp_thread_slots(); slot++) {
        sp_thread *thread = sp_thread_by_slot(slot);
        if (!thread->ticker.source || thread->ticker.source->is_open(&thread->ticker))
            continue;
        disarm_locked(thread);
        arm_locked(thread);
        repaired++;
    }
    pthread_mutex_unlock(&engine.lock);
    return repaired;
}

bool sp_sampler_owns_signal(void)
{
    return !engine.running || engine.config.synthetic || sp_handler_is_on_top(engine.config.signal);
}

void sp_sampler_state_get(sp_sampler_state *out)
{
    pthread_mutex_lock(&engine.lock);
    const sp_cpu_source *source = engine.choice.source;
    *out = (sp_sampler_state){
        .cpu_hz = engine.config.cpu_hz,
        .paused = engine.paused,
        .threads = engine.armed_threads,
        .fallback_threads = engine.fallback_threads,
        .failed_threads = engine.failed_threads,
        .signal_cost_ns = engine.signal_cost_ns,
    };
    strcpy(out->engine, source ? source->name : "synthetic");
    strcpy(out->reason, engine.choice.reason);
    pthread_mutex_unlock(&engine.lock);
}

/* --- fork ------------------------------------------------------------------------------------------------------------------ */

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

static void forget_ticker(sp_thread *thread)
{
    thread->ticker.source = NULL;
}

void sp_sampler_fork_child(void)
{
    sp_threads_set_hook(NULL, NULL);
    engine.running = false;
    engine.armed_threads = engine.fallback_threads = 0;
    pthread_mutex_init(&engine.pausing, NULL); /* another thread of the parent may hold it */
    sp_cpu_perf.after_fork();
    sp_cpu_timer.after_fork();
    for_each_thread(forget_ticker);
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
