/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "tool/check/check.h"
#include "core/reach.h"

static void check_ids(sp_checker *checker, const Sp__Trace__Span *span, const sp_place *place)
{
    if (!sp_id_is_good(&span->trace_id, 16))
        sp_check_violation(checker, "trace-id", place,
                           "has %zu bytes; 16 that are not all zero are "
                           "needed",
                           span->trace_id.len);
    if (!sp_id_is_good(&span->span_id, 8))
        sp_check_violation(checker, "span-id", place,
                           "has %zu bytes; 8 that are not all zero are "
                           "needed",
                           span->span_id.len);
    if (span->parent_span_id.len != 0 && span->parent_span_id.len != 8)
        sp_check_violation(checker, "parent-span-id", place,
                           "has %zu bytes; 8 are needed, or none "
                           "in a root",
                           span->parent_span_id.len);
}

static void check_fields(sp_checker *checker, const Sp__Trace__Span *span, const sp_place *place)
{
    enum { MAX_KIND = SP__TRACE__SPAN__SPAN_KIND__SPAN_KIND_CONSUMER, MAX_STATUS = 2 };
    if (!span->name || !*span->name)
        sp_check_violation(checker, "span-name", place, "is empty");
    if (span->start_time_unix_nano == 0 || span->end_time_unix_nano == 0)
        sp_check_violation(checker, "span-time", place, "start and end have to be set");
    else if (span->end_time_unix_nano < span->start_time_unix_nano)
        sp_check_violation(checker, "span-time", place, "ends before it starts");
    if ((int)span->kind <= 0 || (int)span->kind > MAX_KIND)
        sp_check_violation(checker, "span-kind", place,
                           "is %d; 1 (internal) to 5 (consumer) are "
                           "needed",
                           (int)span->kind);
    if (span->status && ((int)span->status->code < 0 || (int)span->status->code > MAX_STATUS))
        sp_check_violation(checker, "span-status", place,
                           "is %d; 0 (unset), 1 (ok), 2 (error) are "
                           "defined",
                           (int)span->status->code);
}

/* Keep SPAN, so that the links of profiles can be checked. */
static void keep_span(sp_checker *checker, const Sp__Trace__Span *span, const sp_place *place)
{
    uint8_t key[24];
    bool is_new;
    if (!sp_id_is_good(&span->trace_id, 16) || !sp_id_is_good(&span->span_id, 8))
        return;
    memcpy(key, span->trace_id.data, 16);
    memcpy(key + 16, span->span_id.data, 8);
    uint32_t number = sp_intern_put(&checker->span_ids, key, sizeof key, &is_new);
    if (number == SP_INTERN_FAILED) {
        checker->failed = true;
        return;
    }
    if (!is_new) {
        sp_check_violation(checker, "span-duplicate", place, "was there before with the same ids");
        return;
    }
    if (!SP_REACH(checker->spans, number, checker->span_capacity, 256)) {
        checker->failed = true;
        return;
    }
    checker->spans[number] = (sp_checked_span){span};
}

/* Whether ID is allowed in LINK. A link with attributes needs no ids (OpenTelemetry's
 * trace/api.md, "Link"). */
static bool is_good_in(const Sp__Trace__Span__Link *link, const ProtobufCBinaryData *id,
                       size_t count)
{
    return sp_id_is_good(id, count) || (id->len == 0 && link->n_attributes > 0);
}

static void check_links(sp_checker *checker, const Sp__Trace__Span *span, const sp_place *place)
{
    for (size_t i = 0; i < span->n_links; i++) {
        const Sp__Trace__Span__Link *link = span->links[i];
        sp_place own = sp_place_of("%s.links[%zu]", place->text, i);
        if (!is_good_in(link, &link->trace_id, 16) || !is_good_in(link, &link->span_id, 8))
            sp_check_violation(checker, "span-link", &own,
                               "has no trace id of 16 bytes and span id of 8");
        sp_check_attributes(checker, NULL, link->attributes, link->n_attributes, &own);
    }
}

static void check_span(sp_checker *checker, const Sp__Trace__Span *span, const sp_place *place)
{
    check_ids(checker, span, place);
    check_fields(checker, span, place);
    sp_check_attributes(checker, NULL, span->attributes, span->n_attributes, place);
    for (size_t i = 0; i < span->n_events; i++) {
        sp_place own = sp_place_of("%s.events[%zu]", place->text, i);
        sp_check_attributes(checker, NULL, span->events[i]->attributes,
                            span->events[i]->n_attributes, &own);
    }
    check_links(checker, span, place);
    keep_span(checker, span, place);
}

void sp_check_traces(sp_checker *checker)
{
    const Sp__Trace__TracesData *data = (const Sp__Trace__TracesData *)checker->document->message;
    for (size_t r = 0; r < data->n_resource_spans; r++) {
        const Sp__Trace__ResourceSpans *resource = data->resource_spans[r];
        sp_place place = sp_place_of("resource_spans[%zu].resource", r);
        if (resource->resource)
            sp_check_attributes(checker, NULL, resource->resource->attributes,
                                resource->resource->n_attributes, &place);
        for (size_t s = 0; s < resource->n_scope_spans; s++) {
            const Sp__Trace__ScopeSpans *scope = resource->scope_spans[s];
            place = sp_place_of("resource_spans[%zu].scope_spans[%zu].scope", r, s);
            if (scope->scope)
                sp_check_attributes(checker, NULL, scope->scope->attributes,
                                    scope->scope->n_attributes, &place);
            for (size_t i = 0; i < scope->n_spans; i++) {
                place = sp_place_of("resource_spans[%zu].scope_spans[%zu].spans[%zu]", r, s, i);
                check_span(checker, scope->spans[i], &place);
            }
        }
    }
}
