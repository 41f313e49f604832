/* SPDX-License-Identifier: Apache-2.0 */
/* The scheme of a label for each thread, as span processors have it that are told only when spans
 * start and end: a span's start sets the label of its thread, its end clears that of the thread
 * that it ends on (docs/truth.md says who does so). Included before a program that uses spanprof,
 * be it as its tracer or as a span processor under another one, it makes of the program one that
 * works by that scheme: what carries contexts there does nothing. tracers/labels.c does the same to
 * programs that load the library. */
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

static inline void label_processor_on_start(const spanprof_context *context,
                                            const spanprof_context *parent, const char *name,
                                            uint64_t time_ns, spanprof_start_attributes *out)
{
    spanprof_processor_on_start(context, parent, name, time_ns, out);
    label_clear();
    label_of_thread = spanprof_context_attach(context);
}

static inline void label_processor_on_end(const spanprof_context *context, uint64_t time_ns)
{
    spanprof_processor_on_end(context, time_ns);
    label_clear();
}

static inline spanprof_scope label_no_scope(void)
{
    spanprof_scope none = {0, 0, 0};
    return none;
}

static inline spanprof_status label_no_detach(spanprof_scope *scope)
{
    (void)scope;
    return SPANPROF_OK;
}

#define spanprof_span_start(tracer, name, options)  label_span_start(tracer, name, options)
#define spanprof_span_end(span)                     label_span_end_at(span, 0)
#define spanprof_span_end_at(span, time_ns)         label_span_end_at(span, time_ns)
#define spanprof_span_attach(span)                  ((void)(span), label_no_scope())
#define spanprof_context_attach(context)            ((void)(context), label_no_scope())
#define spanprof_scope_detach(scope)                label_no_detach(scope)
#define spanprof_processor_on_end(context, time_ns) label_processor_on_end(context, time_ns)
#define spanprof_processor_on_start(context, parent, name, time_ns, out)                           \
    label_processor_on_start(context, parent, name, time_ns, out)
#define spanprof_fiber_switch(fiber) ((void)(fiber), SPANPROF_OK)

#endif
