/* SPDX-License-Identifier: Apache-2.0 */
/* The span processors (OpenTelemetry specification, trace/sdk.md, "Span processor"): they are
 * called when a recording span starts and ends.
 *
 *     start:  correlation ──► registered, in order ──► the caller gets the handle
 *     end:                    registered, in order ──► the session's last
 *
 * Correlation and the last one are ours: they see the record itself and need no lock for it. The
 * registered ones are the application's (include/spanprof/processor.h): they see a handle, then a
 * view. The last one takes the record, and releases it when it is exported or dropped.
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

/* One of ours. Each may be NULL. They must not block. */
struct sp_span_processor {
    /* SPAN has started, and no other code has its handle yet. CONTEXT is its own. Attributes are
     * added by sp_span_data_set_id. */
    void (*on_start)(sp_span_processor *self, sp_span_data *span, const spanprof_context *context);
    /* DATA is the finished span, sampled or not, and now the processor's: it releases it with
     * sp_span_data_release. */
    void (*on_end)(sp_span_processor *self, sp_span_data *data);
};

/* Add or replace the attribute KEY of SPAN, whose value is the 16 hex digits of ID, inside
 * on_start, whatever the limit. KEY is borrowed and has to be valid UTF-8 that lives as long as the
 * process. */
void sp_span_data_set_id(sp_span_data *span, const char *key, const uint8_t id[8]);

/* --- registered.c: those of the application --------------------------------------------------- */

typedef struct sp_registered sp_registered;

/* The first of the processors that are called for spans at the moment, or NULL. */
extern __attribute__((visibility("hidden"))) _Atomic(sp_registered *) sp_registered_told;

/* Only then do the two below have anything to do. */
static inline bool sp_registered_any(void)
{
    return sp_load_relaxed(&sp_registered_told) != NULL;
}

/* DATA, whose handle is SPAN, has started under PARENT. A callback may end it: DATA is not to be
 * used afterwards. Both return false in a child that a callback forked: DATA, and SPAN, are its
 * parent's. */
bool sp_registered_on_start(sp_span_data *data, spanprof_span span, const spanprof_context *parent);
/* DATA has ended. */
bool sp_registered_on_end(sp_span_data *data);

/* Whether the calling thread is inside a callback. */
bool sp_registered_calling(void);
/* The process exits on the calling thread, so a callback that this thread is inside of will not
 * return. No other thread waits for that callback any more. */
void sp_registered_leave(void);

/* From now on the processors that were added are called for spans. */
void sp_registered_open(void);
/* Have each finish what it was told, by the monotonic DEADLINE_NS. The first error that one of them
 * returns. */
spanprof_status sp_registered_flush(uint64_t deadline_ns);
/* Report no more spans to them, wait for callbacks under way, shut each down, forget them.
 * ERROR_TIMEOUT when a callback was still under way at DEADLINE_NS, else the first error that one
 * of them returns. */
spanprof_status sp_registered_close(uint64_t deadline_ns);
/* Forget those of a parent that was running. */
void sp_registered_after_fork(void);

#endif
