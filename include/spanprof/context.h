/* SPDX-License-Identifier: Apache-2.0 */
/* The active context of a thread: which span its work belongs to.
 *
 * A context is plain data: copy it, store it in a task, send it to another thread. It never points
 * at a span, so no pointer dangles when the span ends. Attaching makes it the active context of the
 * calling thread until the scope is detached.
 *
 * Threads: any; each call acts on the calling thread.  Signals: not safe (a handler of the host
 * must not attach). Fork: the child keeps the active contexts of the thread that forked. All calls
 * work, at the same price, while the SDK is not started. */
#ifndef SPANPROF_CONTEXT_H
#define SPANPROF_CONTEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <spanprof/status.h>

SPANPROF_BEGIN_DECLS

/* W3C trace-flags (W3C Trace Context level 2, section 3.2.2.5). */
#define SPANPROF_TRACE_FLAG_SAMPLED 0x01
#define SPANPROF_TRACE_FLAG_RANDOM  0x02

/* The tracestate, the baggage and the sample attributes of a context: a handle into a bounded
 * table, checked by generation (propagation.h). The zero handle carries nothing. */
typedef struct spanprof_carrier {
    uint32_t slot;
    uint32_t generation;
} spanprof_carrier;

/* 64 bytes. All zero is "no span". A context is valid when trace_id and span_id are both non-zero;
 * a context that is not valid may still carry baggage. */
typedef struct spanprof_context {
    uint8_t trace_id[16];          /* network byte order */
    uint8_t span_id[8];            /* network byte order */
    uint8_t local_root_span_id[8]; /* this trace's first span in this process; zero: remote */
    uint8_t trace_flags;           /* SPANPROF_TRACE_FLAG_… */
    uint8_t remote;       /* 1: came from another process, and belongs to no span of this one */
    uint8_t reserved0[6]; /* zero */
    spanprof_carrier carrier;
    uint8_t reserved1[16]; /* zero */
} spanprof_context;

/* What an attach returns and its detach takes. All zero: no scope; detaching it is a counted
 * no-op. */
typedef struct spanprof_scope {
    uint32_t thread; /* the slot of the owner, plus one */
    uint32_t depth;
    uint64_t serial;
} spanprof_scope;

/* Make CONTEXT, which is copied, the active context of this thread. NULL, or a context that is not
 * valid, means "no span"; baggage of the latter is active nevertheless. Returns the scope to
 * detach. When there is no memory for this thread's state, returns the zero scope: the failure is
 * counted, the active context stays what it was, and samples are unknown until this thread's next
 * attach or detach. Does not allocate after the first call on a thread, except when scopes nest
 * deeper than ever before (32, 64, 128, …). Since 0.1. */
SPANPROF_API spanprof_scope spanprof_context_attach(const spanprof_context *context);

/* End SCOPE and set it to zero. In order: the context that was active before its attach is active
 * again. Out of order (an inner scope still lives): SCOPE leaves the chain, the active context
 * stays, and when the inner scope ends, SCOPE is skipped. A second time, or with the zero scope or
 * NULL: a no-op, counted in spanprof_stats. On another thread than that of the attach:
 * SPANPROF_ERROR_OTHER_THREAD. The calling thread's context is untouched; the owner's samples link
 * to nothing (unknown) until it next attaches or detaches. SCOPE leaves its chain then, or when the
 * owner starts a span, which does not become a child of SCOPE's span. Since 0.1. */
SPANPROF_API spanprof_status spanprof_scope_detach(spanprof_scope *scope);

/* The active context of this thread; its ids are all zero when there is no span, all of it when
 * nothing is attached.  Since 0.1. */
SPANPROF_API spanprof_context spanprof_context_current(void);

/* Set the context for samples of threads that have no context of their own: CONTEXT, which is
 * copied, for all threads of this process. It is meant for a program that is one piece of work as a
 * whole: a batch job, a compiler. NULL, or a context that is not valid: such samples have no link,
 * as at first. Samples under an attached context, or under another tracer's, keep theirs; with a
 * context that is unsampled or remote they have no link. It is not the parent of new spans, and
 * spanprof_context_current does not return it. It also applies to samples of up to half a second
 * before the call: set it once, after spanprof_start. A forked child has it as well. Since 0.1. */
SPANPROF_API void spanprof_context_set_default(const spanprof_context *context);

/* Set an attribute of samples that are taken under CONTEXT: KEY, such as "tenant" or "http.route",
 * gets VALUE; NULL removes KEY. Use attributes with few values that many requests share, because
 * backends make a series for each value. They are exported only if SPANPROF_SAMPLE_ATTRIBUTES names
 * KEY; readers of OTEP 4947 outside the process find them in any case. They are in no header, so
 * other services do not get them, and they are not attributes of spans.
 *
 * Set them once for each request: on the context that is attached, or on the context that a span is
 * started under, because a span takes them from its parent's context. A scope that is attached
 * already keeps its attributes. The context names an entry of a bounded table, as with baggage
 * (propagation.h): a context that is stored while 16,384 other entries are made loses its
 * attributes, and never gets those of another. Bounds: 8 attributes and 612 bytes in all a context,
 * each 2 bytes more than its value; 256 keys a process, of 255 bytes; a longer VALUE is cut after
 * 255 bytes, between characters (cut_attributes in spanprof_stats). Bytes that are not UTF-8 become
 * U+FFFD. Returns ERROR_INVALID_ARGUMENT for a key that is empty, too long, not UTF-8, or the SDK's
 * own (thread.id, thread.name, spanprof.…), and when the context has no room; ERROR_NO_MEMORY, also
 * when the process has its 256 keys. CONTEXT is then unchanged, and an attribute without room is
 * counted (dropped_attributes). Since 0.1. */
SPANPROF_API spanprof_status spanprof_context_set_attribute(spanprof_context *context,
                                                            const char *key, const char *value);

/* Read a W3C traceparent header (NUL-terminated; blanks around it are allowed) into OUT, with
 * TRACESTATE (NULL: none). Returns whether it was valid; OUT is all zero when it was not. OUT is
 * remote, and starts a local root when a span is started under it. TRACESTATE travels with OUT, as
 * spanprof_propagation_extract says; an invalid one does not make TRACEPARENT invalid.
 * OTEL_PROPAGATORS has no effect here. Source: W3C Trace Context level 2, section 3.2. Signals:
 * safe without a TRACESTATE. Since 0.1. */
SPANPROF_API bool spanprof_context_extract(spanprof_context *out, const char *traceparent,
                                           const char *tracestate);

/* Write CONTEXT as a traceparent, version 00, 55 characters and a NUL, into TRACEPARENT.
 * Returns 55, or 0 when CONTEXT is NULL or not valid, and TRACEPARENT is then "".  Signals: safe.
 * Since 0.1. */
SPANPROF_API size_t spanprof_context_inject(const spanprof_context *context, char traceparent[56]);

SPANPROF_END_DECLS

#endif
