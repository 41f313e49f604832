/* SPDX-License-Identifier: Apache-2.0 */
/* How long requests lasted: the median of the durations of the selected spans, or, where none were
 * selected, of all local roots. Durations need no samples, so they also show time in a queue.
 * Threads: one at a time. */
#ifndef SP_TOOL_MODEL_DURATIONS_H
#define SP_TOOL_MODEL_DURATIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "tool/model/select.h"

/* In ns. The interval holds 95 of 100 true medians; it is 0 to infinity for fewer than 10
 * requests. */
typedef struct sp_durations {
    size_t count; /* requests */
    double median, low, high;
} sp_durations;

/* In percent of the median of A. */
typedef struct sp_durations_change {
    double change, low, high;
} sp_durations_change;

/* False when memory is short. */
bool sp_durations_find(sp_durations *out, const sp_selection *selection);
/* How much longer requests of B last. The interval is that of the two medians, so it is rather too
 * wide. A and B have requests. */
sp_durations_change sp_durations_compare(const sp_durations *a, const sp_durations *b);

#endif
