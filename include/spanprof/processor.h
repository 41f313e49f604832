/* SPDX-License-Identifier: Apache-2.0 */
/* Span processors: what else happens when a span starts and ends. Two directions.
 *
 * - A *processor of yours* is told of the spans of this tracer: spanprof_processor_add.
 * - A *tracer of yours* tells spanprof of its spans: spanprof_processor_on_start and _on_end,
 * beside spanprof_context_attach and spanprof_scope_detach (context.h), which say which span is
 * active on a thread.
 *
 * docs/design/processors.md has both by example.
 *
 * Threads: any, for every function here.  Signals: not safe.
 * Source: OpenTelemetry specification, trace/sdk.md, "Span processor". */
#ifndef SPANPROF_PROCESSOR_H
#define SPANPROF_PROCESSOR_H

#include <spanprof/tracer.h>

SPANPROF_BEGIN_DECLS

/* --- a processor of yours --------------------------------------------------------------------- */

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
    const char *trace_state; /* of the context that it was made from; "" for none */
} spanprof_link_view;

typedef struct spanprof_event_view {
    uint64_t time_ns;
    const char *name;
    const spanprof_attribute *attributes;
    uint32_t attribute_count;
    uint32_t dropped_attributes_count;
} spanprof_event_view;

/* A span as it is now: one that has just started, or one that has ended, as exporters get it. All
 * of it is borrowed: see the callbacks. Strings are valid UTF-8 and never NULL; times are
 * nanoseconds since the epoch, start <= end. Fields are only appended; the elements of its arrays
 * never grow: what a later version says of an event comes in an array of its own. */
