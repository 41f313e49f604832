/* SPDX-License-Identifier: Apache-2.0 */
#include "tool/model/sum.h"

#include <stdbool.h>

#include "tool/text/messages.h"

void sp_sum_fill(uint64_t *sum)
{
    static bool said; /* there is one thread */
    *sum = INT64_MAX;
    if (!said)
        sp_tool_note("a sum is more than %lld, and is given as that: shares of it are wrong",
                     (long long)INT64_MAX);
    said = true;
}
