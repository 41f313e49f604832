/* SPDX-License-Identifier: Apache-2.0 */
#include "sdk/fill_stats.h"

#include <string.h>

#include "context/cpu_time.h"
#include "context/thread.h"
#include "cpu/cpu_engine.h"
#include "sdk/switch_file.h"
#include "trace/carrier.h"
#include "trace/provider.h"
#include "trace/sample_attributes.h"
#include "wall/wall.h"

void sp_stats_fill_exports(spanprof_stats *stats, const sp_export_counters *counters)
{
    stats->dropped_exports_queue_full = sp_load_relaxed(&counters->dropped_queue_full);
    stats->dropped_exports_refused = sp_load_relaxed(&counters->dropped_refused);
    stats->dropped_exports_unreachable = sp_load_relaxed(&counters->dropped_unreachable);
    stats->dropped_exports_spool = sp_load_relaxed(&counters->dropped_spool);
    stats->spooled_exports = sp_load_relaxed(&counters->spooled);
    stats->taken_over_exports = sp_load_relaxed(&counters->taken_over);
    stats->exported_spans = sp_load_relaxed(&counters->spans);
    stats->exported_samples = sp_load_relaxed(&counters->samples);
    stats->exported_requests = sp_load_relaxed(&counters->requests);
    stats->exported_bytes = sp_load_relaxed(&counters->bytes);
}

void sp_stats_fill_tracer(spanprof_stats *stats)
{
    sp_tracer_counters counters;
    sp_tracer_counters_get(&counters);
    stats->spans_started = counters.spans_started;
    stats->spans_ended = counters.spans_ended;
    stats->spans_unsampled = counters.spans_unsampled;
    stats->dropped_spans_queue_full = counters.dropped_queue_full;
    stats->dropped_spans_memory = counters.dropped_memory;
    stats->foreign_spans_started = counters.foreign_started;
    stats->foreign_spans_ended = counters.foreign_ended;
    stats->evicted_foreign_spans = counters.foreign_evicted;
    sp_cpu_time_counters cpu_time;
    sp_cpu_time_counters_get(&cpu_time);
    stats->cpu_time_unattributed_ns = cpu_time.unattributed_ns;
    stats->dropped_cpu_times = cpu_time.dropped;
}

void sp_stats_fill_engine(spanprof_stats *stats)
{
    sp_engine_state state;
    sp_engine_state_get(&state);
    stats->threads = state.threads;
    stats->fallback_threads = state.fallback_threads;
    stats->failed_threads = state.failed_threads;
    stats->cpu_hz = state.cpu_hz;
    stats->paused = state.paused;
    strcpy(stats->engine, state.engine);
    strcpy(stats->engine_reason, state.reason);
}

void sp_stats_fill_wall(spanprof_stats *stats)
{
    sp_wall_state state;
    sp_wall_state_get(&state);
    stats->wall_hz = state.hz;
    stats->wall_running = state.running;
    stats->visits = state.visits;
    stats->visits_unmoved = state.unmoved;
    stats->visits_discarded = state.discarded;
    stats->failed_visits = state.failed;
    stats->dropped_visits += state.dropped;
    stats->wall_cpu_ns = state.cpu_ns;
    strcpy(stats->wall_reason, state.reason);
}

void sp_stats_fill_carriers(spanprof_stats *stats)
{
    sp_carrier_counters counters;
    sp_carrier_counters_get(&counters);
    stats->evicted_carriers = counters.evicted;
    stats->dropped_carriers = counters.dropped;
}

void sp_stats_fill_attributes(spanprof_stats *stats)
{
    sp_sample_attribute_counters counters;
    sp_sample_attribute_counters_get(&counters);
    stats->cut_attributes = counters.cut;
    stats->dropped_attributes = counters.refused;
}

void sp_stats_fill_switches(spanprof_stats *stats)
{
    sp_switch_counters counters;
    sp_switch_file_counters_get(&counters);
    stats->switches_recorded = counters.recorded;
    stats->dropped_switches = counters.lost;
}

void sp_stats_fill_misuse(spanprof_stats *stats)
{
    sp_tracer_counters counters;
    sp_tracer_counters_get(&counters);
    stats->misuse_dead_span = counters.misuse_dead_span;
    stats->misuse_dead_scope = sp_load_relaxed(&sp_thread_counts.misuse_dead_scope);
    stats->misuse_foreign_scope = sp_load_relaxed(&sp_thread_counts.misuse_foreign_scope);
    stats->failed_attaches = sp_load_relaxed(&sp_thread_counts.failed_attaches);
    stats->misuse_ended_parent = sp_load_relaxed(&sp_thread_counts.misuse_ended_parent);
    stats->misuse_fiber = sp_load_relaxed(&sp_thread_counts.misuse_fiber);
}
