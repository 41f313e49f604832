/* SPDX-License-Identifier: Apache-2.0 */
/* Spans. A span is a handle of 16 bytes, passed by value: copy it freely. The zero handle and the
 * handle of an ended span are safe everywhere: the call is a no-op, counted in spanprof_stats as a
 * misuse. The zero handle is counted only while the SDK runs, because a start returns it otherwise;
 * an unsampled span has a handle like any other.
 *
 * All arguments of a call are copied. Strings are NUL-terminated UTF-8; bytes that are not UTF-8
 * are replaced by U+FFFD. NULL names and values read as "", a NULL array as an empty one. Times are
 * nanoseconds since the epoch (UTC).
 *
 * Options structs begin with struct_size. If a struct is larger than this library knows, the known
 * part is used, and there is one warning if the rest is not zero. A struct with struct_size 0 is
 * ignored, with one warning.
 *
 * Limits (spanprof_options, or the OTEL_ variables named there): 128 attributes, 128 events and 128
 * links of a span, 128 attributes of an event or a link; the length of values, in characters, is
 * not limited by default. Anything beyond the limits is dropped, and counted if OTLP has a field
 * for it. The same applies to keys, and values with all their elements, above 16 MiB, and when
 * memory is short. There is one warning a minute at most, and one for each span at most. Source:
 * OpenTelemetry specification, trace/api.md and trace/sdk.md ("Span limits"), common/README.md
 * ("Attribute limits").
 *
 * Threads: any, and several may use one span at once. Signals: not safe. Fork: spans of the parent
 * process belong to it; the child may start its own after spanprof_start. */
#ifndef SPANPROF_TRACER_H
#define SPANPROF_TRACER_H

#include <spanprof/context.h>

SPANPROF_BEGIN_DECLS

typedef struct spanprof_tracer spanprof_tracer;

typedef struct spanprof_span {
    uint64_t slot; /* 0: no span */
    uint64_t generation;
} spanprof_span;

/* OpenTelemetry's SpanKind. The values differ from OTLP's by one, so that zero is the default. */
typedef enum spanprof_span_kind {
    SPANPROF_SPAN_KIND_INTERNAL = 0,
    SPANPROF_SPAN_KIND_SERVER = 1,
    SPANPROF_SPAN_KIND_CLIENT = 2,
    SPANPROF_SPAN_KIND_PRODUCER = 3,
    SPANPROF_SPAN_KIND_CONSUMER = 4,
} spanprof_span_kind;

typedef enum spanprof_span_status {
    SPANPROF_SPAN_STATUS_UNSET = 0,
    SPANPROF_SPAN_STATUS_OK = 1,
    SPANPROF_SPAN_STATUS_ERROR = 2,
} spanprof_span_status;

typedef enum spanprof_attribute_type {
    SPANPROF_ATTRIBUTE_STRING = 0,
    SPANPROF_ATTRIBUTE_INT = 1,
    SPANPROF_ATTRIBUTE_DOUBLE = 2,
    SPANPROF_ATTRIBUTE_BOOL = 3,
    SPANPROF_ATTRIBUTE_STRING_ARRAY = 4,
    SPANPROF_ATTRIBUTE_INT_ARRAY = 5,
    SPANPROF_ATTRIBUTE_DOUBLE_ARRAY = 6,
    SPANPROF_ATTRIBUTE_BOOL_ARRAY = 7,
    /* count bytes at string_value, up to the first NUL; becomes a string. */
    SPANPROF_ATTRIBUTE_SIZED_STRING = 8,
} spanprof_attribute_type;

/* One attribute, as an argument of calls. With a NULL or empty KEY it is ignored; with an unknown
 * type it is dropped. */
typedef struct spanprof_attribute {
    const char *key;
    spanprof_attribute_type type;
    uint32_t count; /* elements of an array, bytes of a sized string; not used for other types */
    union {
        const char *string_value;
        int64_t int_value;
        double double_value;
        bool bool_value;
        const char *const *string_array;
        const int64_t *int_array;
        const double *double_array;
        const bool *bool_array;
    } value;
} spanprof_attribute;

/* A link to another span, as an argument of calls. With a context that is NULL or not valid it is
 * ignored, unless it has attributes. */
typedef struct spanprof_link {
    const spanprof_context *context;
    const spanprof_attribute *attributes; /* attribute_count of them, or NULL */
    uint32_t attribute_count;
} spanprof_link;

