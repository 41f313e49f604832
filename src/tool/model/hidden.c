/* SPDX-License-Identifier: Apache-2.0 */
/* Finds spans whose values the samples cannot show: spans below a local root if all samples are
 * linked to local roots, and all spans if hardly any sample is linked to a span. */
#include "tool/model/hidden.h"

#include <stdlib.h>
#include <string.h>

#include "core/counted.h"
#include "tool/model/sum.h"
#include "tool/text/messages.h"

/* A type counts as unlinked if it has at least SAMPLES_LEAST samples, of which at most one in
 * LINKED_OF is linked: then the program probably did not attach its spans to threads. */
enum { SAMPLES_LEAST = 5, LINKED_OF = 50 };
/* If so many samples are expected in the spans below local roots, it is hardly chance that they
 * have none: the probability is exp(-3), 5 %. */
static const double EXPECTED_LEAST = 3;

static bool is_named_innermost(const sp_model_type *type)
{
    return strstr(type->name, "_innermost") != NULL;
}

typedef struct link_counts {
    uint64_t all, linked; /* samples of one type */
    bool has_root;        /* a sample is linked to a local root that has spans below it */
    /* The number of samples of spans below local roots, if the samples of each local root were
     * spread evenly over its duration. */
    double expected_inner;
    bool says_root;  /* a profile says that its samples are linked to local roots */
    bool says_other; /* a profile says that they are not */
} link_counts;

/* The part of the duration of ROOT in which a child runs: 0 to 1. */
static double share_of_children(const sp_model_span *root)
{
    uint64_t duration = root->end_ns - root->start_ns;
    return root->inner_ns < duration ? (double)root->inner_ns / (double)duration : 1;
}

/* Add SAMPLE to COUNTS. Returns false when it is linked to a span below a local root. */
static bool count_sample(link_counts *counts, const sp_model *model, const sp_model_sample *sample)
{
    counts->all += sample->count;
    counts->linked += sample->link ? sample->count : 0;
    uint32_t span = sample->link ? sp_model_link_span(model, sample->link) : SP_MODEL_NONE;
    if (span == SP_MODEL_NONE)
        return true;
    counts->has_root |= model->spans[span].has_inner;
    if (model->spans[span].has_inner && !model->spans[span].is_inner)
        counts->expected_inner += (double)sample->count * share_of_children(&model->spans[span]);
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

/* Read what the profiles of each type say about their link scope. */
static void read_scopes(link_counts *counts, const sp_model *model)
{
    for (size_t i = 0; i < model->profile_count; i++) {
        const sp_model_profile *profile = &model->profiles[i];
        const char *scope = sp_model_profile_text(profile, SP_LINK_SCOPE_KEY);
        bool is_root = strcmp(scope, "root") == 0;
        counts[profile->type].says_root |= is_root;
        counts[profile->type].says_other |= *scope && !is_root;
    }
}

/* Whether samples of spans below a local root are linked to the local root. If no profile says so,
 * as in files of other producers, it is a guess. */
static bool is_of_roots(const link_counts *counts, bool has_inner, double expected_inner)
{
    if (has_inner || !counts->has_root)
        return false;
    return counts->says_root || (!counts->says_other && expected_inner >= EXPECTED_LEAST);
}

static void mark_types(sp_model *model, const link_counts *counts, bool has_inner)
{
    double expected_inner = 0;
    for (size_t i = 0; i < model->type_count; i++)
        if (!is_named_innermost(&model->types[i]))
            expected_inner += counts[i].expected_inner;
    for (size_t i = 0; i < model->type_count; i++) {
        sp_model_type *type = &model->types[i];
        type->hides_inner =
            !is_named_innermost(type) && is_of_roots(&counts[i], has_inner, expected_inner);
        type->is_unlinked = model->span_index.count && is_unlinked(type, &counts[i]);
    }
}

static void mark_inner_spans(sp_model *model)
{
    for (uint32_t i = 0; i < model->span_index.count; i++) {
        sp_model_span *span = &model->spans[i];
        span->is_inner = span->local_root != i;
        if (!span->is_inner)
            continue;
        model->spans[span->parent].has_inner = true;
        sp_sum_add(&model->spans[span->parent].inner_ns, span->end_ns - span->start_ns);
    }
}

int sp_model_find_hidden(sp_model *model)
{
    link_counts *counts = calloc(model->type_count + 1, sizeof *counts);
    if (!counts)
        return sp_tool_no_memory();
    mark_inner_spans(model);
    read_scopes(counts, model);
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
