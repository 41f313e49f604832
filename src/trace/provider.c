/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/provider.h"

#include <stdlib.h>

#include "core/log.h"
#include "trace/record.h"
#include "trace/resource.h"
#include "trace/starts.h"

_Atomic(sp_session *) sp_session_current;
uint32_t sp_tracer_forks;
sp_pool sp_record_pool = SP_POOL_INIT(sizeof(sp_span_record));
sp_pool sp_light_pool = SP_POOL_INIT(sizeof(sp_slot));

/* Setup only, so no lock guards them. */
static sp_session *sessions;             /* all of this process, the newest first; never freed */
static uint64_t base[SP_COUNT_COUNTERS]; /* the counters when the newest one started */

spanprof_status sp_tracer_start(const sp_tracer_config *config)
{
    if (sp_load_relaxed(&sp_session_current))
        return SPANPROF_ERROR_ALREADY_STARTED;
    sp_session *session = calloc(1, sizeof *session);
    if (!session)
        return SPANPROF_ERROR_NO_MEMORY;
    session->config = *config;
    session->config.sampler = NULL; /* the caller's */
    sp_sampling_init(&session->sampling, config->sampler);
    if (config->mark_all || config->mark_roots)
        session->correlation = config->mark_all ? &sp_correlation_all : &sp_correlation_roots;
    session->last = &sp_batch_processor;
    session->older = sessions;
    sessions = session;
    sp_cache_sum(base);
    base[SP_COUNT_MISUSE] = 0;
    sp_starts_forget();
    sp_cpu_time_start(config->record ? config->cpu_time : SP_CPU_TIME_NONE);
    sp_store_release(&sp_session_current, session);
    return SPANPROF_OK;
}

void sp_tracer_stop(void)
{
    sp_store_release(&sp_session_current, NULL);
    sp_cpu_time_stop();
}

/* True in a forked child whose parent had a session, until the child starts one or logs that it has
 * none. */
static _Atomic bool is_without_sdk;

void sp_tracer_say_absent(void)
{
    if (sp_load_relaxed(&is_without_sdk) && atomic_exchange(&is_without_sdk, false))
        sp_log_say_alone(SPANPROF_LOG_WARN,
                         "tracer: this process was forked from one that runs the SDK, and has not "
                         "started it itself: its spans and its samples go nowhere; call "
                         "spanprof_start in the child (docs/fork.md)");
}

void sp_tracer_after_fork(void)
{
    if (sp_load_relaxed(&sp_session_current))
        sp_store_relaxed(&is_without_sdk, true);
    bool inside = sp_registered_calling(); /* then a callback still reads a span */
    sp_tracer_forks++;
    sp_store_relaxed(&sp_session_current, NULL);
    sp_cpu_time_after_fork();
    sp_pool_after_fork(&sp_record_pool, inside);
    sp_pool_after_fork(&sp_light_pool, inside);
    sp_cache_after_fork(); /* after the pools: it forgets the slots that threads held */
    sp_batch_after_fork();
    sp_registered_after_fork();
    sp_starts_after_fork();
    sp_tracer_table_after_fork();
    sp_resource_after_fork();
    for (int i = 0; i < SP_COUNT_COUNTERS; i++)
        base[i] = 0;
}

void sp_tracer_counters_get(sp_tracer_counters *out)
{
    uint64_t sum[SP_COUNT_COUNTERS];
    sp_cache_sum(sum);
    out->spans_started = sum[SP_COUNT_STARTED] - base[SP_COUNT_STARTED];
    out->spans_ended = sum[SP_COUNT_ENDED] - base[SP_COUNT_ENDED];
    out->spans_unsampled = sum[SP_COUNT_UNSAMPLED] - base[SP_COUNT_UNSAMPLED];
    out->dropped_queue_full = sum[SP_COUNT_QUEUE_FULL] - base[SP_COUNT_QUEUE_FULL];
    out->dropped_memory = sum[SP_COUNT_MEMORY] - base[SP_COUNT_MEMORY];
    out->not_exported = sum[SP_COUNT_NOT_EXPORTED] - base[SP_COUNT_NOT_EXPORTED];
    out->foreign_started = sum[SP_COUNT_FOREIGN_STARTED] - base[SP_COUNT_FOREIGN_STARTED];
    out->foreign_ended = sum[SP_COUNT_FOREIGN_ENDED] - base[SP_COUNT_FOREIGN_ENDED];
    out->foreign_evicted = sum[SP_COUNT_FOREIGN_EVICTED] - base[SP_COUNT_FOREIGN_EVICTED];
    out->misuse_dead_span = sum[SP_COUNT_MISUSE];
}