typedef struct spanprof_span_view {
    uint32_t struct_size; /* as the library knows it: a field beyond is not there */
    uint32_t flags; /* as Span.flags of OTLP: trace flags, 0x100, 0x200 when the parent is remote */
    spanprof_context context; /* whose trace_flags say whether it is sampled */
    uint8_t parent_span_id[8];
    spanprof_span_kind kind;
    spanprof_span_status status;
    uint64_t start_time_ns;
    uint64_t end_time_ns; /* 0: it lives */
    const char *name;
    const char *status_message;
    const char *trace_state; /* of a span that has ended; while it lives its context carries it */
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
 * What a callback may do: everything, for spanprof holds no lock over it. For spans that it
 * *starts* no processor is called, neither at the start nor at the end, so that no callback leads
 * to itself for ever; these spans are recorded and exported as any other. For spans that it *ends*
 * processors are called from inside spanprof_span_end, so a lock that its on_end takes must not be
 * held over that call. spanprof_start, _flush and _stop return ERROR_IN_CALLBACK. It returns as
 * functions do: no C++ exception, longjmp or pthread_exit leaves it. Its thread is not cancelled
 * meanwhile; errno is kept. A child that it forks returns from on_start and on_end only; no further
 * callback follows there, the view is valid until then, and the span is the parent's: the child's
 * spanprof_span_start returns a dead handle, its spanprof_span_end ends nothing. It may call exit,
 * which flushes as any exit does: the span that is ending there is not sent, and processors are
 * shut down as if the callback had returned, so it must hold no lock that a shutdown takes. After
 * an exit in a shutdown those of later processors are not called. */
typedef struct spanprof_processor {
    uint32_t struct_size; /* sizeof(spanprof_processor) */
    uint32_t reserved;    /* zero */
    void *user;           /* passed to the callbacks; has to live until shutdown was called */
    /* SPAN has just started. VIEW shows all that its options said, and what earlier processors
     * wrote; it is valid until the callback writes to SPAN or returns. Write to SPAN by its handle,
     * and keep that if need be; but no other thread may use it before spanprof_span_start has
     * returned, and it must not end here, or later processors are told of its end only. PARENT is
     * the context that it was started under, borrowed until the return: ids of all zero for a root,
     * which may have baggage all the same (propagation.h). */
    void (*on_start)(void *user, spanprof_span span, const spanprof_span_view *view,
                     const spanprof_context *parent);
    /* The span of VIEW, which is valid until the return, has ended: its handle is dead. A processor
     * that was added while the span lived is told of the end only. */
    void (*on_end)(void *user, const spanprof_span_view *view);
    /* Finish what on_end was told until now: spanprof_flush is waiting, for TIMEOUT_NS more at most
     * (0: do not wait; UINT64_MAX: any time). What it ends is still delivered by that flush. What
     * it returns becomes the flush's status, unless that of an earlier processor was an error. */
    spanprof_status (*flush)(void *user, uint64_t timeout_ns);
    /* The same, and the end: spanprof_stop is waiting, or the process exits (at most 5 seconds).
     * Called exactly once, when no other callback runs, and none is called afterwards; then the
     * processor is forgotten. Only when a callback on another thread does not return before the
     * time is over may it still be running. */
    spanprof_status (*shutdown)(void *user, uint64_t timeout_ns);
} spanprof_processor;

#define SPANPROF_PROCESSOR_INIT SPANPROF_INIT(spanprof_processor)

/* Have PROCESSOR, which is copied, told of the spans of every tracer: from now on, or from
 * spanprof_start on. It is told until spanprof_stop calls its shutdown; for the next start it has
 * to be added again. Added twice it is told twice. Returns ERROR_INVALID_ARGUMENT for NULL, a
 * struct_size of 0 and non-zero fields that this version does not know, ERROR_NO_MEMORY. Fork: a
 * child of a process that runs the SDK has none of its processors, and their shutdown is not called
 * there; those that wait for the start are the child's, too.  Since 0.1. */
SPANPROF_API spanprof_status spanprof_processor_add(const spanprof_processor *processor);

/* --- a tracer of yours ------------------------------------------------------------------------ */

/* Attributes that a span should get so that it is found from its profile. Keys live for ever;
 * strings lie in `text`, so the struct is used where it was filled. */
typedef struct spanprof_start_attributes {
    uint32_t struct_size; /* sizeof(spanprof_start_attributes) */
    uint32_t count;       /* of items; set by the call */
    spanprof_attribute items[4];
    char text[64];
} spanprof_start_attributes;

#define SPANPROF_START_ATTRIBUTES_INIT SPANPROF_INIT(spanprof_start_attributes)

/* Another tracer has started a span. What is told here resolves the local root of contexts that
 * name none: in profiles by root, samples under a context with a local_root_span_id of zero link to
 * the root that this call learned; to the span itself when it was never told, or is forgotten.
 * CONTEXT: the span's; an unsampled or invalid one, or NULL, is ignored. PARENT: its parent's, NULL
 * for none. A span whose parent is remote, none, or not known here is a local root. A
 * local_root_span_id that either names is taken as it is. NAME (may be NULL), and TIME_NS: when,
 * since the epoch, or 0: now; nothing asks for either yet. OUT (may be NULL) gets the attributes
 * that this span should have: pyroscope.profile.id where SPANPROF_LINK_SCOPE lets samples link to
 * it, else none. Bounds: 65,536 spans are known at a time, 3 MiB at most. Ended ones stay for the
 * profile to be built, and make room first; a live one that has to is counted
 * (evicted_foreign_spans). Does nothing while the SDK is not started; spans that start then are not
 * known later.  Fork: the child knows none.  Since 0.1. */
SPANPROF_API void spanprof_processor_on_start(const spanprof_context *context,
                                              const spanprof_context *parent, const char *name,
                                              uint64_t time_ns, spanprof_start_attributes *out);

/* The span of CONTEXT has ended, at TIME_NS since the epoch (0: now; nothing asks for it yet).
 * Contexts that are attached stay active until their scopes end. One that is not known is ignored.
 * Since 0.1. */
SPANPROF_API void spanprof_processor_on_end(const spanprof_context *context, uint64_t time_ns);

SPANPROF_END_DECLS

#endif