/* Zero means default, for every field. */
typedef struct spanprof_span_options {
    uint32_t struct_size;    /* sizeof(spanprof_span_options) */
    spanprof_span_kind kind; /* default internal */
    const spanprof_context
        *parent;            /* default: the active context; a context of all zero: a new trace */
    uint64_t start_time_ns; /* since the epoch (UTC); default: now */
    const spanprof_attribute *attributes; /* attribute_count of them */
    uint32_t attribute_count;
    uint32_t link_count;
    const spanprof_link *links; /* link_count of them */
} spanprof_span_options;

#define SPANPROF_SPAN_OPTIONS_INIT SPANPROF_INIT(spanprof_span_options)

/* Zero means default, for every field. */
typedef struct spanprof_event_options {
    uint32_t struct_size;                 /* sizeof(spanprof_event_options) */
    uint32_t attribute_count;             /* of attributes */
    const spanprof_attribute *attributes; /* attribute_count of them, or NULL */
    uint64_t time_ns;                     /* default: now */
} spanprof_event_options;

#define SPANPROF_EVENT_OPTIONS_INIT SPANPROF_INIT(spanprof_event_options)

/* An instrumentation scope: the library whose work the spans are. Zero means none, for every field.
 */
typedef struct spanprof_tracer_options {
    uint32_t struct_size;     /* sizeof(spanprof_tracer_options) */
    uint32_t attribute_count; /* of attributes; those beyond 128 are dropped and counted */
    const char *name;
    const char *version;
    const char *schema_url;               /* of the conventions that the spans' attributes follow */
    const spanprof_attribute *attributes; /* attribute_count of them, or NULL */
} spanprof_tracer_options;

#define SPANPROF_TRACER_OPTIONS_INIT SPANPROF_INIT(spanprof_tracer_options)

/* The tracer for an instrumentation scope: NAME (NULL: "") and VERSION (NULL: ""), which become
 * InstrumentationScope of the exported spans. The same pair gives the same tracer, for the life of
 * the process; it is never freed. When there is no memory, it returns NULL, which means the default
 * tracer in every call. Since 0.1. */
SPANPROF_API spanprof_tracer *spanprof_tracer_get(const char *name, const char *version);

/* The same for a scope that has a schema url or attributes. OPTIONS: NULL is the default tracer.
 * Scopes are the same when all fields of OPTIONS are the same, with attributes in any order. The
 * call searches all scopes and copies OPTIONS for that: call it once for a library and keep the
 * result. The same scope gives the same tracer, which is never freed; NULL is returned when there
 * is no memory. Source: OpenTelemetry specification, trace/api.md, "Get a Tracer". Since 0.1. */
SPANPROF_API spanprof_tracer *spanprof_tracer_get_with(const spanprof_tracer_options *options);

/* Start a span. It is not made active: see spanprof_span_attach.
 * TRACER: NULL is the default tracer. OPTIONS: NULL is all defaults. The sampler (sampler.h)
 * decides whether it is sampled; by default a root is, and a child as its parent. An unsampled span
 * has a context of its own (so that it can be propagated) and records nothing. Returns the zero
 * handle when the SDK does not run, or memory is short (counted).  Since 0.1. */
SPANPROF_API spanprof_span spanprof_span_start(spanprof_tracer *tracer, const char *name,
                                               const spanprof_span_options *options);

/* Set an attribute. The same KEY again replaces its value, of whatever type. A NULL or empty KEY is
 * ignored.  Since 0.1. */
SPANPROF_API void spanprof_span_set_string(spanprof_span span, const char *key, const char *value);
SPANPROF_API void spanprof_span_set_int(spanprof_span span, const char *key, int64_t value);
SPANPROF_API void spanprof_span_set_double(spanprof_span span, const char *key, double value);
SPANPROF_API void spanprof_span_set_bool(spanprof_span span, const char *key, bool value);

/* Set ATTRIBUTE, of any type. NULL is ignored.  Since 0.1. */
SPANPROF_API void spanprof_span_set_attribute(spanprof_span span,
                                              const spanprof_attribute *attribute);

/* Set an attribute to an array of COUNT VALUES (NULL: of none). A NULL string in it reads as "".
 * The limit of a value's length holds for each string.  Since 0.1. */
SPANPROF_API void spanprof_span_set_string_array(spanprof_span span, const char *key,
                                                 const char *const *values, size_t count);
SPANPROF_API void spanprof_span_set_int_array(spanprof_span span, const char *key,
                                              const int64_t *values, size_t count);
SPANPROF_API void spanprof_span_set_double_array(spanprof_span span, const char *key,
                                                 const double *values, size_t count);
