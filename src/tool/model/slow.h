/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the slow spans among the selected ones. */
#ifndef SP_TOOL_MODEL_SLOW_H
#define SP_TOOL_MODEL_SLOW_H

#include "tool/model/model.h"

typedef struct sp_slow {
    double percent;    /* 99: the slowest hundredth */
    uint64_t least_ns; /* the duration of the shortest slow span */
    uint32_t all;      /* the number of selected spans, slow or not */
} sp_slow;

/* Parse TEXT: "p99", "p99.9" or "99". Returns SP_TOOL_WRONG, after a message, when TEXT is not a
 * percentile. */
int sp_slow_parse(const char *text, sp_slow *out);
/* Of the spans that are set in MARKS keep the slow ones, or with REST all others, and fill SLOW. If
 * MARKS has any span, at least one is slow. All spans as long as the shortest slow one are slow,
 * too. Returns false when memory is short. */
bool sp_slow_keep(const sp_model *model, sp_slow *slow, bool rest, bool *marks);
/* Call it after sp_slow_keep. Returns SP_TOOL_NO, after a message, when there are too few spans for
 * the percentile, such as three spans for p99. Returns SP_TOOL_DONE for enough spans, or none. */
int sp_slow_check(const sp_slow *slow);

#endif
