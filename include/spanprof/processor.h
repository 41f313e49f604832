/* SPDX-License-Identifier: Apache-2.0 */
/* Span processors are called when a span starts and ends. There are two directions.
 *
 * - *Your processor* gets the spans of this tracer: spanprof_processor_add.
 * - *Your tracer* reports its spans to spanprof: spanprof_processor_on_start and _on_end, in
 *   addition to spanprof_context_attach and spanprof_scope_detach (context.h), which set the
 *   active span of a thread.
 *
 * docs/design/processors.md has examples of both.
 *
 * Threads: any, for every function here.  Signals: not safe. Source: OpenTelemetry specification,
 * trace/sdk.md, "Span processor". */
#ifndef SPANPROF_PROCESSOR_H
#define SPANPROF_PROCESSOR_H

#include <spanprof/tracer.h>

SPANPROF_BEGIN_DECLS

/* --- your processor --------------------------------------------------------------------------- */

/* An instrumentation scope, its attributes in the order of their keys. */
typedef struct spanprof_instrumentation_scope {
    const char *name; /* never NULL, as are the other strings */
    const char *version;
    const char *schema_url;
    const spanprof_attribute *attributes;
    uint32_t attribute_count;
    uint32_t dropped_attributes_count;
} spanprof_instrumentation_scope;

typedef struct spanprof_link_view {
    uint8_t trace_id[16];
    uint8_t span_id[8];
    uint32_t flags; /* as Span.Link.flags of OTLP */
    const spanprof_attribute *attributes;
    uint32_t attribute_count;
    uint32_t dropped_attributes_count;
    const char *trace_state; /* of the linked context; "" for none */
} spanprof_link_view;

typedef struct spanprof_event_view {
    uint64_t time_ns;
    const char *name;
    const spanprof_attribute *attributes;
    uint32_t attribute_count;
    uint32_t dropped_attributes_count;
} spanprof_event_view;

/* A span as it is now: it has just started, or it has ended, as exporters get it. Everything in it
 * is borrowed: see the callbacks. Strings are valid UTF-8 and never NULL; times are nanoseconds
 * since the epoch, start <= end. Later versions only append fields. The elements of its arrays
 * never grow: a later version reports more about an event in a new array. */
typedef struct spanprof_span_view {
    uint32_t struct_size; /* the library's size; fields beyond it do not exist */
    uint32_t flags; /* as Span.flags of OTLP: trace flags, 0x100, 0x200 when the parent is remote */
    spanprof_context context; /* its trace_flags say whether the span is sampled */
    uint8_t parent_span_id[8];
    spanprof_span_kind kind;
    spanprof_span_status status;
    uint64_t start_time_ns;
    uint64_t end_time_ns; /* 0: it lives */
    const char *name;
    const char *status_message;
    const char *trace_state; /* of an ended span; a live span's context carries it */
    const spanprof_instrumentation_scope *scope;
    const spanprof_attribute *attributes;
    const spanprof_event_view *events;
    const spanprof_link_view *links;
    uint32_t attribute_count;
    uint32_t event_count;
    uint32_t link_count;
    uint32_t dropped_attributes_count;
    uint32_t dropped_events_count;
    uint32_t dropped_links_count;
} spanprof_span_view;

/* The callbacks of a processor, each of which may be NULL. Zero means none, for every field but
 * struct_size.
 *
 * on_start and on_end are called on the thread that starts or ends the span, inside that call, in
 * the order of registration: they must not block. They are called for every span that records
 * (spanprof_span_is_recording), sampled or not; only sampled ones are exported. While there is a
 * processor, spans record even if they are not exported. Several threads may be in one callback at
 * once.
 *
 * A callback may do everything, because spanprof holds no lock during it. For spans that it
 * *starts* no processor is called, neither at the start nor at the end, so that callbacks do not
 * recurse for ever; these spans are recorded and exported like any other. For spans that it *ends*,
 * processors are called from inside spanprof_span_end, so a lock that its on_end takes must not be
 * held during that call. spanprof_start, _flush and _stop return ERROR_IN_CALLBACK. A callback must
 * return normally: no C++ exception, longjmp or pthread_exit may leave it. Its thread is not
 * cancelled meanwhile; errno is kept. A callback may fork only in on_start and on_end. In the
 * child, it returns and no further callback follows; the view is valid until the return, and the
 * span belongs to the parent: the child's spanprof_span_start returns a dead handle, its
 * spanprof_span_end ends nothing. A callback may call exit, which flushes like any exit: the span
 * that is ending is not sent, and processors are shut down as if the callback had returned, so it
 * must hold no lock that a shutdown takes. After an exit in a shutdown, the shutdowns of later
 * processors are not called. */
