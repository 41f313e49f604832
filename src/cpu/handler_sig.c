/* SPDX-License-Identifier: Apache-2.0 */
/* The signal handler of the CPU engine, and all that it calls together with the *_sig.h headers,
 * walk_sig.c and host_action_sig.c.
 *
 * Charter. Allowed: loads and stores of the interrupted thread's own state, its ring, the published
 * generation of modules, its own stack; raw system calls that do not touch errno (process_vm_readv
 * and getpid for guarded loads; gettid, get_robust_list and timer_settime once a thread, ioctl when
 * its period changes, clock_gettime where samples have times, rt_sigprocmask for the host's
 * handler). Forbidden: locks, allocation, any function of libc but those that the compiler itself
 * emits (memcpy, memset), thread-local variables, functions bound lazily, logging, clocks of libc.
 * A tick only writes a record; the collector thread does all work that needs more than this.
 *
 * A full ring drops the tick and counts it. The signal is blocked while its handler runs, so a tick
 * does not nest. */
#include "cpu/cpu_engine.h"
#include "unwind/walk_sig.h"

#if defined(__x86_64__)
#include <asm/prctl.h>
#endif
#include <linux/perf_event.h>
#include <poll.h>
#include <ucontext.h>

#include "context/foreign_record_sig.h"
#include "context/interval_sig.h"
#include "core/cycles_sig.h"
#include "core/syscall_sig.h"
#include "cpu/cpu_threads_sig.h"
#include "cpu/host_action_sig.h"
#include "cpu/perf_owners_sig.h"
#include "unwind/fiber_stack_sig.h"
#include "unwind/sample_stack_sig.h"

enum { SMALLEST_STACK = 3 * 1024 };

sp_handler_state sp_handler;

/* The address of the thread's control block, which in glibc is at the high end of a stack that
 * glibc allocated. This reads the register and not the word that it points to, because a thread
 * that clone made may have no such word. */
SP_SIGSAFE static uint64_t thread_pointer(void)
{
    uint64_t pointer = 0;
#if defined(__x86_64__)
    if (sp_handler.has_fsgsbase)
        __asm__("rdfsbase %0" : "=r"(pointer));
    else
        sp_syscall6(SYS_arch_prctl, ARCH_GET_FS, (long)(uintptr_t)&pointer, 0, 0, 0, 0);
#elif defined(__aarch64__)
    __asm__("mrs %0, tpidr_el0" : "=r"(pointer));
#else
#error "spanprof samples on x86-64 and aarch64"
#endif
    return pointer;
}

SP_SIGSAFE static void fill_sample(sp_sample_record *sample, sp_thread *thread,
                                   const sp_generation *generation, const void *ucontext)
{
    sp_walk walk = {
        .generation = generation,
        .registers = sp_registers_from_ucontext(ucontext),
        .bounds = {sp_load_relaxed(&thread->tick.stack_low),
                   sp_load_relaxed(&thread->tick.stack_high)},
        .fiber = sp_stack_of_fiber(thread),
        .pcs = sample->pcs,
        .max_depth = sp_handler.max_depth,
    };
    sample->unknown |= !sp_is_on_stack(thread, walk.registers.sp);
    if (SP_UNLIKELY(sp_load_relaxed(&thread->owned.on_fiber))) {
        walk.bounds = walk.fiber;
    } else if (walk.bounds.high == 0) {
        sp_store_relaxed(&thread->tick.seen_sp, walk.registers.sp);
        sp_store_relaxed(&thread->tick.seen_tp, thread_pointer());
    }
    sp_walk_stack(&walk);
    sp_sample_take_walk(sample, &walk);
}

/* The system call and not the vDSO, which libc binds lazily. If a filter refuses it, the sample has
 * no time. */
