/* SPDX-License-Identifier: Apache-2.0 */
/* A place goes through these states:
 *
 *                                          ┌──give───┐
 *                                          ▼         │
 *   FREE ─enter─► ENTERED ─► WAITING ─give─► FILLING ─► FILLED ─close─► CLOSED ─leave─► FREE
 *                               │               │
 *                               └──close──► FREE└──close──► LEFT ─(the giver)─► FREE
 *
 * Each arrow out of WAITING, FILLING and FILLED is a compare-and-swap, so one side moves a place at
 * a time. A waiter finds FILLING only when its wait did not end by that giver: its time limit has
 * passed, or several threads gave back a lock for readers. The waiter does not wait then, but
 * leaves the place to the giver. */
#include "lock/lock_waiters.h"

#include <stddef.h>

#include "call/call.h"
#include "call/call_sampling.h"
#include "core/atomic.h"
#include "core/clock.h"
#include "lock/lock_holder.h"

typedef enum place_state {
    FREE = 0,
    ENTERED, /* by its waiter, which writes it */
    WAITING,
    FILLING, /* by the thread that gives the lock back */
    FILLED,
    CLOSED, /* by its waiter, which reads it */
    LEFT,   /* by its waiter, while it was filled */
} place_state;

static bool move(sp_lock_waiter *place, uint32_t from, uint32_t to)
{
    return atomic_compare_exchange_strong(&place->state, &from, to);
}

uint32_t sp_lock_waiters_enter(sp_lock_waiters *table, const void *lock, uint64_t due_ns,
                               uint64_t period_ns)
{
    uint32_t set = sp_lock_set(lock);
    for (uint32_t way = 0; way < SP_LOCK_WAYS; way++) {
        sp_lock_waiter *place = &table->places[set][way];
        if (sp_load_relaxed(&place->state) != FREE || !move(place, FREE, ENTERED))
            continue;
        sp_store_relaxed(&place->lock, lock);
        sp_store_relaxed(&place->due_ns, due_ns);
        place->period_ns = period_ns;
        place->accounted_ns = 0;
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
    /* The loop is needed because a giver may take the place by mistake, and put it back. */
    while (!move(place, FILLED, CLOSED))
        if (move(place, WAITING, FREE) || move(place, FILLING, LEFT))
            return NULL;
    return &place->giver;
}

void sp_lock_waiters_leave(sp_lock_waiters *table, uint32_t number)
{
    sp_store_release(&place_of(table, number)->state, FREE);
}

/* --- giving the lock back --------------------------------------------------------------------- */

static bool is_due(const sp_lock_waiter *place, uint32_t state, const void *lock, uint64_t now_ns)
{
    return (state == WAITING || state == FILLED) && sp_load_relaxed(&place->lock) == lock &&
           sp_load_relaxed(&place->due_ns) <= now_ns;
}

/* Give the place its STATE back. If the waiter has left meanwhile (LEFT), the place becomes
 * free. */
static void put_back(sp_lock_waiter *place, uint32_t state)
{
    if (!move(place, FILLING, state))
        sp_store_release(&place->state, FREE);
}

/* Take PLACE for filling if its wait is due. Returns its state before, WAITING or FILLED; FREE: it
 * is not taken. Another wait may have got the place just before the exchange, so is_due is called
 * again after it. */
static uint32_t take_place(sp_lock_waiter *place, const void *lock, uint64_t now_ns)
{
    uint32_t state = sp_load_acquire(&place->state);
    if (!is_due(place, state, lock, now_ns) || !move(place, state, FILLING))
        return FREE;
    if (is_due(place, state, lock, now_ns))
        return state;
    put_back(place, state);
    return FREE;
}

/* The moments of PLACE's wait that are sampled and have passed since the first one was due belong
 * to the calling thread. One moment of the whole wait is chosen at random, each with the same
 * probability, and the thread of that moment is named. So this thread replaces an earlier one with
 * the probability of its share of all moments so far. */
static bool is_chosen(sp_lock_waiter *place, uint64_t now_ns)
{
    uint64_t random = now_ns ^ (uint64_t)(uintptr_t)place;
    uint64_t own_ns = now_ns - sp_load_relaxed(&place->due_ns) + place->period_ns;
    place->accounted_ns += own_ns;
    sp_store_relaxed(&place->due_ns, now_ns + sp_sampling_draw(&random, place->period_ns));
    return sp_random_next(&random) % place->accounted_ns < own_ns;
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
        sp_lock_waiter *place = &places[way];
        if (take_place(place, lock, now_ns) == FREE)
            continue;
        if (is_chosen(place, now_ns)) {
            if (!is_made) {
                sp_lock_holder_here(&giver.span);
                sp_call_stack_here(sp_lock_giver_stack(&giver), SP_CALL_HOLDER_DEPTH,
                                   return_address);
            }
            is_made = true;
            copy_giver(&place->giver, &giver);
        }
        put_back(place, FILLED);
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
