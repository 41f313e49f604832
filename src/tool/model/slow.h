/* SPDX-License-Identifier: Apache-2.0 */
/* The slow ones of the spans that a question means. */
#ifndef SP_TOOL_MODEL_SLOW_H
#define SP_TOOL_MODEL_SLOW_H

#include "tool/model/model.h"

typedef struct sp_slow {
    double percent;    /* 99: the slowest hundredth */
    uint64_t least_ns; /* of the slow ones */
    uint32_t all;      /* spans, slow and not */
} sp_slow;

/* "p99", "p99.9" or "99". SP_TOOL_WRONG, having said so, when TEXT is none of these. */
int sp_slow_parse(const char *text, sp_slow *out);
/* Of the spans that are set in MARKS keep the slow ones, or with REST all others, and fill SLOW.
 * There is always a slow one where there is any; spans as long as the shortest of them are slow
 * too. False when memory is short. */
bool sp_slow_keep(const sp_model *model, sp_slow *slow, bool rest, bool *marks);
/* After it: SP_TOOL_NO, having said so, when there are spans, and not even one of them is in the
 * part that was asked for, as with p99 of three. Else SP_TOOL_DONE. */
int sp_slow_check(const sp_slow *slow);

#endif
