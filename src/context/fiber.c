/* SPDX-License-Identifier: Apache-2.0 */
/* Fibers: chains of scopes that threads take turns to run (include/spanprof/fiber.h).
 *
 * A switch of fibers replaces the thread's pointer to its chain and publishes the active context of
 * the new chain. Scopes stay where they are, so that another thread can post a detach to them at
 * any time. (Copying a fiber's scopes into the thread would need a lock against such posts, and
 * takes longer from the second scope on.)
 *
 * A fiber is run by one thread at most: `runner` goes from NULL to the thread by compare-exchange,
 * and back by a release when the thread has taken another chain. Fibers lie in a table of slots
 * (core/slot_table.h): a stale handle or scope is recognized by its generation or serial.
 *
 * | operation                            | its runner  | other threads | lock        |
 * | switch                               |     yes     |               | none        |
 * | post a detach of one of its scopes   |             |      yes      | none        |
 * | create, destroy                      |     any     |      any      | the table's |
 */
#include <spanprof/fiber.h>

#include "context/self.h"
#include "core/at_fork.h"
#include "core/lock.h"
#include "core/slot_table.h"

enum { FIBERS_MAX = 1 << 18 };

typedef struct sp_fiber {
    _Alignas(SP_CACHE_LINE) sp_scope_chain chain;
    _Atomic(sp_thread *) runner; /* NULL: suspended; &no_thread: the slot has no fiber */
    _Atomic uint32_t generation; /* odd: of the valid handle; even: no handle is valid */
    uint32_t next;               /* number of the next free or doomed slot */
    uint64_t stack_low, stack_high;
} sp_fiber;

static sp_slot_init init_fiber;

static struct {
    sp_lock lock; /* guards the table and the list; innermost */
    sp_slot_table fibers;
    uint32_t doomed_list; /* destroyed while a thread ran them; freed once it has left */
} table = {.lock = SP_LOCK_AT(SP_LOCK_FIBERS),
           .fibers = SP_SLOT_TABLE(sp_fiber, next, FIBERS_MAX, init_fiber)};

static sp_thread no_thread;

/* NUMBER is that of a slot that was taken at least once. */
static sp_fiber *fiber_of(uint32_t number)
{
    return (sp_fiber *)table.fibers.memory + (uint32_t)(number - 1);
}

static sp_fiber *find_fiber(uint32_t number)
{
    return sp_slot_was_taken(&table.fibers, number) ? fiber_of(number) : NULL;
}

static uint32_t number_of(const sp_fiber *fiber)
{
    return (uint32_t)(fiber - (const sp_fiber *)table.fibers.memory) + 1;
}

static void fork_prepare(void)
{
    sp_lock_take(&table.lock);
}

static void fork_parent(void)
{
    sp_lock_give(&table.lock);
}

/* Only the calling thread's fiber still runs; the threads that ran the others are gone. A thread in
 * the middle of a switch was the runner of two fibers, and had the chain of one of them or of
 * neither. */
static void fork_child(void)
{
    for (uint32_t number = 1; number <= sp_slots_ever_taken(&table.fibers); number++) {
        sp_fiber *fiber = fiber_of(number);
        sp_thread *runner = sp_load_relaxed(&fiber->runner);
        if (!runner || runner == &no_thread || runner == sp_self)
            continue;
        sp_fiber_abandon(runner);
        sp_context_drop_dead(&fiber->chain);
        sp_store_relaxed(&fiber->runner, NULL);
    }
    sp_lock_give(&table.lock);
}

SP_AT_FORK(SP_LOCK_FIBERS, fork_prepare, fork_parent, fork_child);

static void init_fiber(void *slot, uint32_t number)
{
    sp_fiber *fiber = slot;
    fiber->chain.owner = SP_THREADS_MAX + number;
    sp_store_relaxed(&fiber->chain.chunks[0], fiber->chain.first);
    sp_store_relaxed(&fiber->runner, &no_thread);
}

/* Free the fiber, whose handle is invalid already. False when a thread runs it. */
static bool free_locked(sp_fiber *fiber)
{
    sp_thread *suspended = NULL;
    if (!atomic_compare_exchange_strong(&fiber->runner, &suspended, &no_thread))
        return false;
    sp_context_forget_scopes(&fiber->chain);
    sp_slot_give(&table.fibers, fiber);
    return true;
}

static void free_doomed_locked(void)
{
    uint32_t list = table.doomed_list;
    table.doomed_list = 0;
    while (list) {
        sp_fiber *fiber = fiber_of(list);
        list = fiber->next;
        if (!free_locked(fiber)) {
            fiber->next = table.doomed_list;
            table.doomed_list = number_of(fiber);
        }
    }
}

static sp_fiber *take_locked(void)
{
    free_doomed_locked();
    return sp_slot_take(&table.fibers);
}

spanprof_fiber spanprof_fiber_create(void *stack, size_t stack_bytes)
{
    spanprof_fiber handle = {.slot = UINT32_MAX, .generation = UINT32_MAX};
    sp_lock_take(&table.lock);
    sp_fiber *fiber = take_locked();
    if (fiber) {
        fiber->stack_low = (uint64_t)(uintptr_t)stack;
        fiber->stack_high = fiber->stack_low + (stack ? stack_bytes : 0);
        handle.slot = number_of(fiber);
        handle.generation = sp_slot_open(&fiber->generation);
        sp_store_release(&fiber->runner, NULL); /* pairs with enter */
    }
    sp_lock_give(&table.lock);
    if (!fiber)
        sp_count(&sp_thread_counts.failed_attaches, 1);
    return handle;
}

