/* SPDX-License-Identifier: Apache-2.0 */
#include "call/call.h"

#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/lock.h"
#include "core/syscall_sig.h"
#include "unwind/fiber_stack_sig.h"
#include "unwind/sample_stack_sig.h"
#include "context/foreign_record_sig.h"
#include "context/interval_sig.h"
#include "unwind/registers_here.h"
#include "context/self.h"

/* OWN_FRAMES: the maximum number of frames of this library and of the interposed function, which
 * are above the caller's. */
enum { RING_BYTES = 128 * 1024, OWN_FRAMES = 10, DEPTH_MAX = 512, STOP_ROUNDS = 1000 };

typedef struct call_ring {
    _Alignas(SP_CACHE_LINE) _Atomic uint32_t busy; /* a thread has taken it */
    _Atomic(const sp_generation *) hazard;         /* the generation that that thread uses */
    sp_ring ring;
} call_ring;

/* busy and running are sequentially consistent: a thread takes a ring and then reads `running`;
 * stop clears `running` and then reads the rings. At least one of the two reads the other's
 * store. */
static struct {
    _Atomic uint32_t running;
    sp_calls_config config; /* written while nothing runs */
    _Atomic uint64_t dropped;
    call_ring rings[SP_CALL_RINGS];
} calls;

/* Held by the thread that makes the rings. */
static sp_lock prepare_lock = SP_LOCK_AT(SP_LOCK_CALL_RINGS);

sp_ring *sp_call_ring(uint32_t number)
{
    return &calls.rings[number].ring;
}

_Atomic(const sp_generation *) *sp_call_hazard(uint32_t number)
{
    return &calls.rings[number].hazard;
}

bool sp_calls_are_taken(void)
{
    return sp_load_relaxed(&calls.running) != 0;
}

uint64_t sp_calls_dropped(void)
{
    return sp_load_relaxed(&calls.dropped);
}

/* --- life ------------------------------------------------------------------------------------- */

bool sp_calls_prepare(void)
{
    bool done = true;
    sp_lock_take(&prepare_lock);
    for (uint32_t n = 0; n < SP_CALL_RINGS && done; n++)
        done =
            sp_ring_exists(&calls.rings[n].ring) || sp_ring_init(&calls.rings[n].ring, RING_BYTES);
    sp_lock_give(&prepare_lock);
    return done;
}

void sp_calls_start(const sp_calls_config *config)
{
    for (uint32_t n = 0; n < SP_CALL_RINGS; n++) {
        sp_ring *ring = &calls.rings[n].ring;
        sp_store_relaxed(&ring->tail, sp_load_relaxed(&ring->head)); /* drop old records */
    }
    calls.config = *config;
    sp_store_relaxed(&calls.dropped, 0);
    atomic_store(&calls.running, 1);
}

static bool any_is_busy(void)
{
    bool busy = false;
    for (uint32_t n = 0; n < SP_CALL_RINGS; n++)
        busy |= atomic_load(&calls.rings[n].busy) != 0;
    return busy;
}

bool sp_calls_stop(void)
{
    atomic_store(&calls.running, 0);
    for (int round = 0; any_is_busy() && round < STOP_ROUNDS; round++)
        usleep(1000);
    return !any_is_busy();
}

void sp_calls_fork_child(void)
{
    atomic_store(&calls.running, 0);
    sp_lock_init(&prepare_lock, SP_LOCK_CALL_RINGS); /* another thread of the parent may hold it */
    for (uint32_t n = 0; n < SP_CALL_RINGS; n++) {
        call_ring *ring = &calls.rings[n];
        atomic_store(&ring->busy, 0);
        sp_store_relaxed(&ring->hazard, NULL);
        sp_store_relaxed(&ring->ring.tail, sp_load_relaxed(&ring->ring.head));
    }
}

/* --- a record --------------------------------------------------------------------------------- */

/* The largest record of any run, because a thread that is not scheduled after it has reserved its
 * room may find the next run's configuration. */
static uint64_t largest_record(void)
{
    return sizeof(sp_call_record) + SP_INTERVAL_BYTES_MAX + 2 * sizeof(sp_sample_record) +
           (DEPTH_MAX + SP_CALL_HOLDER_DEPTH) * sizeof(uint64_t);
}