SP_SIGSAFE static void add_time(sp_sample_record *sample)
{
    struct timespec now;
    if (sp_syscall6(SYS_clock_gettime, CLOCK_REALTIME, (long)(uintptr_t)&now, 0, 0, 0, 0) != 0)
        return;
    sample->pcs[sample->count] = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
    sample->header.size += (uint32_t)sizeof sample->pcs[0];
}

/* The context as a tick found it: its number, whether it is another tracer's, or unknown. */
typedef struct tick_context {
    uint64_t number;
    bool unknown;
    bool is_foreign;
} tick_context;

/* Switch numbers and those of foreign switches only grow, both in twos, and so does their sum: it
 * is a number that this thread never had under another context. */
SP_SIGSAFE static tick_context find_context(sp_thread *thread)
{
    tick_context context = {.number = sp_load_relaxed(&thread->published.switch_number)};
    bool posted =
        sp_load_relaxed(&thread->owned.posts) != sp_load_relaxed(&thread->owned.posts_seen);
    context.unknown = (context.number & 1) || posted;
    if (!context.unknown && !sp_foreign_is_hidden(thread)) {
        sp_foreign_result result = sp_foreign_look(thread, thread_pointer);
        context.unknown = result == SP_FOREIGN_UNKNOWN;
        context.is_foreign = result == SP_FOREIGN_ACTIVE;
    }
    context.number += thread->tick.foreign_switches;
    return context;
}

SP_SIGSAFE static void fill_interval(sp_interval_record *interval, sp_thread *thread,
                                     const tick_context *context)
{
    if (context->is_foreign)
        sp_interval_fill_foreign(interval, &thread->tick.foreign, context->number);
    else
        sp_interval_fill(interval, thread, context->number, sp_handler.with_attributes);
}

/* Interval and sample are one commit: both are written, or neither, and only a commit moves
 * last_recorded. */
SP_SIGSAFE static void record_tick(sp_thread *thread, const tick_context *context, uint32_t periods,
                                   const sp_generation *generation, const void *ucontext)
{
    bool is_recorded = context->unknown || context->number == thread->tick.last_recorded;
    uint64_t interval_bytes = is_recorded                  ? 0
                              : sp_handler.with_attributes ? SP_INTERVAL_BYTES_MAX
                                                           : sizeof(sp_interval_record);
    uint64_t largest =
        interval_bytes + sizeof(sp_sample_record) + (sp_handler.max_depth + 1) * sizeof(uint64_t);
    uint8_t *room = sp_ring_reserve(&thread->tick.ring, largest);
    if (!room) {
        sp_count_owned(&thread->tick.dropped_ring_full, 1);
        return;
    }
    if (interval_bytes) {
        sp_interval_record *interval = (sp_interval_record *)(void *)room;
        fill_interval(interval, thread, context);
        interval_bytes = interval->header.size;
    }
    sp_sample_record *sample = (sp_sample_record *)(void *)(room + interval_bytes);
    sample->number = context->number;
    sample->periods = periods;
    sample->generation = generation ? generation->number : 0;
    sample->unknown = context->unknown;
    fill_sample(sample, thread, generation, ucontext);
    if (sp_handler.with_times)
        add_time(sample);
    sp_ring_commit(&thread->tick.ring, interval_bytes + sample->header.size);
    if (interval_bytes)
        thread->tick.last_recorded = context->number;
}

/* How many of a tick's PERIODS count for its context.
 * 1. If the context has not changed since the last tick, all of them count.
 * 2. If it has changed, a large number means that the thread was off its core at the kernel's timer
 *    ticks, so most of the periods fell under contexts that no tick has found. Timer ticks are at
 *    random moments, so the error evens out: this tick counts as many periods as a few timer ticks
 *    can have, and the rest is added to the following ticks.
 * 3. If there are more periods than timer ticks can miss, the signal was blocked. The spans of that
 *    time are not known, so it is left to the unattributed time. */
