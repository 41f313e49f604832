/* SPDX-License-Identifier: Apache-2.0 */
/* Sums of values and counts. Files may have values up to INT64_MAX, and the sum of three such
 * values does not fit into 64 bits. */
#ifndef SP_TOOL_MODEL_SUM_H
#define SP_TOOL_MODEL_SUM_H

#include <stdint.h>

/* Set *SUM to INT64_MAX, and note that. Threads: any. */
void sp_sum_fill(uint64_t *sum);
/* Write a warning if a sum was filled since the last call. Threads: only the main thread, as for
 * all messages. */
void sp_sum_note(void);

/* Add VALUE to *SUM. A sum never exceeds INT64_MAX, because JSON answers have signed numbers. */
static inline void sp_sum_add(uint64_t *sum, uint64_t value)
{
    if (value <= (uint64_t)INT64_MAX - *sum)
        *sum += value;
    else
        sp_sum_fill(sum);
}

#endif
