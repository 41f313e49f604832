/* SPDX-License-Identifier: Apache-2.0 */
#include "tool/model/sum.h"

#include <stdatomic.h>

#include "tool/text/messages.h"

void sp_sum_fill(uint64_t *sum)
{
    static atomic_flag said = ATOMIC_FLAG_INIT;
    *sum = INT64_MAX;
    if (!atomic_flag_test_and_set_explicit(&said, memory_order_relaxed))
        sp_tool_note("a sum is more than %lld, and is given as that: shares of it are wrong",
                     (long long)INT64_MAX);
}
