/* SPDX-License-Identifier: Apache-2.0 */
/* A table of slots that never move and whose memory is never unmapped, so that a stale handle at
 * worst reads the slot of a later object, whose generation differs.
 *
 * Slots have numbers from 1 on; 0 is none. A lock of the owner guards which slots are used and
 * which are free. The slot that was given back last is taken next.
 *
 * | operation                                              | thread              | owner's lock |
 * | sp_slot_was_taken, sp_slots_ever_taken, sp_slot_fits   | any; signals: safe  | not needed   |
 * | sp_slot_take, _give, _open, _close, _is_available      | any; signals: never | held         |
 *
 * Threads, fibers and carriers have such tables. Spans do not (trace/pool.h): their free slots go
 * from thread to thread in batches, so that most starts and ends take no lock. The generation of a
 * span, and that of a carrier, shares a word with a lock or with pins, and is changed there. */
#ifndef SP_CORE_SLOT_TABLE_H
#define SP_CORE_SLOT_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/atomic.h"

/* Initialize SLOT, which is all zero and has NUMBER from now on. Called when it is taken for the
 * first time, before another thread can find it. */
typedef void sp_slot_init(void *slot, uint32_t number);

/* Invariants: slots 1 to `ever_taken` were taken at least once, and `ever_taken` never shrinks.
 * Each number in the list of free slots is one of these. */
typedef struct sp_slot_table {
    uint32_t slot_bytes, next_at, maximum; /* constant */
    sp_slot_init *init;
    void *memory;        /* slot 1; NULL: nothing is reserved yet */
    size_t usable_bytes; /* at the beginning of `memory` */
    _Atomic uint32_t ever_taken;
    uint32_t free_list; /* the first free slot; the next one is at next_at */
} sp_slot_table;

/* A table of up to COUNT slots of TYPE. Its member NEXT, a uint32_t, links free slots, and belongs
 * to the owner while the slot is taken. Memory is reserved at the first take, and becomes usable
 * as slots are taken. */
#define SP_SLOT_TABLE(type, next, count, function)                                                 \
    {                                                                                              \
        .slot_bytes = sizeof(type), .next_at = offsetof(type, next), .maximum = (count),           \
        .init = (function)                                                                         \
    }

/* The same in SLOTS, an array of COUNT that is zero. */
#define SP_SLOT_TABLE_IN(slots, type, next, count, function)                                       \
    {                                                                                              \
        .slot_bytes = sizeof(type), .next_at = offsetof(type, next), .maximum = (count),           \
        .init = (function), .memory = (slots), .usable_bytes = sizeof(type) * (count)              \
    }

/* A free slot, or NULL: all are taken, or memory is short. */
void *sp_slot_take(sp_slot_table *table);
/* Give SLOT back: it is free. */
void sp_slot_give(sp_slot_table *table, void *slot);
/* Whether a slot is free or can be added. (The take may still fail when memory is short.) */
static inline bool sp_slot_is_available(const sp_slot_table *table)
{
    return table->free_list || sp_load_relaxed(&table->ever_taken) < table->maximum;
}

/* How many slots were ever taken: the bound for a loop over all. */
static inline uint32_t sp_slots_ever_taken(const sp_slot_table *table)
{
    return sp_load_acquire(&table->ever_taken); /* pairs with the release in sp_slot_take */
}

/* Whether NUMBER, which may be any value, is that of a slot that was taken at least once. */
static inline bool sp_slot_was_taken(const sp_slot_table *table, uint32_t number)
{
    return number - 1 < sp_slots_ever_taken(table); /* 0 wraps around */
}

/* --- generations: odd while the handle of a slot is valid ------------------------------------- */

/* Begin the next generation, and return it: from now on only its handles are valid. With the
 * owner's lock. */
static inline uint32_t sp_slot_open(_Atomic uint32_t *generation)
{
    uint32_t last = sp_load_relaxed(generation), next = last + 1 + (last & 1);
    sp_store_release(generation, next); /* pairs with sp_slot_fits: the contents of the slot */
    return next;
}

/* From now on no handle is valid. Sequentially consistent, as is sp_slot_fits: if a thread claims a
 * slot and then calls sp_slot_fits, either that call reads the new generation, or this thread reads
 * the claim. */
static inline void sp_slot_close(_Atomic uint32_t *generation)
{
    atomic_store(generation, (sp_load_relaxed(generation) | 1) + 1);
}

/* Whether a handle with generation OF_HANDLE, which may be any value, is valid. */
static inline bool sp_slot_fits(const _Atomic uint32_t *generation, uint32_t of_handle)
{
    return of_handle & 1 && atomic_load(generation) == of_handle;
}

#endif
