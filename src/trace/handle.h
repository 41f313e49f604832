/* SPDX-License-Identifier: Apache-2.0 */
/* From a handle to its span.
 *
 * A handle names a slot and the generation that the slot had when the span started. A recording
 * span is used under the lock bit of its slot's word: taking it is one compare-and-swap from
 * (generation, unlocked) to (generation, locked), which fails for a span that ended, however long
 * ago. An unsampled span has a bare slot: its context, and nothing to lock. Threads: any. */
#ifndef SP_TRACE_HANDLE_H
#define SP_TRACE_HANDLE_H

#include "trace/record.h"

/* The lowest bit of handle.slot: the slot is one of sp_light_pool. */
enum { SP_HANDLE_LIGHT = 1 };

/* Count a call with SPAN, which has ended or never existed. The zero handle is not counted while
 * the SDK does not run, because a start then returns it. */
void sp_handle_count_misuse(spanprof_span span);
/* The slow path of sp_handle_lock_slot: another thread holds the lock. */
bool sp_handle_lock_contended(sp_slot *slot, uint64_t generation);

/* The slot whose index SPAN has; the caller compares the generation. NULL when SPAN cannot be
 * valid. */
static inline sp_slot *sp_handle_slot(spanprof_span span)
{
    const uint64_t state = SP_SLOT_LIVE | SP_SLOT_LOCKED;
    if (SP_UNLIKELY((span.generation & state) != SP_SLOT_LIVE)) /* also the zero handle */
        return NULL;
    return sp_pool_at(span.slot & SP_HANDLE_LIGHT ? &sp_light_pool : &sp_record_pool,
                      span.slot >> 1);
}

/* Lock SLOT if its generation is GENERATION; false when the span has ended. */
static inline bool sp_handle_lock_slot(sp_slot *slot, uint64_t generation)
{
    uint64_t expected = generation;
    if (SP_LIKELY(atomic_compare_exchange_strong_explicit(
            &slot->word, &expected, generation | SP_SLOT_LOCKED, memory_order_acquire,
            memory_order_relaxed)))
        return true;
    return expected == (generation | SP_SLOT_LOCKED) && sp_handle_lock_contended(slot, generation);
}

/* Pairs with the acquire above: what was recorded is visible to the thread that locks next. */
static inline void sp_handle_unlock(sp_slot *slot, uint64_t generation)
{
    sp_store_release(&slot->word, generation);
}

/* The record of SPAN, locked; NULL for a span that records nothing, and for a dead span, which is
 * counted. */
static inline sp_span_record *sp_handle_lock(spanprof_span span)
{
    sp_slot *slot = sp_handle_slot(span);
    if (SP_UNLIKELY(span.slot & SP_HANDLE_LIGHT)) {
        if (!slot || sp_load_acquire(&slot->word) != span.generation)
            sp_handle_count_misuse(span);
        return NULL;
    }
    if (SP_LIKELY(slot != NULL) && SP_LIKELY(sp_handle_lock_slot(slot, span.generation)))
        return sp_record_of_slot(slot);
    sp_handle_count_misuse(span);
    return NULL;
}

#endif
