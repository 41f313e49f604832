/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/handle.h"

#include <sched.h>

__attribute__((noinline)) void sp_handle_count_misuse(spanprof_span span)
{
    if (span.slot || sp_load_relaxed(&sp_session_current))
        sp_cache_count(sp_cache_mine, SP_COUNT_MISUSE);
}

/* Another thread holds the lock while it copies; on a busy machine that thread may first have to
 * wait for a core. */
__attribute__((noinline)) bool sp_handle_lock_contended(sp_slot *slot, uint64_t generation)
{
    for (unsigned tries = 0;; tries++) {
        uint64_t expected = generation;
        if (atomic_compare_exchange_weak_explicit(&slot->word, &expected,
                                                  generation | SP_SLOT_LOCKED, memory_order_acquire,
                                                  memory_order_relaxed))
            return true;
        if ((expected & ~(uint64_t)SP_SLOT_LOCKED) != generation)
            return false;
        if (tries >= 64)
            sched_yield();
    }
}