void spanprof_fiber_destroy(spanprof_fiber handle)
{
    if (handle.slot == 0)
        return;
    sp_lock_take(&table.lock);
    free_doomed_locked();
    sp_fiber *fiber = find_fiber(handle.slot);
    bool is_free = false;
    if (fiber && sp_slot_fits(&fiber->generation, handle.generation)) {
        /* A thread that enters at the same time finds the fiber taken, or another generation. */
        sp_slot_close(&fiber->generation);
        is_free = free_locked(fiber);
        if (!is_free) {
            fiber->next = table.doomed_list;
            table.doomed_list = number_of(fiber);
        }
    }
    sp_lock_give(&table.lock);
    if (!is_free && handle.slot != UINT32_MAX)
        sp_count(&sp_thread_counts.misuse_fiber, 1);
}

/* The stack is published before the context. At every moment a tick reads either no range, or a
 * whole one: the old or the new. From then on a tick may be marked as unknown, although the context
 * is still the old one. */
static void publish_stack(sp_thread *thread, const sp_fiber *to)
{
    if (to) {
        sp_store_relaxed(&thread->owned.fiber_high, 0);
        sp_fence_signal();
        sp_store_relaxed(&thread->owned.fiber_low, to->stack_low);
        sp_store_relaxed(&thread->owned.on_fiber, 1);
        sp_fence_signal();
        sp_store_relaxed(&thread->owned.fiber_high, to->stack_high);
    } else {
        sp_store_relaxed(&thread->owned.on_fiber, 0);
    }
    sp_fence_signal();
}

/* Make THREAD run the fiber TO, whose chain is CHAIN. TO is NULL for the thread's own CHAIN, and
 * both are NULL when it is unknown which fiber runs. */
static void run_chain(sp_thread *thread, sp_fiber *to, sp_scope_chain *chain)
{
    sp_fiber *from = thread->owned.fiber;
    publish_stack(thread, to);
    thread->owned.fiber = to;
    sp_context_switch_chain(thread, chain);
    if (from)
        sp_store_release(&from->runner, NULL); /* pairs with enter */
}

/* Make THREAD the runner of FIBER. */
static spanprof_status enter(sp_thread *thread, sp_fiber *fiber, uint32_t generation)
{
    sp_thread *suspended = NULL;
    if (!sp_slot_fits(&fiber->generation, generation))
        return SPANPROF_ERROR_NOT_FOUND;
    if (!atomic_compare_exchange_strong(&fiber->runner, &suspended, thread))
        return suspended == &no_thread ? SPANPROF_ERROR_NOT_FOUND : SPANPROF_ERROR_OTHER_THREAD;
    if (sp_slot_fits(&fiber->generation, generation))
        return SPANPROF_OK;
    sp_store_release(&fiber->runner, NULL);
    return SPANPROF_ERROR_NOT_FOUND;
}

static __attribute__((noinline)) spanprof_status abandon_chain(sp_thread *thread,
                                                               spanprof_status why)
{
    sp_count(&sp_thread_counts.misuse_fiber, 1);
    run_chain(thread, NULL, NULL);
    return why;
}

static bool runs(const sp_thread *thread, spanprof_fiber handle)
{
    sp_fiber *fiber = thread->owned.fiber;
    return fiber && number_of(fiber) == handle.slot &&
           sp_slot_fits(&fiber->generation, handle.generation);
}

spanprof_status spanprof_fiber_switch(spanprof_fiber handle)
{
    sp_thread *thread = sp_self_get();
    if (SP_UNLIKELY(!thread) && !(thread = sp_thread_self_create()))
        return SPANPROF_ERROR_NO_MEMORY;
    if (handle.slot == 0) {
        if (thread->owned.chain != &thread->own_scopes)
            run_chain(thread, NULL, &thread->own_scopes);
        return SPANPROF_OK;
    }
    if (SP_UNLIKELY(runs(thread, handle)))
        return SPANPROF_OK;
    sp_fiber *fiber = find_fiber(handle.slot);
    spanprof_status status =
        fiber ? enter(thread, fiber, handle.generation) : SPANPROF_ERROR_NOT_FOUND;
    if (SP_UNLIKELY(status != SPANPROF_OK))
        return abandon_chain(thread, status);
    run_chain(thread, fiber, &fiber->chain);
    return SPANPROF_OK;
}

spanprof_fiber spanprof_fiber_current(void)
{
    sp_thread *thread = sp_self_get();
    sp_fiber *fiber = thread ? thread->owned.fiber : NULL;
    if (!fiber)
        return (spanprof_fiber){0};
    uint32_t generation = sp_load_relaxed(&fiber->generation);
    bool is_doomed = generation % 2 == 0; /* destroyed while it runs: return its last handle */
    return (spanprof_fiber){.slot = number_of(fiber), .generation = generation - is_doomed};
}

bool sp_fiber_abandon(sp_thread *thread)
{
    sp_fiber *from = thread->owned.fiber;
    if (thread->owned.chain != &thread->own_scopes)
        sp_context_take_chain(thread, &thread->own_scopes);
    thread->owned.fiber = NULL;
    sp_store_relaxed(&thread->owned.on_fiber, 0);
    sp_store_relaxed(&thread->owned.fiber_low, 0);
    sp_store_relaxed(&thread->owned.fiber_high, 0);
    if (from)
        sp_store_release(&from->runner, NULL); /* pairs with enter */
    return from != NULL;
}

sp_scope_chain *sp_fiber_chain(uint32_t slot)
{
    sp_fiber *fiber = find_fiber(slot + 1);
    return fiber ? &fiber->chain : NULL;
}

sp_thread *sp_fiber_runner(uint32_t slot)
{
    sp_fiber *fiber = find_fiber(slot + 1);
    sp_thread *runner = fiber ? atomic_load(&fiber->runner) : NULL;
    return runner == &no_thread ? NULL : runner;
}
