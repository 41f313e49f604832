/* SPDX-License-Identifier: Apache-2.0 */
/* Span processors (OpenTelemetry specification, trace/sdk.md, "Span processor"): what happens when a recording span starts and
 * ends. Correlation with profiles is one, the batch queue is another. Called in the order of registration, on the thread that
 * starts or ends the span; they must not block. A later version makes this interface public. */
#ifndef SP_TRACER_PROCESSOR_H
#define SP_TRACER_PROCESSOR_H

#include "tracer/span_data.h"

typedef struct sp_span_processor sp_span_processor;

struct sp_span_processor {
    /* SPAN is being started: nobody else knows it yet. CONTEXT is its own, PARENT its parent's (all zero for a root).
     * Attributes are added by sp_span_data_set. May be NULL. */
    void (*on_start)(sp_span_processor *self, sp_span_data *span, const spanprof_context *context,
                     const spanprof_context *parent);
    /* DATA is the finished span, sampled, and now the processor's: it releases it with sp_span_data_release. Only the last
     * processor of a provider may have an on_end that takes; the others have NULL. */
    void (*on_end)(sp_span_processor *self, sp_span_data *data);
};

/* Add or replace an attribute of SPAN inside on_start. ATTRIBUTE's key is borrowed and has to be valid UTF-8 that lives as long
 * as the process; a string value is copied. */
void sp_span_data_set(sp_span_data *span, const spanprof_attribute *attribute);

#endif