typedef struct spanprof_processor {
    uint32_t struct_size; /* sizeof(spanprof_processor) */
    uint32_t reserved;    /* zero */
    void *user;           /* passed to the callbacks; has to live until shutdown has returned */
    /* SPAN has just started. VIEW has everything from its options, and from earlier processors; it
     * is valid until the callback writes to SPAN or returns. Write to SPAN by its handle, which may
     * be stored. But no other thread may use it before spanprof_span_start has returned, and the
     * callback should not end SPAN, because later processors would then be called for its end only.
     * PARENT is the context that SPAN was started under, borrowed until the return. For a root its
     * ids are all zero, but it may have baggage (propagation.h). */
    void (*on_start)(void *user, spanprof_span span, const spanprof_span_view *view,
                     const spanprof_context *parent);
    /* The span of VIEW, which is valid until the return, has ended: its handle is dead. For a
     * processor that was added while the span lived, only on_end is called. */
    void (*on_end)(void *user, const spanprof_span_view *view);
    /* Finish the work on spans that on_end got until now. spanprof_flush waits for it, TIMEOUT_NS
     * at most (0: do not wait; UINT64_MAX: no limit). Spans that the callback ends are still
     * delivered by that flush. Its result becomes the flush's status, unless an earlier processor
     * returned an error. */
    spanprof_status (*flush)(void *user, uint64_t timeout_ns);
    /* The same, and the end: spanprof_stop waits for it, or the process exits (at most 5 seconds).
     * Called exactly once, when no other callback runs; no callback is called afterwards, and the
     * processor is removed. If a callback on another thread does not return within the time, it may
     * still be running. */
    spanprof_status (*shutdown)(void *user, uint64_t timeout_ns);
} spanprof_processor;

#define SPANPROF_PROCESSOR_INIT SPANPROF_INIT(spanprof_processor)

/* Call PROCESSOR, which is copied, for the spans of every tracer: from now on, or from
 * spanprof_start on, until spanprof_stop calls its shutdown. For the next start it has to be added
 * again. If it is added twice, it is called twice. Returns ERROR_INVALID_ARGUMENT for NULL, a
 * struct_size of 0 and non-zero fields that this version does not know, ERROR_NO_MEMORY. Fork: a
 * child of a process that runs the SDK has none of its processors, and their shutdown is not called
 * there. Processors that were added before the start are kept in the child. Since 0.1. */
SPANPROF_API spanprof_status spanprof_processor_add(const spanprof_processor *processor);

/* --- your tracer ------------------------------------------------------------------------------ */

/* Attributes that a span should get, so that a trace view finds its profile. Keys live as long as
 * the process. Strings point into `text`, so use the struct where it was filled in, not a copy. */
typedef struct spanprof_start_attributes {
    uint32_t struct_size; /* sizeof(spanprof_start_attributes) */
    uint32_t count;       /* of items; set by the call */
    spanprof_attribute items[4];
    char text[64];
} spanprof_start_attributes;

#define SPANPROF_START_ATTRIBUTES_INIT SPANPROF_INIT(spanprof_start_attributes)

/* Another tracer has started a span. The call lets spanprof find the local root of contexts that
 * name none: in profiles by root, samples under a context with a local_root_span_id of zero link to
 * the root that was derived from this call; or to the span itself, when it was never reported, or
 * is forgotten. CONTEXT: the span's; an unsampled or invalid one, or NULL, is ignored. PARENT: its
 * parent's, NULL for none. A span without a parent, or whose parent is remote or unknown, is a
 * local root. A local_root_span_id in CONTEXT or PARENT is used as it is. NAME (may be NULL), and
 * TIME_NS, the start since the epoch, 0 for now, are not used yet. OUT (may be NULL) gets the
 * attributes that this span should have: pyroscope.profile.id where SPANPROF_LINK_SCOPE lets
 * samples link to it, else none. Bounds: 65,536 spans are known at a time, 3 MiB at most. Ended
 * spans stay until the profile is built, and are removed first to make room; a live span that is
 * removed is counted (evicted_foreign_spans). Does nothing while the SDK is not started; spans that
 * start then are not known later. Fork: the child knows none. Since 0.1. */
SPANPROF_API void spanprof_processor_on_start(const spanprof_context *context,
                                              const spanprof_context *parent, const char *name,
                                              uint64_t time_ns, spanprof_start_attributes *out);

/* The span of CONTEXT has ended, at TIME_NS since the epoch (0: now; not used yet). Attached
 * contexts stay active until their scopes end. An unknown span is ignored. Since 0.1. */
SPANPROF_API void spanprof_processor_on_end(const spanprof_context *context, uint64_t time_ns);

SPANPROF_END_DECLS

#endif