SP_SIGSAFE static uint32_t certain_periods(sp_thread *thread, const tick_context *context,
                                           uint32_t periods)
{
    bool is_same = context->number == thread->tick.last_recorded;
    uint32_t most = sp_handler.max_periods, owed = thread->tick.owed_periods;
    if (is_same && periods >= most)
        return periods;
    uint32_t stands_for = periods + owed < most ? periods + owed : most;
    uint32_t rest = periods + owed - stands_for;
    if (rest > owed && periods > sp_handler.blocked_periods)
        rest = owed;
    thread->tick.owed_periods =
        rest < sp_handler.blocked_periods ? rest : sp_handler.blocked_periods;
    return stands_for;
}

/* The walk takes 1.5 KiB of stack. The host's alternate signal stack may be smaller than that: then
 * there is no tick. */
SP_SIGSAFE static bool has_room(const void *ucontext)
{
    const stack_t *stack = &((const ucontext_t *)ucontext)->uc_stack;
    uintptr_t here = (uintptr_t)__builtin_frame_address(0), base = (uintptr_t)stack->ss_sp;
    if ((stack->ss_flags & SS_DISABLE) || here < base || here >= base + stack->ss_size)
        return true; /* not on the alternate stack */
    return here - base >= SMALLEST_STACK;
}

SP_SIGSAFE static void count_cost(sp_thread *thread, uint64_t cycles)
{
    if (cycles >= sp_handler.cost_limit_cycles)
        return;
    sp_count_owned(&thread->tick.tick_cycles, cycles);
    sp_count_owned(&thread->tick.costed_ticks, 1);
}

SP_SIGSAFE static void take_tick(sp_thread *thread, uint32_t periods,
                                 const sp_generation *generation, const void *ucontext)
{
    uint64_t start = sp_handler.cost_limit_cycles ? sp_cycles() : 0;
    tick_context context = find_context(thread);
    periods = certain_periods(thread, &context, periods);
    sp_count_owned(&thread->tick.weights, periods);
    if (has_room(ucontext))
        record_tick(thread, &context, periods, generation, ucontext);
    else
        sp_count_owned(&thread->tick.dropped_small_stack, 1);
    if (start)
        count_cost(thread, sp_cycles() - start);
    /* Stored last: a thread that reads this count also reads the tick's other counts (pairs with
     * take_counters). */
    sp_store_release(&thread->tick.ticks, sp_load_relaxed(&thread->tick.ticks) + 1);
}

SP_SIGSAFE void sp_tick(sp_thread *thread, uint32_t periods, const void *ucontext)
{
    /* The hazard also says that a tick is under way. Its store and the load of `armed` are
     * sequentially consistent; they pair with the store of `armed` and the load of the hazard in
     * arming.c, with a fence between: at least one side reads the other's store. */
    const sp_generation *generation = sp_generation_enter(sp_handler.modules, &thread->tick.hazard);
    if (atomic_load(&thread->tick.armed) && sp_ring_exists(&thread->tick.ring))
        take_tick(thread, periods, generation, ucontext);
    sp_generation_leave(&thread->tick.hazard);
}

/* While a signal was pending here, the descriptor's number may have been reused for the event of
 * another thread. The kernel is asked once; after that the thread pointer is compared. */
SP_SIGSAFE static bool is_calling_thread(sp_thread *thread)
{
    uint64_t pointer = thread_pointer();
    if (sp_load_relaxed(&thread->tick.proven_tp) == pointer)
        return true;
    if (sp_syscall6(SYS_gettid, 0, 0, 0, 0, 0, 0) != sp_load_relaxed(&thread->registered.tid))
        return false;
    sp_store_relaxed(&thread->tick.proven_tp, pointer);
    return true;
}

/* The first period was random, and later ones depend on how the thread works (switch_loss.h). The
 * period is set here, at the end of one, because setting it in the middle would begin it anew. When
 * the kernel refuses, weights would be wrong, so the thread gets no more ticks. */
