/* SPDX-License-Identifier: Apache-2.0 */
/* What a span does with the carrier of its context (carrier.h): it pins the entry while it lives.
 * Carriers are words here, as the slots of spans have them; most are zero, which costs one
 * comparison. */
#ifndef SP_TRACE_SPAN_CARRIER_H
#define SP_TRACE_SPAN_CARRIER_H

#include <string.h>

#include "trace/propagators.h"
#include "trace/record.h"

static inline spanprof_carrier sp_span_carrier(uint64_t word)
{
    spanprof_carrier carrier;
    memcpy(&carrier, &word, sizeof carrier);
    return carrier;
}

/* For a root span under a context that has no span: its baggage. A tracestate belongs to the trace
 * that is not continued. */
static inline uint64_t sp_span_carrier_of_root(spanprof_carrier given)
{
    uint64_t word;
    spanprof_carrier carrier = sp_propagation_without_trace_state(given);
    memcpy(&word, &carrier, sizeof word);
    return word;
}

/* From here to its end the entry stays. If the entry is gone already, the context carries nothing.
 */
static inline void sp_span_carrier_pin(uint64_t *word)
{
    if (SP_UNLIKELY(*word != 0) && !sp_carrier_pin(sp_span_carrier(*word)))
        *word = 0;
}

static inline void sp_span_carrier_unpin(uint64_t word)
{
    if (SP_UNLIKELY(word != 0))
        sp_carrier_unpin(sp_span_carrier(word));
}

/* A finished span is sent without the table: RECORD takes its tracestate with it. */
static inline void sp_span_carrier_end(sp_span_record *record, uint64_t word)
{
    if (SP_LIKELY(word == 0))
        return;
    const sp_carried *carried = sp_carrier_pinned(sp_span_carrier(word));
    if (carried->trace_state_length &&
        !sp_record_set_trace_state(record, carried->trace_state, carried->trace_state_length))
        sp_carrier_count_dropped();
    sp_carrier_unpin(sp_span_carrier(word));
}

#endif
