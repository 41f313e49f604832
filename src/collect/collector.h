/* SPDX-License-Identifier: Apache-2.0 */
/* The collector: the thread that drains the rings, joins, aggregates, symbolizes, builds profiles
 * and passes them to the exporter. It also finds new threads and libraries, and keeps the counts.
 *
 * | operation                   | setup | any thread | collector |
 * | sp_collector_create, stop   |  yes  |            |           |
 * | sp_collector_flush, stats,  |       |    yes     |           |
 * | set_rate, end_window        |       |            |           |
 */
#ifndef SP_COLLECT_COLLECTOR_H
#define SP_COLLECT_COLLECTOR_H

#include "cpu/cpu_engine.h"
#include "export/exporter.h"
#include "symbol/symbolizer.h"
#include "unwind/module.h"

typedef struct sp_collector sp_collector;

typedef struct sp_collector_config {
    uint32_t window_ms;
    uint32_t max_samples;
    sp_symbolizer_options symbols;
    uint32_t cpu_hz;     /* the requested rate */
    uint32_t engine_run; /* sp_engine_run_number */
    uint32_t wall_hz;    /* 0: no wall profiler runs */
    bool wall_of_all;    /* it visits all threads */
    bool without_cpu;    /* there is no CPU profile: ticks are a part of wall time only */
    bool without_ticks;  /* CPU time is not sampled, nor is wall time */
    bool with_alloc, with_heap;
    uint64_t alloc_bytes, lock_ns; /* between two samples, on average */
    const char *sample_attributes; /* which samples have (attribute_filter.h); copied; NULL: none */
    double cpu_budget;     /* share of the application's CPU time that ticks may take; 0: any */
    sp_modules *modules;   /* owned by the collector from now on */
    sp_exporter *exporter; /* borrowed until stop returns */
    uint32_t pull_run;     /* sp_pull_open; 0: profiles cannot be pulled */
    spanprof_link_scope pull_link_scope; /* of what is pulled: neither DEFAULT nor BOTH */
    bool pull_thread_attributes;
    const sp_resource
        *resource; /* borrowed until stop returns SPANPROF_OK; for ever when it does not */
} sp_collector_config;

/* NULL, with ERROR filled, when memory or threads are short; modules is then still the caller's.
 * The caller has called sp_threads_set_collected(true); stop undoes that. */
sp_collector *sp_collector_create(const sp_collector_config *config, spanprof_error *error);

/* Close the window now and pass it to the exporter, with everything that was sampled before the
 * call. SPANPROF_OK or ERROR_TIMEOUT at the monotonic DEADLINE_NS. */
spanprof_status sp_collector_flush(sp_collector *collector, uint64_t deadline_ns);

/* Request another rate: the open window ends soon, and the next one has the new rate. WALL_HZ
 * changes nothing where no wall profiler runs. */
void sp_collector_set_rate(sp_collector *collector, uint32_t cpu_hz);
void sp_collector_set_wall_rate(sp_collector *collector, uint32_t wall_hz);

/* Make the open window end soon; does not wait for that. */
void sp_collector_end_window(sp_collector *collector);

/* After the engine has stopped: flush, end the thread by DEADLINE_NS, free all. A thread that does
 * not end in time (it is reading a huge debug file) is abandoned: it ends later, and touches
 * nothing that other threads use. MODULES_IN_USE: ticks may still read them, so they are not freed.
 * STATS gets the final counts. */
spanprof_status sp_collector_stop(sp_collector *collector, uint64_t deadline_ns,
                                  bool modules_in_use, spanprof_stats *stats);

/* Fill in what the collector counts. */
void sp_collector_stats(sp_collector *collector, spanprof_stats *stats);

#endif
