/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration of one run of the SDK, from options and environment (contract:
 * include/spanprof/sdk.h). Setup only. */
#ifndef SP_SDK_CONFIG_H
#define SP_SDK_CONFIG_H

#include "alloc/block_samples.h"
#include "cpu/cpu_engine.h"
#include "export/exporter.h"
#include "export/pull_server.h"
#include "symbol/symbolizer.h"
#include "trace/provider.h"
#include "wall/wall.h"

typedef struct sp_config {
    sp_engine_config cpu_engine;
    bool cpu, wall, alloc, heap, lock; /* SPANPROF_PROFILES lists them */
    sp_alloc_config allocations;
    uint32_t lock_period_ns; /* between two samples of waits for locks, on average */
    sp_wall_config wall_profiler;
    double cpu_budget;       /* share of the application's CPU time that ticks may take; 0: any */
    char *sample_attributes; /* a list of keys; NULL: none */
    const char *switches;    /* path of the time recorder's file, borrowed; NULL: off */
    uint32_t window_ms;
    uint32_t max_samples;
    sp_symbolizer_options symbols;
    sp_tracer_config tracer;
    spanprof_sampler samplers[2]; /* tracer.sampler may point to them */
    sp_export_config export;
    sp_pull_config pull; /* address.length 0: it is off */
} sp_config;

/* Check OPTIONS, and copy them to OUT. ERROR_INVALID_ARGUMENT (with ERROR) for a struct_size of 0,
 * or when bytes after those of this version are not 0. OPTIONS with a smaller struct_size (of an
 * older caller) are completed with zeros. NULL: all zero. */
spanprof_status sp_options_check(const spanprof_options *options, spanprof_options *out,
                                 spanprof_error *error);

/* Which headers are propagated (a set of SP_PROPAGATE_…); also for an SDK that is disabled. */
uint32_t sp_config_propagators(const spanprof_options *options);

/* Read all settings. Each value that cannot be used is named in one warning. False when memory is
 * short. */
bool sp_config_init(sp_config *config, const spanprof_options *options);
void sp_config_deinit(sp_config *config);

/* Set config->tracer.sampler to the sampler that options or environment name. It is borrowed from
 * OPTIONS or CONFIG. */
void sp_config_sampler(sp_config *config, const spanprof_options *options);

/* Set log level and sink from OPTIONS, SPANPROF_LOG, OTEL_LOG_LEVEL. Call it first, so that the
 * other functions can warn. */
void sp_config_log(const spanprof_options *options);

#endif
