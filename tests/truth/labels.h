/* SPDX-License-Identifier: Apache-2.0 */
/* The scheme of a label for each thread, as span processors have it that are told only when spans start and end: a span's start sets the label of
 * its thread, its end clears that of the thread that it ends on (docs/truth.md says who does so). Included before a program that uses
 * spanprof, it makes of the program one that works by that scheme: what carries contexts there does nothing. */
#ifndef TRUTH_LABELS_H
#define TRUTH_LABELS_H

#include <spanprof/spanprof.h>

static __thread spanprof_scope label_of_thread;

static inline void label_clear(void)
{
    if (label_of_thread.serial != 0)
        spanprof_scope_detach(&label_of_thread);
}

static inline spanprof_span label_span_start(spanprof_tracer *tracer, const char *name,
                                             const spanprof_span_options *options)
{
    spanprof_span span = spanprof_span_start(tracer, name, options);
    label_clear();
    label_of_thread = spanprof_span_attach(span);
    return span;
}

static inline void label_span_end_at(spanprof_span span, uint64_t time_ns)
{
    spanprof_span_end_at(span, time_ns);
    label_clear();
}

static inline spanprof_scope label_no_scope(void)
{
    spanprof_scope none = {0, 0, 0};
    return none;
}

#define spanprof_span_start(tracer, name, options) label_span_start(tracer, name, options)
#define spanprof_span_end(span)                    label_span_end_at(span, 0)
#define spanprof_span_end_at(span, time_ns)        label_span_end_at(span, time_ns)
#define spanprof_span_attach(span)                 ((void)(span), label_no_scope())
#define spanprof_context_attach(context)           ((void)(context), label_no_scope())
#define spanprof_scope_detach(scope)               ((void)(scope), SPANPROF_OK)
#define spanprof_fiber_switch(fiber)               ((void)(fiber), SPANPROF_OK)

#endif
