/* SPDX-License-Identifier: Apache-2.0 */
/* Samplers decide at a span's start whether it is recorded and sampled. Samplers that
 * OTEL_TRACES_SAMPLER names do not need this header. In code, spanprof_options.sampler points to a
 * sampler, which is a struct, or a tree of them:
 *
 *     spanprof_sampler ratio = SPANPROF_SAMPLER_INIT, sampler = SPANPROF_SAMPLER_INIT;
 *     ratio.kind = SPANPROF_SAMPLER_TRACE_ID_RATIO;
 *     ratio.ratio = 0.01;
 *     sampler.root = &ratio;       // sampler.kind is PARENT_BASED: children do as their parents
 *     options.sampler = &sampler;  // all of it is copied by spanprof_start
 *
 * Source: OpenTelemetry specification, trace/sdk.md, "Sampling". */
#ifndef SPANPROF_SAMPLER_H
#define SPANPROF_SAMPLER_H

#include <spanprof/tracer.h>

SPANPROF_BEGIN_DECLS

typedef enum spanprof_sampling_decision {
    SPANPROF_SAMPLING_DROP = 0, /* the span has a context, and records nothing */
    /* Span processors get it; it is not exported, and samples are not linked to it. */
    SPANPROF_SAMPLING_RECORD_ONLY = 1,
    SPANPROF_SAMPLING_RECORD_AND_SAMPLE = 2,
} spanprof_sampling_decision;

/* The data of a span that is about to start, for the sampler. Everything is borrowed until the
 * sampler returns. */
typedef struct spanprof_sampling_request {
    uint32_t struct_size; /* what this library fills in; fields are only ever appended */
    spanprof_span_kind kind;
    const spanprof_context *parent; /* never NULL; not valid for the root of a trace */
    const uint8_t *trace_id;        /* 16 bytes: the parent's, or new */
    const char *trace_state;        /* of the parent; "" for none */
    const char *name;               /* never NULL */
    const spanprof_attribute
        *attributes;            /* attribute_count of them, those of spanprof_span_options */
    const spanprof_link *links; /* link_count of them */
    uint32_t attribute_count;
    uint32_t link_count;
} spanprof_sampling_request;

/* What a sampler may set besides its decision. All is zero before the call, which changes nothing.
 * The sampler must not write after struct_size bytes. */
typedef struct spanprof_sampling_result {
    uint32_t struct_size;     /* what this library reads */
    uint32_t attribute_count; /* of attributes */
    /* Added to the span. An attribute of spanprof_span_options with the same key replaces the one
     * here. The library copies them after the sampler has returned, so they must stay valid until
     * the start of the span returns. */
    const spanprof_attribute *attributes;
    /* NULL: keep the parent's. "": none. Else a W3C tracestate that replaces it; it must stay valid
     * as long as the attributes. If it is not valid, the library logs one warning and keeps the
     * parent's. */
    const char *trace_state;
} spanprof_sampling_result;

/* A sampler of the application's own. Called once for each span that it must decide on, by the
 * thread that starts the span, with no lock held; so several threads may call it at once. It must
 * not block, throw, be cancelled, or start spans itself. USER is the pointer given with it. A
 * thread that is just starting a span may call it after spanprof_stop, so function and USER have to
 * live as long as the process. A result that is not a decision means DROP. */
typedef spanprof_sampling_decision (*spanprof_sampler_function)(
    const spanprof_sampling_request *request, spanprof_sampling_result *result, void *user);

typedef enum spanprof_sampler_kind {
    SPANPROF_SAMPLER_PARENT_BASED = 0, /* one sampler for each kind of parent */
    SPANPROF_SAMPLER_ALWAYS_ON = 1,
    SPANPROF_SAMPLER_ALWAYS_OFF = 2,
    /* spanprof_ratio_samples decides, whatever the parent's flag says. */
    SPANPROF_SAMPLER_TRACE_ID_RATIO = 3,
    SPANPROF_SAMPLER_CALLBACK = 4, /* function decides */
} spanprof_sampler_kind;

/* Zero means default, for every field: a sampler of all zeros is parentbased_always_on. */
typedef struct spanprof_sampler spanprof_sampler;
struct spanprof_sampler {
    uint32_t struct_size; /* sizeof(spanprof_sampler) */
    spanprof_sampler_kind kind;
    double ratio;                       /* of TRACE_ID_RATIO: 0 to 1 */
    spanprof_sampler_function function; /* of CALLBACK */
    void *user;
    /* Of PARENT_BASED. Any may be parent-based itself, 16 deep in all. */
    const spanprof_sampler *root;           /* no parent (always on) */
    const spanprof_sampler *remote_sampled; /* a parent in another process, sampled (always on) */
    const spanprof_sampler *remote_not_sampled; /* (always off) */
    const spanprof_sampler *local_sampled;      /* a parent in this process (always on) */
    const spanprof_sampler *local_not_sampled;  /* (always off) */
};

#define SPANPROF_SAMPLER_INIT SPANPROF_INIT(spanprof_sampler)

/* Whether the trace with TRACE_ID (16 bytes) is among the share RATIO of all traces, for samplers
 * that have more than one ratio: its last 56 bits, as a number, are among the RATIO highest. The
 * result is the same in every process, and if it is true for a ratio, it is true for each higher
 * one. A RATIO of 1 or more samples all traces; 0 or less, and NaN, sample none. Threads: any.
 * Signals: safe. Since 0.1. */
SPANPROF_API bool spanprof_ratio_samples(double ratio, const uint8_t trace_id[16]);

SPANPROF_END_DECLS

#endif
