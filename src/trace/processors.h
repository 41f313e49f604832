/* SPDX-License-Identifier: Apache-2.0 */
/* The span processors (OpenTelemetry specification, trace/sdk.md, "Span processor"): they are
 * called when a recording span starts and ends.
 *
 *     start:  correlation ──► registered, in order ──► the caller gets the handle
 *     end:                    registered, in order ──► the session's last
 *
 * Correlation and the last one belong to the SDK: they get the record itself and need no lock for
 * it. The registered ones belong to the application (include/spanprof/processor.h): they get a
 * read-only view of the span, and at its start also the handle. The last one takes the record, and
 * releases it when it is exported or dropped.
 *
 * | operation                 | setup | any thread | forked child |                                         |
 * | open, flush, close        |  yes  |            |              | serialized by the SDK                   |
 * | add, on_start, on_end     |       |    yes     |              | add: a lock; the others: none           |
 * | calling, leave            |       |    yes     |     yes      | of the calling thread; none             |
 * | after_fork                |       |            |     yes      | touches no lock of the parent           |
 */
#ifndef SP_TRACE_PROCESSORS_H
#define SP_TRACE_PROCESSORS_H

#include "core/atomic.h"
#include "trace/span_data.h"

typedef struct sp_span_processor sp_span_processor;

/* A processor of the SDK itself. Each function may be NULL; it must not block. */
struct sp_span_processor {
    /* SPAN has started, and no other code has its handle yet. CONTEXT is the span's own. The
     * function adds attributes by sp_span_data_set_id. */
    void (*on_start)(sp_span_processor *self, sp_span_data *span, const spanprof_context *context);
    /* DATA is the finished span, sampled or not. The processor owns it now, and releases it with
     * sp_span_data_release. */
    void (*on_end)(sp_span_processor *self, sp_span_data *data);
};

/* Set the attribute KEY of SPAN to the 16 hex digits of ID. Only inside on_start. No limit applies.
 * KEY is borrowed: valid UTF-8 that lives as long as the process. */
void sp_span_data_set_id(sp_span_data *span, const char *key, const uint8_t id[8]);

/* --- registered.c: those of the application --------------------------------------------------- */

typedef struct sp_registered sp_registered;

/* The first of the processors that are called for spans at the moment, or NULL. */
extern __attribute__((visibility("hidden"))) _Atomic(sp_registered *) sp_registered_active;

/* Whether there is a processor to call. Else sp_registered_on_start and _on_end need not be
 * called. */
static inline bool sp_registered_any(void)
{
    return sp_load_relaxed(&sp_registered_active) != NULL;
}

/* Report that DATA, whose handle is SPAN, has started under PARENT. A callback may end the span, so
 * DATA must not be used afterwards. This and sp_registered_on_end return false in a child that a
 * callback forked, because DATA and SPAN belong to the parent process. */
bool sp_registered_on_start(sp_span_data *data, spanprof_span span, const spanprof_context *parent);
/* Report that DATA has ended. */
bool sp_registered_on_end(sp_span_data *data);

/* Whether the calling thread is inside a callback. */
bool sp_registered_calling(void);
/* The process exits on the calling thread, so a callback that this thread is inside of will not
 * return. No other thread waits for that callback any more. */
void sp_registered_leave(void);

/* From now on the processors that were added are called for spans. */
void sp_registered_open(void);
/* Call flush of each processor, so that it finishes its work on reported spans by the monotonic
 * DEADLINE_NS. Returns the first error of a processor. */
spanprof_status sp_registered_flush(uint64_t deadline_ns);
/* Report no more spans to the processors, wait for callbacks under way, shut each processor down,
 * forget them all. ERROR_TIMEOUT when a callback was still under way at DEADLINE_NS, else the first
 * error of a processor. */
spanprof_status sp_registered_close(uint64_t deadline_ns);
/* In a forked child: forget the processors if the SDK ran in the parent. Else they stay, for the
 * next start. */
void sp_registered_after_fork(void);

#endif