/* Fill in the context of another tracer, if there is one. False when it cannot be read. */
static bool fill_foreign(sp_interval_record *interval, sp_thread *thread, uint64_t number)
{
    sp_foreign_context context;
    sp_foreign_result result =
        sp_foreign_read(sp_foreign_own_record(thread, sp_thread_pointer_here), &context);
    if (result == SP_FOREIGN_ACTIVE)
        sp_interval_fill_foreign(interval, &context, number);
    return result != SP_FOREIGN_UNKNOWN;
}

/* Fill in the context of THREAD, and return whether it is certain. A thread without a state has
 * never attached a context of this SDK. But if another tracer publishes its contexts, the thread
 * may have one of those. */
static bool fill_context(sp_interval_record *interval, sp_thread *thread)
{
    if (!thread) {
        *interval = (sp_interval_record){
            .header = {.size = sizeof *interval, .kind = SP_RECORD_INTERVAL}, .number = 2};
        return !sp_load_relaxed(&sp_context_is_shared);
    }
    uint64_t number = sp_load_relaxed(&thread->published.switch_number);
    bool posted =
        sp_load_relaxed(&thread->owned.posts) != sp_load_relaxed(&thread->owned.posts_seen);
    sp_interval_fill(interval, thread, number, calls.config.with_attributes);
    if ((number & 1) || posted)
        return false;
    return sp_foreign_is_hidden(thread) || fill_foreign(interval, thread, number);
}

/* Remove the frames of this library and of the interposed function. After a walk that did not reach
 * the caller's frame, the caller is the only frame. */
static void drop_own_frames(sp_walk *walk, const void *return_address)
{
    uint64_t caller = (uint64_t)(uintptr_t)return_address - 1;
    uint32_t own = 0;
    while (own < OWN_FRAMES && own < walk->leaf_count && walk->pcs[own] != caller)
        own++;
    if (own < OWN_FRAMES && own < walk->leaf_count) {
        walk->count -= own;
        walk->leaf_count -= own;
        memmove(walk->pcs, walk->pcs + own, walk->count * sizeof walk->pcs[0]);
        return;
    }
    walk->pcs[0] = caller;
    walk->count = walk->leaf_count = 1;
    walk->by_frame_pointer = 0;
    walk->end = walk->end == SP_WALK_COMPLETE ? SP_WALK_NO_TABLE : walk->end;
}

static sp_stack_bounds find_bounds(sp_thread *thread, uint64_t sp)
{
    sp_stack_bounds bounds = {0};
    if (!thread)
        return bounds;
    if (SP_UNLIKELY(sp_load_relaxed(&thread->owned.on_fiber)))
        return sp_stack_of_fiber(thread);
    bounds = (sp_stack_bounds){sp_load_relaxed(&thread->tick.stack_low),
                               sp_load_relaxed(&thread->tick.stack_high)};
    if (bounds.high == 0) { /* the collector finds it (stack_bounds.c) */
        sp_store_relaxed(&thread->tick.seen_tp, sp_thread_pointer_here());
        sp_store_relaxed(&thread->tick.seen_sp, sp);
    }
    return bounds;
}

static __attribute__((noinline)) void fill_stack(sp_sample_record *sample, sp_thread *thread,
                                                 const sp_generation *generation, uint32_t depth,
                                                 const void *return_address)
{
    uint32_t wanted = calls.config.max_depth + OWN_FRAMES;
    sp_walk walk = {.generation = generation,
                    .registers = sp_registers_here(),
                    .pcs = sample->pcs,
                    .max_depth = wanted < depth ? wanted : depth};
    walk.bounds = find_bounds(thread, walk.registers.sp);
    if (thread) {
        walk.fiber = sp_stack_of_fiber(thread);
        sample->unknown |= !sp_is_on_stack(thread, walk.registers.sp);
    }
    sp_walk_stack(&walk);
    drop_own_frames(&walk, return_address);
    sp_sample_take_walk(sample, &walk);
}

static int64_t own_tid(sp_thread *thread)
{
    return thread ? (int64_t)sp_load_relaxed(&thread->registered.tid)
                  : sp_syscall6(SYS_gettid, 0, 0, 0, 0, 0, 0);
}

/* Append STACK after RECORD's sample. Returns its size. */
static uint32_t add_holder_stack(sp_call_record *record, const sp_sample_record *stack)
{
    if (!stack)
        return 0;
    record->has_holder_stack = true;
    memcpy(sp_call_holder_stack(record), stack, stack->header.size);
    return stack->header.size;
}

