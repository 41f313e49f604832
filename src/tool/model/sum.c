/* SPDX-License-Identifier: Apache-2.0 */
#include "tool/model/sum.h"

#include <stdatomic.h>
#include <stdbool.h>

#include "tool/text/messages.h"

/* Relaxed is enough: the main thread reads it when the other threads have ended. */
static atomic_bool is_filled;

void sp_sum_fill(uint64_t *sum)
{
    *sum = INT64_MAX;
    atomic_store_explicit(&is_filled, true, memory_order_relaxed);
}

void sp_sum_note(void)
{
    if (atomic_exchange_explicit(&is_filled, false, memory_order_relaxed))
        sp_tool_note("a sum is more than %lld, and is given as that: shares of it are wrong",
                     (long long)INT64_MAX);
}
