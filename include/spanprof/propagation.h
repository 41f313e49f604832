/* SPDX-License-Identifier: Apache-2.0 */
/* Contexts between processes: W3C traceparent and tracestate (Trace Context level 2), W3C baggage,
 * through any map of headers.
 *
 * Baggage is name-value pairs of the application that travel with a context, to all services that
 * the request reaches. Every program that reads the headers can read the baggage, so put no secrets
 * into it. It is not a part of the spans.
 *
 * Contexts stay plain data: tracestate and baggage are in a table of bounded size, and a context
 * names its entry. A context that is stored carries its tracestate and baggage for as long as the
 * table has room, that is for the next 16,384 different ones or 16 MiB of them; while a span with
 * that context lives, its entry stays. After that it carries nothing; it never carries the content
 * of another context.
 *
 * CONTEXT NULL means the active context of the calling thread, in every call here. Strings are
 * NUL-terminated and copied. Threads: any. Signals: not safe. Fork: the child keeps what contexts
 * carry. All calls work while the SDK is not started; OTEL_PROPAGATORS has an effect from the first
 * spanprof_start on. */
#ifndef SPANPROF_PROPAGATION_H
#define SPANPROF_PROPAGATION_H

#include <spanprof/context.h>

SPANPROF_BEGIN_DECLS

/* The value of one header: LENGTH bytes at DATA; no NUL is needed. */
typedef struct spanprof_header_value {
    const char *data;
    size_t length;
} spanprof_header_value;

/* Set *VALUE to the value of the INDEXth header (from 0) called NAME, compared without case. It is
 * borrowed until the getter is called again or the extract returns. Returns false when there are
 * not that many headers. Called several times for each name; must return (no longjmp, no
 * exception). */
typedef bool (*spanprof_header_getter)(void *user, const char *name, uint32_t index,
                                       spanprof_header_value *value);

/* Make VALUE, which is borrowed for the call, the only header called NAME (lower case). Called at
 * most once for each name; must return, and must not fork. */
typedef void (*spanprof_header_setter)(void *user, const char *name, const char *value);

/* Read the headers that OTEL_PROPAGATORS names (tracecontext,baggage) into OUT. Returns whether
 * there was a valid trace context; OUT is then remote, as after spanprof_context_extract. Without
 * one, OUT has no ids, and still carries the baggage: a span started under it begins a new trace.
 * Two traceparent headers count as none. Several tracestate or baggage headers are one list. A
 * tracestate that is not valid, or has more than 32 members, is dropped as a whole; if it has more
 * than 1,024 characters, members are left out as the specification says. Members of baggage that
 * are not valid, and those after 180 members or 8,192 bytes, are left out. Source: W3C Trace
 * Context level 2; W3C Baggage. Since 0.1. */
SPANPROF_API bool spanprof_propagation_extract(spanprof_context *out, spanprof_header_getter get,
                                               void *user);

/* Call SET with each header of CONTEXT that OTEL_PROPAGATORS names: traceparent and tracestate when
 * CONTEXT is valid, baggage when there is some. Returns how many headers were set. Since 0.1. */
SPANPROF_API uint32_t spanprof_propagation_inject(const spanprof_context *context,
                                                  spanprof_header_setter set, void *user);

/* Set OUT to CONTEXT with the baggage KEY set to VALUE. CONTEXT itself, spans, and the active
 * context do not change. OUT may be CONTEXT. KEY is a token of HTTP (letters, digits,
 * !#$%&'*+-.^_`|~). VALUE is any UTF-8, NULL reads as "". METADATA (NULL or "": none) are
 * properties in the header's own form, "a=1;b". Returns ERROR_INVALID_ARGUMENT when KEY or METADATA
 * is not allowed in a header, or the baggage would exceed 180 members or 8,192 bytes, and
 * ERROR_NO_MEMORY; OUT is then a copy of CONTEXT. Since 0.1. */
SPANPROF_API spanprof_status spanprof_baggage_set(spanprof_context *out,
                                                  const spanprof_context *context, const char *key,
                                                  const char *value, const char *metadata);

/* Set OUT to CONTEXT without the baggage KEY, or, if KEY is NULL, without any baggage. Returns OK
 * also when there was none, and ERROR_NO_MEMORY; OUT is then a copy of CONTEXT. Since 0.1. */
SPANPROF_API spanprof_status spanprof_baggage_remove(spanprof_context *out,
                                                     const spanprof_context *context,
                                                     const char *key);

/* Write the baggage KEY of CONTEXT, decoded, as UTF-8 into VALUE, which has *SIZE bytes. *SIZE
 * becomes the size of the value with its NUL. Bytes that are not UTF-8, and NULs, read as U+FFFD.
 * VALUE NULL asks for the size only. Returns ERROR_NOT_FOUND, with *SIZE 0; ERROR_INVALID_ARGUMENT
 * when VALUE is too small; ERROR_NO_MEMORY. VALUE is not changed then. Since 0.1. */
SPANPROF_API spanprof_status spanprof_baggage_get(const spanprof_context *context, const char *key,
                                                  char *value, size_t *size);

/* KEY, VALUE (decoded), and METADATA ("" for none) are borrowed for the call. Returns false to
 * stop. Must return, and must not fork. */
typedef bool (*spanprof_baggage_visitor)(void *user, const char *key, const char *value,
                                         const char *metadata);

/* Call VISIT once for each key of CONTEXT's baggage, in the order of the header; of members with
 * the same key, the last one counts. Returns ERROR_NO_MEMORY when memory was short. Since 0.1. */
SPANPROF_API spanprof_status spanprof_baggage_each(const spanprof_context *context,
                                                   spanprof_baggage_visitor visit, void *user);

SPANPROF_END_DECLS

#endif