SPANPROF_API void spanprof_span_set_bool_array(spanprof_span span, const char *key,
                                               const bool *values, size_t count);

/* Add an event: something that happened at one moment. OPTIONS (NULL: none) has its attributes, of
 * which the last with the same key counts, and its time. Events stay in the order of the calls.
 * Since 0.1. */
SPANPROF_API void spanprof_span_add_event(spanprof_span span, const char *name,
                                          const spanprof_event_options *options);

/* Add a link. Links that are known when the span starts belong in its options. NULL is ignored.
 * Since 0.1. */
SPANPROF_API void spanprof_span_add_link(spanprof_span span, const spanprof_link *link);

/* Add the event "exception" for an error that happened during the span: TYPE (such as "ENOENT", or
 * a class), MESSAGE, and STACKTRACE become exception.type, exception.message, exception.stacktrace;
 * those that are NULL or empty are left out. OPTIONS is as for spanprof_span_add_event; its
 * attributes replace those three. The span's status stays what it is: an error that was handled is
 * not an error of the span. Source: OpenTelemetry specification, trace/api.md, "Record Exception";
 * semantic conventions, exceptions/exceptions-spans. Since 0.1. */
SPANPROF_API void spanprof_span_record_error(spanprof_span span, const char *type,
                                             const char *message, const char *stacktrace,
                                             const spanprof_event_options *options);

/* Replace the span's name. A name above 16 MiB changes nothing, nor does a call while memory is
 * short. Since 0.1. */
SPANPROF_API void spanprof_span_update_name(spanprof_span span, const char *name);

/* Whether SPAN records: false for an unsampled span, for all spans when they are neither exported
 * nor passed to processors, and for an ended or zero handle, which does not count as misuse here.
 * Call it before you collect attributes that would be discarded. Since 0.1. */
SPANPROF_API bool spanprof_span_is_recording(spanprof_span span);

/* Set the status. OK is final; UNSET is ignored; DESCRIPTION (NULL: none) is kept with ERROR only.
 * Source: OpenTelemetry specification, trace/api.md, "Set Status".  Since 0.1. */
SPANPROF_API void spanprof_span_set_status(spanprof_span span, spanprof_span_status status,
                                           const char *description);

/* The context of SPAN; all zero for the zero handle and an ended span.  Since 0.1. */
SPANPROF_API spanprof_context spanprof_span_context(spanprof_span span);

/* End SPAN now. The handle is dead afterwards. Contexts that were attached stay active until their
 * scopes end.  Since 0.1. */
SPANPROF_API void spanprof_span_end(spanprof_span span);

/* The same with an end at TIME_NS; 0 is now. A time before the span's start is replaced by its
 * start. Since 0.1. */
SPANPROF_API void spanprof_span_end_at(spanprof_span span, uint64_t time_ns);

/* spanprof_context_attach of the span's context. An ended or zero handle attaches "no span" and is
 * counted.  Since 0.1. */
SPANPROF_API spanprof_scope spanprof_span_attach(spanprof_span span);

/* SPANPROF_SPAN("render") { … } starts a span of the default tracer, makes it active, and ends both
 * on every way out of the block: its end, break, continue, return, goto, a C++ exception; not
 * longjmp. Break and continue leave this block, not a loop around it. Needs gcc or clang.  Since
 * 0.1. */
#if defined(__GNUC__)
typedef struct spanprof_span_block {
    spanprof_span span;
    spanprof_scope scope;
    int done;
} spanprof_span_block;

static inline spanprof_span_block spanprof_span_block_enter(const char *name)
{
    spanprof_span_block block;
    block.span = spanprof_span_start(NULL, name, NULL);
    block.scope = spanprof_span_attach(block.span);
    block.done = 0;
    return block;
}

static inline void spanprof_span_block_leave(spanprof_span_block *block)
{
    spanprof_scope_detach(&block->scope);
    spanprof_span_end(block->span);
}

#define SPANPROF_SPAN(name)               SPANPROF_SPAN_BLOCK(name, __COUNTER__)
#define SPANPROF_SPAN_BLOCK(name, unique) SPANPROF_SPAN_BLOCK_(name, unique)
#define SPANPROF_SPAN_BLOCK_(name, unique)                                                         \
    for (spanprof_span_block spanprof_span_block_##unique                                          \
         __attribute__((cleanup(spanprof_span_block_leave))) = spanprof_span_block_enter(name);    \
         !spanprof_span_block_##unique.done; spanprof_span_block_##unique.done = 1)
#endif

SPANPROF_END_DECLS

#endif
