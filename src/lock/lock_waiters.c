/* SPDX-License-Identifier: Apache-2.0 */
/* A place goes through these states:
 *
 *   FREE ─enter─► ENTERED ─► WAITING ─give─► FILLING ─► FILLED ─leave─► FREE
 *                               │               │
 *                               └──close──► FREE└──close──► LEFT ─(the giver)─► FREE
 *
 * Each arrow out of WAITING and FILLING is a compare-and-swap, so one side moves a place at a time.
 * A waiter meets FILLING only when its wait ended otherwise: its time was up, or a lock for readers
 * was given back by several threads. It does not wait then, but leaves the place to the giver. */
#include "lock/lock_waiters.h"

#include <stddef.h>

#include "call/call.h"
#include "core/atomic.h"
#include "core/clock.h"
#include "lock/lock_holder.h"

typedef enum place_state {
    FREE = 0,
    ENTERED, /* by its waiter, which writes it */
    WAITING,
    FILLING, /* by the thread that gives the lock back */
    FILLED,
    LEFT, /* by its waiter, while it was filled */
} place_state;

static bool move(sp_lock_waiter *place, uint32_t from, uint32_t to)
{
    return atomic_compare_exchange_strong(&place->state, &from, to);
}

uint32_t sp_lock_waiters_enter(sp_lock_waiters *table, const void *lock, uint64_t due_ns)
{
    uint32_t set = sp_lock_set(lock);
    for (uint32_t way = 0; way < SP_LOCK_WAYS; way++) {
        sp_lock_waiter *place = &table->places[set][way];
        if (sp_load_relaxed(&place->state) != FREE || !move(place, FREE, ENTERED))
            continue;
        sp_store_relaxed(&place->lock, lock);
        sp_store_relaxed(&place->due_ns, due_ns);
        sp_store_release(&place->state, WAITING); /* pairs with is_due */
        sp_count(&table->waiting[set], 1);
        return set * SP_LOCK_WAYS + way + 1;
    }
    return 0;
}

static sp_lock_waiter *place_of(sp_lock_waiters *table, uint32_t number)
{
    return &table->places[(number - 1) / SP_LOCK_WAYS][(number - 1) % SP_LOCK_WAYS];
}

const sp_lock_giver *sp_lock_waiters_close(sp_lock_waiters *table, uint32_t number)
{
    sp_lock_waiter *place = place_of(table, number);
    sp_count(&table->waiting[(number - 1) / SP_LOCK_WAYS], UINT32_MAX);
    /* A giver may take a place by mistake, and put it back. */
    while (sp_load_acquire(&place->state) != FILLED)
        if (move(place, WAITING, FREE) || move(place, FILLING, LEFT))
            return NULL;
    return &place->giver;
}

void sp_lock_waiters_leave(sp_lock_waiters *table, uint32_t number)
{
    sp_store_release(&place_of(table, number)->state, FREE);
}

/* --- who gives the lock back ------------------------------------------------------------------ */

static bool is_due(const sp_lock_waiter *place, const void *lock, uint64_t now_ns)
{
    return sp_load_acquire(&place->state) == WAITING && sp_load_relaxed(&place->lock) == lock &&
           sp_load_relaxed(&place->due_ns) <= now_ns;
}

/* The waiter may have gone meanwhile: then nobody looks at the place any more. */
static void put_back(sp_lock_waiter *place, uint32_t state)
{
    if (!move(place, FILLING, state))
        sp_store_release(&place->state, FREE);
}

/* Between the look at it and its taking, the place may have become another wait's. */
static bool take_place(sp_lock_waiter *place, const void *lock, uint64_t now_ns)
{
    if (!is_due(place, lock, now_ns) || !move(place, WAITING, FILLING))
        return false;
    if (sp_load_relaxed(&place->lock) == lock && sp_load_relaxed(&place->due_ns) <= now_ns)
        return true;
    put_back(place, WAITING);
    return false;
}

static void copy_giver(sp_lock_giver *to, const sp_lock_giver *from)
{
    size_t words = sp_lock_giver_stack(from)->header.size / sizeof from->stack[0];
    to->span = from->span;
    for (size_t i = 0; i < words; i++)
        to->stack[i] = from->stack[i];
}

void sp_lock_waiters_give(sp_lock_waiters *table, const void *lock, const void *return_address)
{
    sp_lock_waiter *places = table->places[sp_lock_set(lock)];
    uint64_t now_ns = sp_clock_monotonic_ns();
    sp_lock_giver giver;
    bool is_made = false;
    for (uint32_t way = 0; way < SP_LOCK_WAYS; way++) {
        if (!take_place(&places[way], lock, now_ns))
            continue;
        if (!is_made) {
            sp_lock_holder_here(&giver.span);
            sp_call_stack_here(sp_lock_giver_stack(&giver), SP_CALL_HOLDER_DEPTH, return_address);
        }
        is_made = true;
        copy_giver(&places[way].giver, &giver);
        put_back(&places[way], FILLED);
    }
}

void sp_lock_waiters_fork_child(sp_lock_waiters *table)
{
    for (uint32_t set = 0; set < SP_LOCK_SETS; set++) {
        sp_store_relaxed(&table->waiting[set], 0);
        for (uint32_t way = 0; way < SP_LOCK_WAYS; way++)
            sp_store_relaxed(&table->places[set][way].state, FREE);
    }
}
