/* SPDX-License-Identifier: Apache-2.0 */
/* A span pins the entry of its context's carrier while it lives (carrier.h). Carriers are words
 * here, as in the slots of spans. Most are zero, so the usual cost is one comparison. */
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

/* The carrier of a root span under a context without a span: GIVEN without the tracestate, which
 * belongs to a trace that is not continued. */
static inline uint64_t sp_span_carrier_of_root(spanprof_carrier given)
{
    uint64_t word;
    spanprof_carrier carrier = sp_propagation_without_trace_state(given);
    memcpy(&word, &carrier, sizeof word);
    return word;
}

/* Pin the entry until the span ends. If the entry is gone already, set WORD to 0: the context
 * carries nothing. */
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

/* Exporters do not read the table of carriers, so RECORD gets a copy of its tracestate. */
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
