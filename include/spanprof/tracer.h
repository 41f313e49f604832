/* SPDX-License-Identifier: Apache-2.0 */
/* Spans. A span is a handle of 16 bytes, passed by value: copy it freely. The zero handle and the handle of an ended span are
 * safe everywhere: the call is a no-op, counted in spanprof_stats as a misuse. The zero handle counts only while the SDK runs, for
 * it is what a start returns otherwise; an unsampled span has a handle like any other.
 *
 * Strings are NUL-terminated UTF-8 and copied. Bytes that are not UTF-8 are replaced by U+FFFD. NULL names and values read as "".
 * Threads: any, and several may use one span at once.  Signals: not safe.
 * Fork: spans of the parent are the parent's; the child may start its own after spanprof_start. */
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
} spanprof_attribute_type;

/* One attribute, as calls take it: KEY and a string VALUE are copied by the call. */
typedef struct spanprof_attribute {
    const char *key;
    spanprof_attribute_type type;
    union {
        const char *string_value;
        int64_t int_value;
        double double_value;
        bool bool_value;
    } value;
} spanprof_attribute;

/* A link to another span, as calls take it. */
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

#define SPANPROF_SPAN_OPTIONS_INIT                                                                 \
    {                                                                                              \
        .struct_size = sizeof(spanprof_span_options)                                               \
    }

/* The tracer for an instrumentation scope: NAME (NULL: "") and VERSION (NULL: ""), which become InstrumentationScope of the
 * exported spans. The same pair gives the same tracer, for the life of the process; it is never freed. NULL, which every call
 * takes for the default tracer, is returned when there is no memory.  Since 0.1. */
SPANPROF_API spanprof_tracer *spanprof_tracer_get(const char *name, const char *version);

/* Start a span. It is not made active: see spanprof_span_attach.
 * TRACER: NULL is the default tracer. OPTIONS: NULL is all defaults; with struct_size 0 they are ignored, with one
 * warning. A child of an unsampled parent is unsampled: it has a context of its own (so that it can be propagated) and records
 * nothing.
 * Returns the zero handle when the SDK does not run, or memory is short (counted).  Since 0.1. */
SPANPROF_API spanprof_span spanprof_span_start(spanprof_tracer *tracer, const char *name,
                                               const spanprof_span_options *options);

/* Set an attribute. The same KEY again replaces its value. A NULL or empty KEY is ignored. More attributes than
 * OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT (128), and keys or values above 16 MiB, are counted as dropped_attributes_count.  Since 0.1. */
SPANPROF_API void spanprof_span_set_string(spanprof_span span, const char *key, const char *value);
SPANPROF_API void spanprof_span_set_int(spanprof_span span, const char *key, int64_t value);
SPANPROF_API void spanprof_span_set_double(spanprof_span span, const char *key, double value);
SPANPROF_API void spanprof_span_set_bool(spanprof_span span, const char *key, bool value);

/* Set the status. OK is final; UNSET is ignored; DESCRIPTION (NULL: none) is kept with ERROR only.
 * Source: OpenTelemetry specification, trace/api.md, "Set Status".  Since 0.1. */
SPANPROF_API void spanprof_span_set_status(spanprof_span span, spanprof_span_status status,
                                           const char *description);

/* The context of SPAN; all zero for the zero handle and an ended span.  Since 0.1. */
SPANPROF_API spanprof_context spanprof_span_context(spanprof_span span);

/* End SPAN now. The handle is dead afterwards. Contexts that were attached stay active until their scopes end.  Since 0.1. */
SPANPROF_API void spanprof_span_end(spanprof_span span);

/* spanprof_context_attach of the span's context. An ended or zero handle attaches "no span" and is counted.  Since 0.1. */
SPANPROF_API spanprof_scope spanprof_span_attach(spanprof_span span);

/* SPANPROF_SPAN("render") { … } starts a span of the default tracer, makes it active, and ends both on every way out of the
 * block: its end, break, continue, return, goto, a C++ exception; not longjmp. Break and continue leave this block, not a loop
 * around it. Needs gcc or clang.  Since 0.1. */
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
