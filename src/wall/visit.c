/* SPDX-License-Identifier: Apache-2.0 */
/* An attempt reads in this order:
 *
 *   switch number ─ CPU clock, twice ─ state ─ context ─ switch number again
 *   ─ wait ─ stack ─ CPU clock and switch number again
 *
 * The sampled moment is that of the first read of the clock. If the thread runs then, the second
 * read, a fifth of a microsecond later, differs. If both are equal the thread waits, and the visit
 * counts. (The state is less exact: a thread that is about to block is shown as blocked for some
 * microseconds in which it still runs, and its ticks count these.)
 *
 * Equal clocks at begin and end prove that the thread did not run in between (except for a short
 * run that a hypervisor does not account; the equal switch number at the end proves that the span
 * is still the same), so everything was read at one moment. The state is one line from the kernel,
 * which is consistent by itself. If the thread has run since, its stack is not certain, and there
 * is a second attempt. If that fails, too, or finds the thread elsewhere, the stack consists of the
 * system call and a mark. The context needs a weaker proof: switch numbers only grow, so an even
 * number that is the same afterwards proves that the context was the same all the time. Another
 * tracer's context has no number, so it is certain only if the thread did not run. The context is
 * read right after the state, because an event that ends a wait often ends a span, too: the later
 * the context is read, the more last moments of spans are unknown. */
#include "wall/visit.h"

#include <string.h>

#include "context/foreign_record_sig.h"
#include "context/interval_sig.h"
#include "core/clock.h"
#include "unwind/fiber_stack_sig.h"

/* Whether other threads see the relaxed stores of a thread in order (publish() in context/context.c
 * has compiler fences only). If not, a context is certain only when the thread has not run, because
 * descheduling orders all its stores. */
#if defined(__x86_64__)
#define STORES_COME_IN_ORDER true
#else
#define STORES_COME_IN_ORDER false
#endif

typedef struct attempt {
    sp_syscall_state state;
    sp_syscall_line line;
    sp_wait wait;
    uint64_t number;  /* switch number at the begin */
    uint64_t cpu_ns;  /* clock at the begin */
    bool has_not_run; /* clock and number are the same at the end */
    /* The switch number is the same at the end and even, and neither a detach by another thread nor
     * a switch of fibers' stacks is pending. */
    bool has_not_switched;
    bool is_shared; /* the context may be another tracer's, whose switches have no number */
} attempt;

static sp_visit_record *record_of(sp_visit *visit)
{
    return (sp_visit_record *)(void *)visit->record;
}

static uint64_t count_of(const sp_thread *thread, uint64_t *posts)
{
    *posts = sp_load_acquire(&thread->owned.posts);
    return sp_load_acquire(&thread->published.switch_number);
}

static void fill_stack(sp_visit *visit, sp_thread *thread, const attempt *a, sp_visitor *visitor)
{
    sp_sample_record *sample = sp_visit_sample(record_of(visit));
    const sp_generation *generation = sp_generation_enter(visitor->modules, visitor->hazard);
    sp_walk walk = {
        .generation = generation,
        .registers = {.pc = a->line.pc, .sp = a->line.sp},
        .fiber = sp_stack_of_fiber(thread),
        .pcs = sample->pcs + 1,
        .max_depth = visitor->max_depth,
    };
    sp_outside_walk(visitor->copy, &walk);
    visitor->fp.by_call += walk.fp_by_call;
    visitor->fp.by_return += walk.fp_by_return;
    visitor->fp.not_found += walk.fp_not_found;
    sample->generation = generation->number;
    sp_generation_leave(visitor->hazard);
    sample->count = (uint16_t)(1 + walk.count);
    sample->leaf_count = (uint16_t)(1 + walk.leaf_count);
    sample->by_frame_pointer = (uint16_t)walk.by_frame_pointer;
    sample->end = (uint8_t)walk.end;
}

/* Fill in the part of the stack that is known without a walk. */
static void fill_leaf(sp_visit *visit, uint64_t leaf, sp_walk_end end)
{
    sp_sample_record *sample = sp_visit_sample(record_of(visit));
    sample->pcs[0] = leaf;
    sample->generation = 0;
    sample->count = sample->leaf_count = 1;
    sample->by_frame_pointer = 0;
    sample->end = (uint8_t)end;
}

static uint64_t leaf_of(const sp_syscall_line *line)
{
    return SP_PC_SYSTEM_CALL | (uint32_t)line->number;
}

static void fill_wait(sp_visit *visit, sp_thread *thread, attempt *a, sp_visitor *visitor)
{
    bool is_blocked = a->state == SP_SYSCALL_BLOCKED;
    a->wait = (sp_wait){.wait_class = SP_WAIT_RUNNABLE};
    fill_leaf(visit, is_blocked ? leaf_of(&a->line) : SP_PC_RUNNABLE, SP_WALK_COMPLETE);
    if (!is_blocked)
        return;
    a->wait = sp_wait_of(a->line.number, a->line.arguments);
    fill_stack(visit, thread, a, visitor);
}

/* False when there is a context that cannot be read. */
static bool fill_context(sp_visit *visit, sp_thread *thread, attempt *a, bool with_attributes)
{
    sp_interval_record *interval = sp_visit_interval(record_of(visit));
    sp_foreign_context context;
    sp_foreign_result result = SP_FOREIGN_NONE;
    sp_interval_fill(interval, thread, a->number, with_attributes);
    a->is_shared = false;
    if (!interval->span_id) {
        result = sp_foreign_peek(thread, &context);
        if (result == SP_FOREIGN_ACTIVE)
            sp_interval_fill_foreign(interval, &context, a->number);
        a->is_shared = sp_load_relaxed(&sp_context_is_shared);
    }
    sp_visit_sample(record_of(visit))->number = a->number;
    return result != SP_FOREIGN_UNKNOWN;
}

