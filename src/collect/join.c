/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/join.h"

#include <string.h>

#include <spanprof/context.h>
#include "context/default_context.h"
#include "trace/starts.h"

/* The local root of LINK, whose context is another tracer's and has none. Zero when it is not
 * known: then links name the span itself. */
static uint64_t foreign_root(const sp_window_link *link)
{
    spanprof_context context = {0};
    memcpy(context.trace_id, link->trace_id, sizeof context.trace_id);
    memcpy(context.span_id, link->span_id, sizeof context.span_id);
    return sp_starts_local_root(&context);
}

static sp_window_link link_of(const spanprof_context *context)
{
    sp_window_link link = {0};
    memcpy(link.trace_id, context->trace_id, sizeof link.trace_id);
    memcpy(link.span_id, context->span_id, sizeof link.span_id);
    memcpy(link.root_span_id, context->local_root_span_id, sizeof link.root_span_id);
    return link;
}

static bool has_id(const uint8_t *id, size_t size)
{
    uint8_t bits = 0;
    for (size_t i = 0; i < size; i++)
        bits |= id[i];
    return bits != 0;
}

void sp_join_default_refresh(sp_join_default *fallback)
{
    spanprof_context context = sp_default_context_get();
    bool is_linked = has_id(context.trace_id, sizeof context.trace_id) &&
                     has_id(context.span_id, sizeof context.span_id) && !context.remote &&
                     (context.trace_flags & SPANPROF_TRACE_FLAG_SAMPLED);
    *fallback = (sp_join_default){.result = is_linked ? SP_JOIN_LINKED : SP_JOIN_NONE};
    if (is_linked)
        fallback->link = link_of(&context);
}

void sp_join_interval(sp_join *join, const sp_interval_record *interval)
{
    memset(join, 0, sizeof *join);
    join->number = interval->number;
    join->result = SP_JOIN_NONE;
    join->is_bare = interval->span_id == 0;
    /* A remote context has no span in this process; a link of a sample under it would name a span
     * of another process. */
    if (interval->span_id == 0 || interval->remote ||
        !(interval->trace_flags & SPANPROF_TRACE_FLAG_SAMPLED))
        return;
    join->result = SP_JOIN_LINKED;
    memcpy(join->link.trace_id, interval->trace_id, sizeof join->link.trace_id);
    memcpy(join->link.span_id, &interval->span_id, sizeof join->link.span_id);
    uint64_t root =
        interval->local_root_span_id ? interval->local_root_span_id : foreign_root(&join->link);
    memcpy(join->link.root_span_id, &root, sizeof join->link.root_span_id);
}

sp_join_result sp_join_sample(const sp_join *join, const sp_join_default *fallback,
                              const sp_sample_record *sample, sp_window_link *link)
{
    memset(link, 0, sizeof *link);
    if (sample->unknown || (sample->number & 1) || sample->number != join->number)
        return SP_JOIN_UNKNOWN;
    *link = join->is_bare ? fallback->link : join->link;
    return join->is_bare ? fallback->result : join->result;
}