static void write_record(call_ring *ring, sp_call_record *record, sp_thread *thread,
                         const sp_call *call)
{
    const sp_generation *generation = sp_generation_enter(calls.config.modules, &ring->hazard);
    *record = (sp_call_record){.header.kind = SP_RECORD_CALL,
                               .kind = call->kind,
                               .live_slot = call->live_slot,
                               .live_id = call->live_id,
                               .tid = own_tid(thread),
                               .value = call->value,
                               .count = call->count,
                               .lock = (uintptr_t)call->lock,
                               .holder = call->holder};
    sp_interval_record *interval = sp_call_interval(record);
    bool is_certain = fill_context(interval, thread);
    sp_sample_record *sample = sp_call_sample(record);
    *sample = (sp_sample_record){.number = interval->number,
                                 .generation = generation ? generation->number : 0,
                                 .unknown = !is_certain};
    fill_stack(sample, thread, generation, DEPTH_MAX, call->return_address);
    record->header.size = (uint32_t)(sizeof *record + interval->header.size + sample->header.size);
    record->header.size += add_holder_stack(record, call->holder_stack);
    sp_ring_commit(&ring->ring, record->header.size);
    sp_generation_leave(&ring->hazard);
}

/* --- the pool --------------------------------------------------------------------------------- */

static bool take_ring(call_ring *ring)
{
    return sp_load_relaxed(&ring->busy) == 0 && atomic_exchange(&ring->busy, 1) == 0;
}

/* The next producer sees the writes of this one (pairs with take_ring). */
static void give_ring(call_ring *ring)
{
    atomic_store(&ring->busy, 0);
}

/* Threads begin with different rings, chosen by the address of their stacks. */
static call_ring *ring_at(uint32_t attempt)
{
    uintptr_t here = (uintptr_t)__builtin_frame_address(0);
    return &calls.rings[((here >> 20 ^ here >> 23) + attempt) % SP_CALL_RINGS];
}

/* Take the next free ring, from the *ATTEMPT-th on. NULL: there is none, or no calls are sampled
 * now. */
static call_ring *take_next(uint32_t *attempt)
{
    while (*attempt < SP_CALL_RINGS) {
        call_ring *ring = ring_at((*attempt)++);
        if (!sp_ring_exists(&ring->ring) || !take_ring(ring))
            continue;
        if (atomic_load(&calls.running))
            return ring;
        give_ring(ring);
        return NULL;
    }
    return NULL;
}

/* Take a ring with room for a record, and set *RECORD to the room. NULL when there is none. */
static call_ring *find_room(sp_call_record **record)
{
    uint32_t attempt = 0;
    for (call_ring *ring; (ring = take_next(&attempt)) != NULL; give_ring(ring)) {
        *record = sp_ring_reserve(&ring->ring, largest_record());
        if (*record)
            return ring;
    }
    if (sp_load_relaxed(&calls.running))
        sp_count(&calls.dropped, 1);
    return NULL;
}

bool sp_call_take(const sp_call *call)
{
    sp_call_record *record;
    sp_thread *thread = sp_thread_self_find();
    if (thread && sp_load_relaxed(&thread->registered.internal))
        return false;
    call_ring *ring = sp_load_relaxed(&calls.running) ? find_room(&record) : NULL;
    if (!ring)
        return false;
    write_record(ring, record, thread, call);
    give_ring(ring);
    return true;
}

void sp_call_stack_here(sp_sample_record *sample, uint32_t depth, const void *return_address)
{
    uint32_t attempt = 0;
    sp_thread *thread = sp_thread_self_find();
    bool is_ours = thread && sp_load_relaxed(&thread->registered.internal);
    call_ring *ring = !is_ours ? take_next(&attempt) : NULL;
    *sample = (sp_sample_record){.header = {.size = sizeof *sample, .kind = SP_RECORD_SAMPLE}};
    if (!ring)
        return;
    const sp_generation *generation = sp_generation_enter(calls.config.modules, &ring->hazard);
    sample->generation = generation ? generation->number : 0;
    fill_stack(sample, thread, generation, depth, return_address);
    sp_generation_leave(&ring->hazard);
    give_ring(ring);
}
