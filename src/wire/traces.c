/* SPDX-License-Identifier: Apache-2.0 */
/* Makes trees of protobuf-c of finished spans, from which JSON is written. */
#include "wire/traces.h"

#include "wire/json.h"

static Sp__Trace__Span__Event **build_events(sp_arena *arena, const sp_span_data *span)
{
    Sp__Trace__Span__Event **events =
        sp_otlp_list(arena, &sp__trace__span__event__descriptor, span->event_count);
    if (!events)
        return NULL;
    for (uint32_t i = 0; i < span->event_count; i++) {
        const sp_span_event *event = &span->events[i];
        events[i]->time_unix_nano = event->time_ns;
        events[i]->name = (char *)event->name;
        events[i]->dropped_attributes_count = event->dropped_attributes_count;
        events[i]->n_attributes = event->attribute_count;
        events[i]->attributes =
            sp_otlp_attributes(arena, event->attributes, event->attribute_count);
        if (!events[i]->attributes)
            return NULL;
    }
    return events;
}

static Sp__Trace__Span__Link **build_links(sp_arena *arena, const sp_span_data *span)
{
    Sp__Trace__Span__Link **links =
        sp_otlp_list(arena, &sp__trace__span__link__descriptor, span->link_count);
    if (!links)
        return NULL;
    for (uint32_t i = 0; i < span->link_count; i++) {
        const sp_span_link *link = &span->links[i];
        links[i]->trace_id = sp_otlp_id(link->trace_id, sizeof link->trace_id);
        links[i]->span_id = sp_otlp_id(link->span_id, sizeof link->span_id);
        links[i]->trace_state = (char *)link->trace_state;
        links[i]->flags = link->flags;
        links[i]->dropped_attributes_count = link->dropped_attributes_count;
        links[i]->n_attributes = link->attribute_count;
        links[i]->attributes = sp_otlp_attributes(arena, link->attributes, link->attribute_count);
        if (!links[i]->attributes)
            return NULL;
    }
    return links;
}

/* A missing Status means unset, so an unset status is left out. */
static bool build_status(sp_arena *arena, Sp__Trace__Span *out, const sp_span_data *span)
{
    if (span->status == SPANPROF_SPAN_STATUS_UNSET)
        return true;
    out->status = sp_otlp_message(arena, &sp__trace__status__descriptor);
    if (!out->status)
        return false;
    out->status->code = (Sp__Trace__Status__StatusCode)span->status;
    out->status->message = (char *)span->status_message;
    return true;
}

static bool build_span(sp_arena *arena, Sp__Trace__Span *out, const sp_span_data *span)
{
    out->trace_id = sp_otlp_id(span->trace_id, sizeof span->trace_id);
    out->span_id = sp_otlp_id(span->span_id, sizeof span->span_id);
    out->parent_span_id = sp_otlp_id(span->parent_span_id, sizeof span->parent_span_id);
    out->trace_state = (char *)span->trace_state;
    out->name = (char *)span->name;
    out->kind = (Sp__Trace__Span__SpanKind)(span->kind + 1);
    out->start_time_unix_nano = span->start_time_ns;
    out->end_time_unix_nano = span->end_time_ns;
    out->flags = span->flags;
    out->dropped_attributes_count = span->dropped_attributes_count;
    out->dropped_links_count = span->dropped_links_count;
    out->n_attributes = span->attribute_count;
    out->attributes = sp_otlp_attributes(arena, span->attributes, span->attribute_count);
    out->dropped_events_count = span->dropped_events_count;
    out->n_events = span->event_count;
    out->events = build_events(arena, span);
    out->n_links = span->link_count;
    out->links = build_links(arena, span);
    return out->attributes && out->events && out->links && build_status(arena, out, span);
}

static bool build_scope_spans(sp_arena *arena, Sp__Trace__ScopeSpans *out,
                              const sp_span_group *group)
{
    if (group->scope) {
        out->scope = sp_otlp_scope(arena, group->scope);
        if (!out->scope)
            return false;
        out->schema_url = (char *)group->scope->schema_url;
    }
    out->spans = sp_arena_array(arena, group->count, sizeof *out->spans);
    return out->spans != NULL;
}

static bool build_resource_spans(sp_arena *arena, Sp__Trace__ResourceSpans *out,
                                 sp_span_data *const *spans, size_t count)
{
    sp_span_grouping grouping = {0};
    Sp__Trace__Span **messages = sp_otlp_list(arena, &sp__trace__span__descriptor, count);
    if (!messages || !sp_otlp_group_spans(arena, &grouping, spans, count))
        return false;
    out->scope_spans =
        sp_otlp_list(arena, &sp__trace__scope_spans__descriptor, grouping.group_count);
    if (!out->scope_spans)
        return false;
    out->n_scope_spans = grouping.group_count;
    for (uint32_t i = 0; i < grouping.group_count; i++) {
        if (!build_scope_spans(arena, out->scope_spans[i], &grouping.groups[i]))
            return false;
    }
    for (size_t i = 0; i < count; i++) {
        Sp__Trace__ScopeSpans *scope = out->scope_spans[grouping.number_of[i]];
        scope->spans[scope->n_spans++] = messages[i];
        if (!build_span(arena, messages[i], spans[i]))
            return false;
    }
    return true;
}

/* Without spans the request is empty, because receivers discard a ResourceSpans without spans. */
bool sp_otlp_traces_tree(sp_arena *arena, Sp__Collector__ExportTraceServiceRequest *out,
                         const sp_resource *resource, sp_span_data *const *spans, size_t count)
{
    if (count == 0)
        return true;
    out->resource_spans = sp_otlp_list(arena, &sp__trace__resource_spans__descriptor, 1);
    if (!out->resource_spans)
        return false;
    out->n_resource_spans = 1;
    Sp__Trace__ResourceSpans *only = out->resource_spans[0];
    only->schema_url = (char *)SP_OTLP_SCHEMA_URL;
    only->resource = sp_otlp_resource(arena, resource);
    return only->resource && build_resource_spans(arena, only, spans, count);
}

static bool write_json(sp_buffer *out, const sp_resource *resource, sp_span_data *const *spans,
                       size_t count)
{
    sp_arena arena = {0};
    Sp__Collector__ExportTraceServiceRequest request =
        SP__COLLECTOR__EXPORT_TRACE_SERVICE_REQUEST__INIT;
    bool done = sp_otlp_traces_tree(&arena, &request, resource, spans, count);
    if (done)
        done = sp_otlp_json_write(out, &request.base);
    else
        out->failed = true;
    sp_arena_deinit(&arena);
    return done;
}

bool sp_otlp_encode_traces(sp_buffer *out, sp_otlp_format format, const sp_resource *resource,
                           sp_span_data *const *spans, size_t count)
{
    return format == SP_OTLP_PROTOBUF ? sp_otlp_write_traces(out, resource, spans, count)
                                      : write_json(out, resource, spans, count);
}
