/* SPDX-License-Identifier: Apache-2.0 */
/* The tracer provider: the one per process that spanprof_start sets up, its finished-span queue,
 * and its counters. */
#ifndef SP_TRACE_PROVIDER_H
#define SP_TRACE_PROVIDER_H

#include <spanprof/sampler.h>
#include "context/cpu_time.h"
#include "core/atomic.h"
#include "trace/processors.h"

/* How much of each a span keeps (OpenTelemetry specification, trace/sdk.md, "Span limits"). */
typedef struct sp_span_limits {
    uint32_t attributes;       /* OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT, OTEL_ATTRIBUTE_COUNT_LIMIT */
    uint32_t value_length;     /* characters: OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT,
                                  OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT; UINT32_MAX: none */
    uint32_t events;           /* OTEL_SPAN_EVENT_COUNT_LIMIT */
    uint32_t links;            /* OTEL_SPAN_LINK_COUNT_LIMIT */
    uint32_t event_attributes; /* OTEL_EVENT_ATTRIBUTE_COUNT_LIMIT, of one event */
    uint32_t link_attributes;  /* OTEL_LINK_ATTRIBUTE_COUNT_LIMIT, of one link */
} sp_span_limits;

/* The defaults. */
#define SP_SPAN_LIMITS_INIT                                                                        \
    {                                                                                              \
        .attributes = 128, .value_length = UINT32_MAX, .events = 128, .links = 128,                \
        .event_attributes = 128, .link_attributes = 128                                            \
    }

typedef struct sp_tracer_config {
    uint32_t queue_spans; /* OTEL_BSP_MAX_QUEUE_SIZE */
    sp_span_limits limits;
    const spanprof_sampler *sampler; /* borrowed by sp_tracer_start; NULL: parentbased_always_on */
    bool record; /* false: nothing is queued, because no exporter takes spans; they record for
                    registered processors only */
    /* Which spans get the string attribute pyroscope.profile.id; its value is the span's own id
     * (docs/design/span-context.md). */
    bool mark_roots; /* local roots */
    bool mark_all;   /* every span */
    /* Which spans get the int attribute spanprof.cpu_time_ns (docs/design/cpu-time.md); none
     * without record. */
    sp_cpu_time cpu_time;
    /* Called (any thread) each time the number of spans in the queue rises to wake_spans; must not
     * block. May be NULL. A thread that is just ending a span may still call it after
     * sp_tracer_stop, so wake_user has to live as long as the process. */
    uint32_t wake_spans;
    void (*wake)(void *user);
    void *wake_user;
} sp_tracer_config;

/* Counts since sp_tracer_start (misuse_dead_span: since the process began). If record is true, and
 * while no thread is inside a call: spans_started = spans_ended + live spans; spans_ended = taken +
 * dropped_queue_full + not_exported + sp_tracer_queued(). */
typedef struct sp_tracer_counters {
    uint64_t spans_started; /* sampled ones */
    uint64_t spans_ended;
    uint64_t spans_unsampled; /* also those that are recorded only */
    uint64_t dropped_queue_full;
    uint64_t dropped_memory; /* spans that could not be started */
    uint64_t not_exported;   /* sampled, but there is no exporter */
    uint64_t foreign_started;
    uint64_t foreign_ended;
    uint64_t foreign_evicted; /* removed from the table while they lived, or not added */
    uint64_t misuse_dead_span;
} sp_tracer_counters;

/* The counters live with the threads, so that counting costs no locked instruction; this adds them
 * up. Any thread. */
void sp_tracer_counters_get(sp_tracer_counters *out);

/* Setup only (spanprof_start). CONFIG is copied. ERROR_ALREADY_STARTED, ERROR_NO_MEMORY. */
spanprof_status sp_tracer_start(const sp_tracer_config *config);
/* New spans are no-ops from here on; live ones may still end, and are discarded. What is queued
 * stays to be taken. */
void sp_tracer_stop(void);
/* In a forked child: forget live spans, empty the queue, reseed ids, behave as stopped. Touches no
 * lock of the parent. */
void sp_tracer_after_fork(void);
/* Called when a span starts without a session. A forked child logs this once. Any thread. */
void sp_tracer_say_absent(void);

/* Take up to MAXIMUM finished spans, oldest first, into OUT; returns how many. One thread at a time
 * (the exporter thread). */
size_t sp_tracer_take(sp_span_data **out, size_t maximum);
/* Spans waiting to be taken. Any thread. */
size_t sp_tracer_queued(void);
/* Give DATA back, from any thread. NULL does nothing. */
void sp_span_data_release(sp_span_data *data);

#endif
