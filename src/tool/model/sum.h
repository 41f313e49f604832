/* SPDX-License-Identifier: Apache-2.0 */
/* Sums of values and counts. Files may hold values up to INT64_MAX, of which three are more than 64
 * bits hold. */
#ifndef SP_TOOL_MODEL_SUM_H
#define SP_TOOL_MODEL_SUM_H

#include <stdint.h>

/* Set *SUM to INT64_MAX, with one warning in all. */
void sp_sum_fill(uint64_t *sum);

/* Add VALUE to *SUM, which is at most INT64_MAX and stays there: JSON answers hold signed numbers.
 */
static inline void sp_sum_add(uint64_t *sum, uint64_t value)
{
    if (value <= (uint64_t)INT64_MAX - *sum)
        *sum += value;
    else
        sp_sum_fill(sum);
}

#endif