SP_SIGSAFE static void set_period(sp_thread *thread, int fd, uint64_t period_ns)
{
    sp_store_relaxed(&thread->tick.event_period_set_ns, period_ns);
    if (sp_syscall6(SYS_ioctl, fd, PERF_EVENT_IOC_PERIOD, (long)&period_ns, 0, 0, 0) < 0)
        sp_store_release(&thread->tick.armed, 0);
}

SP_SIGSAFE static void handle_event(sp_thread *thread, int fd, const void *ucontext)
{
    if (!is_calling_thread(thread))
        return;
    uint64_t period_ns = sp_load_relaxed(&thread->tick.event_period_ns);
    if (period_ns != sp_load_relaxed(&thread->tick.event_period_set_ns))
        set_period(thread, fd, period_ns);
    sp_tick(thread, 1, ucontext);
}

/* Handle the first timer tick of the kernel at which the thread's timer has expired. Each timer
 * tick counts for one jiffy, also the first one. This compensates on average for the CPU time after
 * the last timer tick of a thread's life, which is never measured (docs/design/sampling.md). If the
 * random first moment is in that jiffy, the thread has its first tick. The timer continues with
 * whole periods. Returns how many periods have passed, 0 for none. */
SP_SIGSAFE static uint32_t handle_first_expiry(sp_thread *thread, uint32_t expiries)
{
    uint64_t period_ns = sp_handler.period_ns,
             moment_ns = sp_load_relaxed(&thread->tick.first_moment_ns);
    uint64_t used_ns = expiries * sp_handler.jiffy_unit_ns;
    uint64_t stands_for_ns = used_ns > sp_handler.jiffy_ns ? used_ns : sp_handler.jiffy_ns;
    uint64_t periods = stands_for_ns < moment_ns ? 0 : (stands_for_ns - moment_ns) / period_ns + 1;
    uint64_t next_ns = moment_ns + periods * period_ns - stands_for_ns;
    struct itimerspec when = {
        .it_value = {(time_t)(next_ns / 1000000000), (long)(next_ns % 1000000000)},
        .it_interval = {(time_t)(period_ns / 1000000000), (long)(period_ns % 1000000000)},
    };
    const sp_ticker *ticker = &sp_cpu_thread_of(thread)->ticker;
    sp_store_relaxed(&thread->tick.first_moment_ns, 0);
    sp_syscall6(SYS_timer_settime, (long)(intptr_t)sp_load_relaxed(&ticker->timer), 0,
                (long)(uintptr_t)&when, 0, 0, 0);
    return (uint32_t)periods;
}

SP_SIGSAFE static void handle_timer(sp_thread *thread, int overrun, const void *ucontext)
{
    uint32_t periods = 1 + (overrun > 0 ? (uint32_t)overrun : 0);
    if (sp_load_relaxed(&thread->tick.first_moment_ns))
        periods = handle_first_expiry(thread, periods);
    if (periods > 0)
        sp_tick(thread, periods, ucontext);
}

/* The owner that the signal names: the state of a thread, or the probe. NULL for a signal of
 * another origin. */
SP_SIGSAFE static void *owner_of(const siginfo_t *info)
{
    if (info->si_code == POLL_IN)
        return sp_perf_owner(info->si_fd);
    void *owner = info->si_value.sival_ptr;
    if (info->si_code == SI_TIMER && sp_thread_is_state(owner))
        return owner;
    bool probes = info->si_code == SI_TIMER || info->si_code == SI_QUEUE;
    return probes && owner == (void *)&sp_handler.probe ? owner : NULL;
}

SP_SIGSAFE void sp_handle_tick(int signal, siginfo_t *info, void *ucontext)
{
    void *owner = owner_of(info);
    if (!owner)
        sp_host_action_run(signal, info, ucontext);
    else if (owner == (void *)&sp_handler.probe)
        sp_count_owned(&sp_handler.probe, 1);
    else if (info->si_code == SI_TIMER)
        handle_timer(owner, info->si_overrun, ucontext);
    else
        handle_event(owner, info->si_fd, ucontext);
}
