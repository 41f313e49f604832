/* SPDX-License-Identifier: Apache-2.0 */
/* Finds spans whose values the samples cannot show: spans below a local root if all samples are
 * linked to local roots, and all spans if hardly any sample is linked to a span. */
#include "tool/model/hidden.h"

#include <stdlib.h>
#include <string.h>

#include "core/counted.h"
#include "tool/text/messages.h"

/* A type counts as unlinked if it has at least SAMPLES_LEAST samples, of which at most one in
 * LINKED_OF is linked: then the program probably did not attach its spans to threads. */
enum { SAMPLES_LEAST = 5, LINKED_OF = 50 };

static bool is_named_innermost(const sp_model_type *type)
{
    return strstr(type->name, "_innermost") != NULL;
}

typedef struct link_counts {
    uint64_t all, linked; /* samples of one type */
    bool has_root;        /* a sample is linked to a local root that has spans below it */
} link_counts;

/* Add SAMPLE to COUNTS. Returns false when it is linked to a span below a local root. */
static bool count_sample(link_counts *counts, const sp_model *model, const sp_model_sample *sample)
{
    counts->all += sample->count;
    counts->linked += sample->link ? sample->count : 0;
    uint32_t span = sample->link ? sp_model_link_span(model, sample->link) : SP_MODEL_NONE;
    if (span == SP_MODEL_NONE)
        return true;
    counts->has_root |= model->spans[span].has_inner;
    return !model->spans[span].is_inner;
}

/* Whether a sample of any type is linked to a span below a local root. One such type is enough,
 * because all types of a recording have the same link scope. Types with "_innermost" in their name
 * do not count, because they do not follow this scope. */
static bool has_inner_links(const sp_model *model, link_counts *counts)
{
    bool found = false;
    for (uint32_t i = 0; i < model->sample_index.count; i++) {
        const sp_model_sample *sample = &model->samples[i];
        bool is_inner = !count_sample(&counts[sample->type], model, sample);
        found |= is_inner && !is_named_innermost(&model->types[sample->type]);
    }
    return found;
}

/* Most wall time belongs to idle threads, which have no span. So a single linked sample is enough
 * for wall time. */
static bool is_unlinked(const sp_model_type *type, const link_counts *counts)
{
    uint64_t few = type->is_wall ? 0 : counts->all / LINKED_OF;
    return counts->all >= SAMPLES_LEAST && counts->linked <= few;
}

static void mark_types(sp_model *model, const link_counts *counts, bool has_inner)
{
    for (size_t i = 0; i < model->type_count; i++) {
        sp_model_type *type = &model->types[i];
        type->hides_inner = !has_inner && counts[i].has_root && !is_named_innermost(type);
        type->is_unlinked = model->span_index.count && is_unlinked(type, &counts[i]);
    }
}

static void mark_inner_spans(sp_model *model)
{
    for (uint32_t i = 0; i < model->span_index.count; i++) {
        sp_model_span *span = &model->spans[i];
        span->is_inner = span->local_root != i;
        if (span->is_inner)
            model->spans[span->parent].has_inner = true;
    }
}

int sp_model_find_hidden(sp_model *model)
{
    link_counts *counts = calloc(model->type_count + 1, sizeof *counts);
    if (!counts)
        return sp_tool_no_memory();
    mark_inner_spans(model);
    mark_types(model, counts, has_inner_links(model, counts));
    free(counts);
    return SP_TOOL_DONE;
}

static uint64_t count_unlinked(const sp_model *model, uint32_t type)
{
    uint64_t count = 0;
    for (uint32_t i = 0; i < model->sample_index.count; i++)
        if (model->samples[i].type == type && model->samples[i].link == 0)
            count += model->samples[i].count;
    return count;
}

void sp_model_note_unlinked(const sp_model *model)
{
    uint32_t type = sp_model_time_type(model);
    if (type == SP_MODEL_NONE || !model->types[type].is_unlinked)
        return;
    uint64_t all = model->types[type].samples, unlinked = count_unlinked(model, type);
    const char *which = unlinked < all ? "hardly one" : "none";
    sp_tool_note("%s of the %s of %s was taken while a span was active, so what spans took is not "
                 "known: a span has to be attached to the thread that works for it "
                 "(spanprof_span_attach, docs/numbers.md#linked-none-unknown-boundary)",
                 which, SP_COUNTED(all, "sample"), model->types[type].name);
}