bool sp_visit_is_same_context(const sp_thread *thread, const sp_interval_record *interval)
{
    sp_foreign_context context;
    if (sp_foreign_is_hidden(thread) || !sp_load_relaxed(&sp_context_is_shared))
        return true;
    return sp_foreign_peek(thread, &context) != SP_FOREIGN_UNKNOWN &&
           context.trace_id[0] == interval->trace_id[0] &&
           context.trace_id[1] == interval->trace_id[1] && context.span_id == interval->span_id;
}

static bool is_same_context(const sp_interval_record *a, const sp_interval_record *b)
{
    return a->trace_id[0] == b->trace_id[0] && a->trace_id[1] == b->trace_id[1] &&
           a->span_id == b->span_id;
}

/* One attempt. VISIT is filled if the thread waits; *A says which parts of it are certain. */
static sp_visit_result try_once(attempt *a, sp_visit *visit, sp_thread *thread, pid_t tid,
                                sp_syscall_file *file, sp_visitor *visitor)
{
    uint64_t cpu_ns, posts, posts_after;
    a->number = count_of(thread, &posts);
    bool is_certain = !(a->number & 1) && posts == sp_load_relaxed(&thread->owned.posts_seen);
    if (!sp_clock_thread_cpu_ns(tid, &a->cpu_ns) || !sp_clock_thread_cpu_ns(tid, &cpu_ns))
        return SP_VISIT_GONE;
    if (cpu_ns != a->cpu_ns)
        return SP_VISIT_ON_CPU;
    a->state = sp_syscall_file_read(&visitor->files, file, tid, &a->line);
    if (a->state == SP_SYSCALL_GONE)
        return SP_VISIT_GONE;
    if (a->state == SP_SYSCALL_FAILED)
        return SP_VISIT_FAILED;
    is_certain &= fill_context(visit, thread, a, visitor->with_attributes);
    is_certain &= a->state != SP_SYSCALL_BLOCKED || sp_is_on_stack(thread, a->line.sp);
    atomic_thread_fence(memory_order_acquire);
    a->has_not_switched =
        is_certain && count_of(thread, &posts_after) == a->number && posts_after == posts;
    fill_wait(visit, thread, a, visitor);
    if (!sp_clock_thread_cpu_ns(tid, &cpu_ns))
        return SP_VISIT_GONE;
    a->has_not_run = cpu_ns == a->cpu_ns && count_of(thread, &posts_after) == a->number &&
                     sp_visit_is_same_context(thread, sp_visit_interval(record_of(visit)));
    return SP_VISIT_WAITS;
}

static void finish(sp_visit *visit, const sp_thread *thread, pid_t tid, const attempt *a,
                   bool knows_context)
{
    sp_visit_record *record = record_of(visit);
    sp_sample_record *sample = sp_visit_sample(record);
    sample->unknown = !knows_context;
    sample->periods = 0;
    sample->header.kind = SP_RECORD_SAMPLE;
    sample->header.size = (uint32_t)(sizeof *sample + sample->count * sizeof sample->pcs[0]);
    record->header.kind = SP_RECORD_VISIT;
    record->header.size =
        (uint32_t)sizeof *record + sp_visit_interval(record)->header.size + sample->header.size;
    record->slot = thread->slot;
    record->generation = sp_load_relaxed(&thread->registered.generation);
    record->tid = tid;
    record->wait_class = a->wait.wait_class;
    record->descriptor = a->wait.descriptor;
    record->weight_ns = 0;
    record->visits = 0;
    record->reserved = 0;
    record->call = (sp_visit_call){0};
    visit->cpu_ns = a->cpu_ns;
    visit->is_proven = a->has_not_run;
}

sp_visit_result sp_visit_thread(sp_visit *out, sp_thread *thread, pid_t tid, sp_syscall_file *file,
                                sp_visitor *visitor)
{
    attempt first, second;
    sp_visit_result result = try_once(&first, out, thread, tid, file, visitor);
    if (result != SP_VISIT_WAITS)
        return result;
    if (first.has_not_run) {
        finish(out, thread, tid, &first, first.has_not_switched);
        return SP_VISIT_WAITS;
    }
    bool knows_context = first.has_not_switched && STORES_COME_IN_ORDER && !first.is_shared;
    if (first.state == SP_SYSCALL_RUNNING) {
        finish(out, thread, tid, &first, knows_context);
        return SP_VISIT_WAITS;
    }
    visitor->discarded++;
    union {
        sp_interval_record interval;
        uint8_t bytes[SP_INTERVAL_BYTES_MAX];
    } context;
    uint32_t context_bytes = sp_visit_interval(record_of(out))->header.size;
    memcpy(&context, sp_visit_interval(record_of(out)), context_bytes);
    result = try_once(&second, out, thread, tid, file, visitor);
    if (result == SP_VISIT_WAITS && second.state == SP_SYSCALL_BLOCKED && second.has_not_run &&
        second.has_not_switched && second.number == first.number &&
        is_same_context(&context.interval, sp_visit_interval(record_of(out)))) {
        finish(out, thread, tid, &second, true);
        return SP_VISIT_WAITS;
    }
    memcpy(sp_visit_interval(record_of(out)), &context, context_bytes);
    sp_visit_sample(record_of(out))->number = first.number;
    fill_leaf(out, leaf_of(&first.line), SP_WALK_WOKE);
    finish(out, thread, tid, &first, knows_context);
    return SP_VISIT_WAITS;
}
