/* SPDX-License-Identifier: Apache-2.0 */
/* Reads spans into the model, and makes a forest with sums of them. Nothing here is recursive,
 * because spans of a file may be nested to any depth. */
#include <stdlib.h>
#include <string.h>

#include "tool/model/model.h"
#include "tool/model/sum.h"
#include "tool/text/messages.h"
#include "core/reach.h"

/* Make room for the span that was just added to span_index. It has the same number in `spans`. */
static sp_model_span *new_span(sp_model *model)
{
    uint32_t number = model->span_index.count - 1;
    return SP_REACH(model->spans, number, model->span_capacity, 256) ? &model->spans[number] : NULL;
}

static const char *model_copy(sp_model *model, const char *text)
{
    uint32_t string = sp_model_string(model, text);
    return string == SP_INTERN_FAILED ? NULL : sp_model_text(model, string);
}

/* What all spans of one list have in common. */
typedef struct span_origin {
    const char *service;
    const Sp__Resource__Resource *resource;
    const Sp__Common__InstrumentationScope *scope;
} span_origin;

/* Add a span, unless a span with the same id is there: the same request may have been delivered
 * twice. */
static bool add_span(sp_model *model, const Sp__Trace__Span *message, const span_origin *origin)
{
    enum { REMOTE = SP__TRACE__SPAN_FLAGS__SPAN_FLAGS_CONTEXT_IS_REMOTE_MASK };
    sp_model_link id;
    memcpy(id.trace_id, message->trace_id.data, sizeof id.trace_id);
    memcpy(id.span_id, message->span_id.data, sizeof id.span_id);
    bool is_new;
    if (sp_intern_put(&model->span_index, &id, sizeof id, &is_new) == SP_INTERN_FAILED)
        return false;
    if (!is_new)
        return true;
    sp_model_span *span = new_span(model);
    const char *name = model_copy(model, message->name);
    if (!span || !name)
        return false;
    uint64_t start = message->start_time_unix_nano, end = message->end_time_unix_nano;
    *span = (sp_model_span){.id = id,
                            .name = name,
                            .service = origin->service,
                            .resource = origin->resource,
                            .scope = origin->scope,
                            .start_ns = start,
                            .end_ns = end < start ? start : end,
                            .parent = SP_MODEL_NONE,
                            .first_child = SP_MODEL_NONE,
                            .next_sibling = SP_MODEL_NONE,
                            .parent_is_remote = message->flags & REMOTE,
                            .message = message};
    if (message->parent_span_id.len == sizeof span->parent_span_id)
        memcpy(span->parent_span_id, message->parent_span_id.data, sizeof span->parent_span_id);
    return true;
}

static int bad_span(const sp_document *document, size_t resource, size_t scope, size_t span)
{
    char name[SP_DOCUMENT_NAME_LENGTH];
    return sp_tool_wrong("%s: resourceSpans[%zu].scopeSpans[%zu].spans[%zu]: a trace id has 16 "
                         "bytes and a span id 8; `spanprof check` lists all mistakes",
                         sp_document_name(name, document), resource, scope, span);
}

int sp_model_add_traces(sp_model *model, const sp_document *document)
{
    const Sp__Trace__TracesData *data = (const Sp__Trace__TracesData *)document->message;
    for (size_t r = 0; r < data->n_resource_spans; r++) {
        const Sp__Trace__ResourceSpans *resource = data->resource_spans[r];
        span_origin origin = {.service = model_copy(model, sp_resource_text(resource->resource,
                                                                            NULL, "service.name")),
                              .resource = resource->resource};
        if (!origin.service)
            return sp_tool_no_memory();
        for (size_t s = 0; s < resource->n_scope_spans; s++) {
            const Sp__Trace__ScopeSpans *scope = resource->scope_spans[s];
            origin.scope = scope->scope;
            for (size_t i = 0; i < scope->n_spans; i++) {
                const Sp__Trace__Span *span = scope->spans[i];
                if (span->trace_id.len != 16 || span->span_id.len != 8)
                    return bad_span(document, r, s, i);
                if (!add_span(model, span, &origin))
                    return sp_tool_no_memory();
            }
        }
    }
    return SP_TOOL_DONE;
}

/* ---- the forest ---- */

static void find_parents(sp_model *model)
{
    static const uint8_t zero[8];
    for (uint32_t i = 0; i < model->span_index.count; i++) {
        sp_model_span *span = &model->spans[i];
        sp_model_link parent = span->id;
        memcpy(parent.span_id, span->parent_span_id, sizeof parent.span_id);
        if (memcmp(parent.span_id, zero, sizeof zero) != 0)
            span->parent = sp_model_span_of_link(model, &parent);
    }
}

/* Walk up from each span. If a walk would come back to a span that it has visited, there is a
 * cycle: the last span of the walk loses its parent. */
static bool cut_cycles(sp_model *model)
{
    uint32_t count = model->span_index.count;
    uint32_t *walk_of = calloc(count ? count : 1, sizeof *walk_of);
    if (!walk_of)
        return false;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t at = i;
        while (at != SP_MODEL_NONE && walk_of[at] == 0) {
            walk_of[at] = i + 1;
            uint32_t parent = model->spans[at].parent;
            if (parent != SP_MODEL_NONE && walk_of[parent] == i + 1)
                model->spans[at].parent = parent = SP_MODEL_NONE;
            at = parent;
        }
    }
    free(walk_of);
    return true;
}

