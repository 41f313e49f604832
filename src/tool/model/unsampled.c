/* SPDX-License-Identifier: Apache-2.0 */
/* Finds spans that lie wholly outside the time in which `run --attach` sampled their process. Such
 * a span has no sample, but this does not mean that it took little time.
 *
 * The attach writes a span of its own that lasts as long as it samples. If the files do not have
 * it, the windows of its profiles stand for it. The SDK samples its process from start to stop, and
 * writes no profile for a window without samples. So a process with profiles of the SDK counts as
 * sampled all the time. */
#include <stdlib.h>
#include <string.h>

#include "tool/model/model.h"
#include "tool/model/process.h"
#include "tool/text/messages.h"

#define ATTACH_SCOPE "spanprof run --attach"

typedef struct attach {
    sp_process process;
    uint64_t begin_ns, end_ns;
    bool is_own; /* of the process that is searched for */
} attach;

typedef struct search {
    sp_model *model;
    attach *attaches;
    size_t count;
    const Sp__Resource__Resource *resource; /* of the last span that was examined */
    bool is_inside; /* the process of `resource` has profiles that the SDK wrote */
    bool has_own;   /* some of the attaches are of it */
    bool has_process;
} search;

static bool is_attach_span(const sp_model_span *span)
{
    return span->scope && span->scope->name && strcmp(span->scope->name, ATTACH_SCOPE) == 0;
}

static void add(search *search, sp_process process, uint64_t begin_ns, uint64_t end_ns)
{
    search->attaches[search->count++] = (attach){process, begin_ns, end_ns, false};
}

static void collect_spans(search *search)
{
    const sp_model *model = search->model;
    for (uint32_t i = 0; i < model->span_index.count; i++) {
        const sp_model_span *span = &model->spans[i];
        if (is_attach_span(span))
            add(search, sp_process_of(span->resource, NULL), span->start_ns, span->end_ns);
    }
}

static void collect_profiles(search *search)
{
    const sp_model *model = search->model;
    for (size_t i = 0; i < model->profile_count; i++) {
        const sp_model_profile *profile = &model->profiles[i];
        if (sp_model_is_from_outside(profile))
            add(search, sp_process_of(profile->resource, profile->dictionary),
                profile->message->time_unix_nano, sp_profile_end_ns(profile->message));
    }
}

/* Mark the types that were sampled from outside. Returns whether there are any. */
static bool mark_types(sp_model *model)
{
    bool found = false;
    for (size_t i = 0; i < model->profile_count; i++) {
        const sp_model_profile *profile = &model->profiles[i];
        if (!sp_model_is_from_outside(profile))
            continue;
        found = model->types[profile->type].is_from_outside = true;
    }
    return found;
}

/* Whether the SDK wrote a profile of a type that was also sampled from outside in PROCESS. */
static bool has_inside(const sp_model *model, const sp_process *process)
{
    for (size_t i = 0; i < model->profile_count; i++) {
        const sp_model_profile *profile = &model->profiles[i];
        if (!model->types[profile->type].is_from_outside || sp_model_is_from_outside(profile))
            continue;
        sp_process other = sp_process_of(profile->resource, profile->dictionary);
        if (sp_process_may_be_same(&other, process))
            return true;
    }
    return false;
}

static void take_process(search *search, const Sp__Resource__Resource *resource)
{
    if (search->has_process && search->resource == resource)
        return;
    sp_process process = sp_process_of(resource, NULL);
    search->has_process = true;
    search->resource = resource;
    search->is_inside = has_inside(search->model, &process);
    search->has_own = false;
    for (size_t i = 0; i < search->count; i++) {
        search->attaches[i].is_own = sp_process_may_be_same(&search->attaches[i].process, &process);
        search->has_own |= search->attaches[i].is_own;
    }
}

/* Whether SPAN lies outside all attaches to its process, or, if no attach has the name of its
 * service (--service), outside all attaches. */
static bool is_outside(search *search, const sp_model_span *span)
{
    take_process(search, span->resource);
    bool found = search->is_inside;
    for (size_t i = 0; i < search->count && !found; i++) {
        const attach *at = &search->attaches[i];
        found = (at->is_own || !search->has_own) && at->begin_ns <= span->end_ns &&
                at->end_ns >= span->start_ns;
    }
    return !found;
}

static void mark(search *search)
{
    sp_model *model = search->model;
    for (uint32_t i = 0; i < model->span_index.count; i++) {
        sp_model_span *span = &model->spans[i];
        span->is_own_unsampled =
            !span->own_count && !sp_where_sum(span->wall_ns) && is_outside(search, span);
        span->is_unsampled = span->is_own_unsampled && !span->total_count;
    }
    /* Children come after their parents. */
    for (uint32_t i = model->span_index.count; i-- > 0;) {
        const sp_model_span *span = &model->spans[model->span_order[i]];
        if (span->parent != SP_MODEL_NONE && !span->is_unsampled)
            model->spans[span->parent].is_unsampled = false;
    }
}

int sp_model_find_unsampled(sp_model *model)
{
    search search = {.model = model};
    if (!mark_types(model))
        return SP_TOOL_DONE;
    search.attaches =
        malloc((model->profile_count + model->span_index.count + 1) * sizeof *search.attaches);
    if (!search.attaches)
        return sp_tool_no_memory();
    collect_spans(&search);
    if (!search.count)
        collect_profiles(&search);
    mark(&search);
    free(search.attaches);
    return SP_TOOL_DONE;
}
