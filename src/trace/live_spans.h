/* SPDX-License-Identifier: Apache-2.0 */
/* Which spans live at a given moment. It is used for allocated blocks: a block whose span has ended
 * has outlived that span. Collector thread only. */
#ifndef SP_TRACE_LIVE_SPANS_H
#define SP_TRACE_LIVE_SPANS_H

#include "core/intern.h"

/* The ids of the spans of this tracer that lived when they were gathered. Zero-initialised is
 * empty. */
typedef struct sp_live_spans {
    sp_intern ids;
    bool is_incomplete; /* memory was short */
} sp_live_spans;

void sp_live_spans_gather(sp_live_spans *live);
/* Whether the span lives; also true when the list is incomplete. For a span that another tracer has
 * reported, the answer is about now, not about the time of the gathering. */
bool sp_live_spans_has(const sp_live_spans *live, const uint8_t trace_id[16],
                       const uint8_t span_id[8]);
void sp_live_spans_deinit(sp_live_spans *live);

#endif