/* a global, because the comparison function of qsort gets no context */
static const sp_model_span *sorted_spans;

static int compare_starts(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    uint64_t start_x = sorted_spans[x].start_ns, start_y = sorted_spans[y].start_ns;
    if (start_x != start_y)
        return start_x < start_y ? -1 : 1;
    return x < y ? -1 : x > y;
}

/* Sort the children of each span by start. Spans are prepended to the lists of children from the
 * last to the first. */
static void find_children(sp_model *model, uint32_t *by_start)
{
    uint32_t count = model->span_index.count;
    for (uint32_t i = 0; i < count; i++)
        by_start[i] = i;
    sorted_spans = model->spans;
    qsort(by_start, count, sizeof *by_start, compare_starts);
    for (uint32_t i = count; i-- > 0;) {
        sp_model_span *span = &model->spans[by_start[i]];
        if (span->parent == SP_MODEL_NONE)
            continue;
        span->next_sibling = model->spans[span->parent].first_child;
        model->spans[span->parent].first_child = by_start[i];
    }
}

/* Fill span_order: the roots by start, then their descendants breadth first. */
static void find_order(sp_model *model, const uint32_t *by_start)
{
    uint32_t count = model->span_index.count, filled = 0;
    for (uint32_t i = 0; i < count; i++)
        if (model->spans[by_start[i]].parent == SP_MODEL_NONE)
            model->span_order[filled++] = by_start[i];
    for (uint32_t i = 0; i < filled; i++)
        for (uint32_t child = model->spans[model->span_order[i]].first_child;
             child != SP_MODEL_NONE; child = model->spans[child].next_sibling)
            model->span_order[filled++] = child;
}

/* Find the local root of each span. Parents come first in span_order, so one step to the parent is
 * enough; a walk from each span to its root would be quadratic in depth. */
static void find_local_roots(sp_model *model)
{
    for (uint32_t i = 0; i < model->span_index.count; i++) {
        uint32_t number = model->span_order[i];
        sp_model_span *span = &model->spans[number];
        span->local_root =
            sp_model_is_local_root(model, number) ? number : model->spans[span->parent].local_root;
    }
}

uint32_t sp_model_local_root(const sp_model *model, uint32_t span)
{
    return model->spans[span].local_root;
}

static bool find_link_spans(sp_model *model)
{
    model->link_spans = malloc((model->links.count + (size_t)1) * sizeof *model->link_spans);
    for (uint32_t i = 0; model->link_spans && i < model->links.count; i++)
        model->link_spans[i] = sp_model_span_of_link(model, sp_intern_key(&model->links, i));
    return model->link_spans != NULL;
}

int sp_model_link_spans(sp_model *model)
{
    size_t count = model->span_index.count;
    uint32_t *by_start = malloc((count + 1) * sizeof *by_start);
    model->span_order = malloc((count + 1) * sizeof *model->span_order);
    bool done = by_start && model->span_order && find_link_spans(model);
    if (done) {
        find_parents(model);
        done = cut_cycles(model);
    }
    if (done && count) {
        find_children(model, by_start);
        find_order(model, by_start);
        find_local_roots(model);
    }
    free(by_start);
    return done ? SP_TOOL_DONE : sp_tool_no_memory();
}

/* Add the values of samples to the spans that they are linked to. */
static void count_own(sp_model *model)
{
    uint32_t type = sp_model_time_type(model), wall = sp_model_wall_type(model, true);
    uint32_t alloc = sp_model_alloc_type(model, true);
    for (uint32_t i = 0; i < model->sample_index.count; i++) {
        const sp_model_sample *sample = &model->samples[i];
        bool is_asked = sample->type == type || sample->type == wall || sample->type == alloc;
        if (!is_asked || sample->link == 0)
            continue;
        uint32_t number = sp_model_link_span(model, sample->link);
        if (number == SP_MODEL_NONE)
            continue;
        sp_model_span *span = &model->spans[number];
        if (sample->type == type) {
            sp_sum_add(&span->own_value, sample->value);
            sp_sum_add(&span->own_count, sample->count);
        }
        if (sample->type == wall)
            sp_sum_add(&span->wall_ns[sample->where], sample->value);
        if (sample->type == alloc) {
            sp_sum_add(&span->alloc_value, sample->value);
            sp_sum_add(&span->alloc_count, sample->count);
            span->alloc_variance += sp_model_sampling_variance(model, i);
        }
    }
}

int sp_model_count_spans(sp_model *model)
{
    count_own(model);
    for (uint32_t i = model->span_index.count; i-- > 0;) {
        sp_model_span *span = &model->spans[model->span_order[i]];
        sp_sum_add(&span->total_value, span->own_value);
        sp_sum_add(&span->total_count, span->own_count);
        if (span->parent == SP_MODEL_NONE)
            continue;
        sp_model_span *parent = &model->spans[span->parent];
        sp_sum_add(&parent->total_value, span->total_value);
        sp_sum_add(&parent->total_count, span->total_count);
        sp_sum_add(&parent->alloc_value, span->alloc_value);
        sp_sum_add(&parent->alloc_count, span->alloc_count);
        parent->alloc_variance += span->alloc_variance;
        for (int k = 0; k < SP_WHERE_COUNT; k++)
            sp_sum_add(&parent->wall_ns[k], span->wall_ns[k]);
    }
    return SP_TOOL_DONE;
}
