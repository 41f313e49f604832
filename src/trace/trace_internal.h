/* SPDX-License-Identifier: Apache-2.0 */
/* Declarations shared by the files of this folder, under the name of the file that defines them. */
#ifndef SP_TRACE_TRACE_INTERNAL_H
#define SP_TRACE_TRACE_INTERNAL_H

#include <string.h>

#include "trace/cache.h"
#include "trace/pool.h"
#include "trace/provider.h"
#include "trace/sampling.h"
#include "trace/span_memory.h"

/* --- provider.c ------------------------------------------------------------------------------- */

/* The state of one run, from spanprof_start to spanprof_stop. It is never changed and never freed,
 * so that a span that outlives its session may read it. */
typedef struct sp_session {
    sp_tracer_config config;
    sp_sampling sampling;
    sp_span_processor *correlation; /* may be NULL */
    sp_span_processor *last;        /* gets the ended spans */
    struct sp_session *older;
} sp_session;

/* The session that runs, or NULL. Its release pairs with an acquire by every start of a span. */
extern __attribute__((visibility("hidden"))) _Atomic(sp_session *) sp_session_current;
/* How often this process was forked since the library was loaded into its ancestor: a caller of the
 * application's code detects by it that the code returned in a forked child. */
extern __attribute__((visibility("hidden"))) uint32_t sp_tracer_forks;
extern sp_pool sp_record_pool; /* of sp_span_record */
extern sp_pool sp_light_pool;  /* of bare sp_slot: spans that record nothing */

/* Whether sampled spans record: they are exported, or a processor is registered. */
static inline bool sp_session_records(const sp_session *session)
{
    return session->config.record || sp_registered_any();
}

static inline bool sp_context_is_valid(const spanprof_context *context)
{
    static const spanprof_context none;
    return memcmp(context->trace_id, none.trace_id, sizeof none.trace_id) != 0 &&
           memcmp(context->span_id, none.span_id, sizeof none.span_id) != 0;
}

/* --- correlation.c ---------------------------------------------------------------------------- */

/* The attribute by which a trace view finds a span's profile; its value is the span's own id. */
#define SP_PROFILE_ID_KEY "pyroscope.profile.id"

extern sp_span_processor sp_correlation_roots; /* marks local roots */
extern sp_span_processor sp_correlation_all;   /* marks every span */

/* --- span_queue.c ----------------------------------------------------------------------------- */

extern sp_span_processor sp_batch_processor;
void sp_batch_after_fork(void);

/* --- tracer.c --------------------------------------------------------------------------------- */

struct spanprof_tracer {
    sp_instrumentation_scope scope;
    sp_span_memory memory; /* what scope points at */
    spanprof_tracer *next;
};

extern spanprof_tracer sp_tracer_default;
void sp_tracer_table_after_fork(void);

/* --- span_clock.c ----------------------------------------------------------------------------- */

/* The number to add to CLOCK_MONOTONIC to get the time since the epoch. It is measured once a
 * second. MONOTONIC_NS is now. */
uint64_t sp_span_clock_offset(uint64_t monotonic_ns);

#endif
