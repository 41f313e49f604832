/* SPDX-License-Identifier: Apache-2.0 */
#include "tool/model/advice.h"

#include <stdio.h>
#include <string.h>

#include "core/compiler.h"
#include "core/counted.h"
#include "tool/model/dropped_calls.h"
#include "tool/model/queued.h"
#include "tool/model/time_without_samples.h"
#include "tool/text/output.h"

/* A span that was on a core for this many periods is expected to have a sample: of 1,000 such spans
 * only 7 have none. */
enum { PERIODS_FOR_A_SAMPLE = 5 };

enum { RATE_LENGTH = 128 };

/* When a smaller part of the events than this was not sampled, a higher rate is no advice. */
#define HARDLY_MORE 0.05

static bool is_cpu(const sp_selection *selection)
{
    const char *name = selection->model->types[selection->type].name;
    return strcmp(name, "cpu") == 0 || strcmp(name, "cpu_innermost") == 0;
}

static bool is_of_blocks(const sp_selection *selection)
{
    return sp_model_is_of_blocks(&selection->model->types[selection->type]);
}

/* The setting that makes samples of the selected type more frequent, such as "a higher
 * SPANPROF_WALL_HZ"; NULL: there is none. */
static const char *rate_of(const sp_selection *selection)
{
    const sp_model_type *type = &selection->model->types[selection->type];
    if (type->is_wall)
        return "a higher SPANPROF_WALL_HZ";
    if (is_of_blocks(selection))
        return "a smaller SPANPROF_ALLOC_BYTES";
    if (type->is_wait)
        return "a smaller SPANPROF_LOCK_NS";
    return is_cpu(selection) ? "a higher SPANPROF_CPU_HZ" : NULL;
}

static uint64_t duration_of(const sp_model_span *span)
{
    return span->end_ns - span->start_ns;
}

static uint64_t period_ns(const sp_selection *selection)
{
    return sp_model_period_ns(&selection->model->types[selection->type]);
}

static uint32_t count_of_name(const sp_model *model, const char *name)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < model->span_index.count; i++)
        count += strcmp(model->spans[i].name, name) == 0;
    return count;
}

/* How the user can see where the span waited. */
static const char *where_it_waited(const sp_model *model, bool has_button)
{
    if (has_button)
        return "the button \"Show wall time\" shows where";
    return sp_model_wall_type(model, true) == SP_MODEL_NONE
               ? "record wall time to see where, with SPANPROF_PROFILES=cpu,wall"
               : "ask for --type wall to see where";
}

/* Whether a higher rate would find hardly any more of what was selected, because nearly all blocks
 * or waits of their size are sampled. A sampled one with the probability p stands for 1 / p. */
static bool has_nearly_all(const sp_selection *selection)
{
    const sp_model *model = selection->model;
    double taken = 0, missed = 0;
    for (uint32_t i = 0; i < model->sample_index.count; i++) {
        double miss = sp_model_miss_chance(model, i), count = (double)model->samples[i].count;
        if (!sp_selection_has(selection, &model->samples[i]))
            continue;
        if (miss >= 1)
            return false;
        taken += count;
        missed += count * miss / (1 - miss);
    }
    return missed < taken * HARDLY_MORE;
}

static void add_rate(char *out, size_t size, const sp_selection *selection)
{
    const char *rate = has_nearly_all(selection) ? NULL : rate_of(selection);
    if (sp_model_dropped_calls(selection->model, selection->type))
        snprintf(out, size, "record %s, because sampled calls were dropped",
                 sp_model_fewer_calls(selection->model));
    else if (rate)
        snprintf(out, size, "record longer or with %s", rate);
    else
        snprintf(out, size, "record longer");
}

/* If much CPU time of SPAN's process is in no sample, write why SPAN may have too few samples, and
 * return true. SPAN may be NULL: then all processes count. */
static bool say_unattributed(char *out, size_t size, const sp_selection *selection,
                             const sp_model_span *span)
{
    uint64_t ns =
        is_cpu(selection) ? sp_model_unattributed_ns(selection->model, selection->type, span) : 0;
    char unattributed[SP_DURATION_LENGTH];
    sp_format_duration(unattributed, ns);
    snprintf(out, size,
             "%s of the CPU time of its process is in no sample (unattributed), as when a thread "
             "blocks SIGPROF: `spanprof stats` lists the threads, docs/numbers.md#unattributed has "
             "the causes",
             unattributed);
    return ns > 0;
}

bool sp_advice_waited(char out[SP_ADVICE_LENGTH], const sp_selection *selection, bool has_button)
{
    const sp_model *model = selection->model;
    uint32_t only = sp_selection_only_span(selection);
    bool is_one = selection->match_count == 1;
    if (!is_cpu(selection) || selection->type != sp_model_time_type(model) ||
        selection->accounted_ns >= selection->duration_ns / 2)
        return false;
    if (say_unattributed(out, SP_ADVICE_LENGTH, selection,
                         only == SP_MODEL_NONE ? NULL : &model->spans[only]))
        return true;
    snprintf(out, SP_ADVICE_LENGTH, "most of %s time %s waited: %s", is_one ? "its" : "their",
             is_one ? "it" : "they", where_it_waited(model, has_button));
    return true;
}

void sp_advice_more(char out[SP_ADVICE_LENGTH], const sp_selection *selection, bool has_button)
{
    const sp_model *model = selection->model;
    uint32_t only = sp_selection_only_span(selection);
    const sp_model_span *span = only == SP_MODEL_NONE ? NULL : &model->spans[only];
    uint32_t same = span ? count_of_name(model, span->name) : 0;
    if (sp_advice_waited(out, selection, has_button))
        return;
    if (same > 1)
        snprintf(out, SP_ADVICE_LENGTH, "--name \"%.300s\" takes all %u such spans", span->name,
                 same);
    else
        add_rate(out, SP_ADVICE_LENGTH, selection);
}

/* Write the advice to take all spans with the name of SPAN; "" when no other span has this name. */
static void add_same(char *out, size_t size, const sp_model *model, const sp_model_span *span)
{
    uint32_t same = count_of_name(model, span->name);
    *out = 0;
    if (same > 1)
        snprintf(out, size, "take all %u spans of its name with --name, ", same);
}

/* Count the samples of the selected type: *ALL, and *UNLINKED, which belong to no span. */
static void count_unlinked(const sp_selection *selection, uint64_t *unlinked, uint64_t *all)
{
    const sp_model *model = selection->model;
    *unlinked = *all = 0;
    for (uint32_t i = 0; i < model->sample_index.count; i++) {
        const sp_model_sample *sample = &model->samples[i];
        if (sample->type != selection->type)
            continue;
        *all += sample->count;
        *unlinked += sample->link ? 0 : sample->count;
    }
}

/* Say why a span has no sample of CPU time although it was long enough for one: it waited, or its
 * work was under no span. */
static void say_waited(char *out, size_t size, const sp_selection *selection)
{
    uint64_t unlinked, all;
    count_unlinked(selection, &unlinked, &all);
    const char *where = where_it_waited(selection->model, false);
    if (unlinked == 0)
        snprintf(out, size, "of CPU time, because it waited: %s", where);
    else
        snprintf(out, size,
                 "of CPU time: it waited (%s), or was not active on the thread that worked "
                 "(spanprof_span_attach): of %s, %llu %s under no span",
                 where, SP_COUNTED(all, "sample"), (unsigned long long)unlinked,
                 unlinked == 1 ? "is" : "are");
}

/* Whether the selection has samples if those on a core count, too. */
static bool was_visited(const sp_selection *selection)
{
    const sp_model *model = selection->model;
    sp_selection whole = *selection;
    whole.off_cpu = false;
    for (uint32_t i = 0; i < model->sample_index.count; i++)
        if (sp_selection_has(&whole, &model->samples[i]))
            return true;
    return false;
}

/* Why a span has no samples of a type that is not CPU time. */
static const char *why_none(const sp_selection *selection)
{
    const sp_model_type *type = &selection->model->types[selection->type];
    if (is_of_blocks(selection))
        return ": it allocated less than about one sample stands for";
    if (type->is_wait)
        return ": it waited less than about one sample stands for";
    return type->is_wall ? ": it was too short for the sampling rate" : "";
}

static bool has_samples(const sp_selection *selection, uint32_t type)
{
    sp_selection other = *selection;
    other.type = type;
    other.off_cpu = other.outlived = other.grown = false;
    for (uint32_t i = 0; i < selection->model->sample_index.count; i++)
        if (sp_selection_has(&other, &selection->model->samples[i]))
            return true;
    return false;
}

/* Append the words of --type for which the selected spans have samples. If CPU time or wall time
 * was asked for, append nothing, because that advice names the other one. */
static void add_other_types(char *out, size_t size, const sp_selection *selection)
{
    static const char *const words[] = {"lock",  "condition", "semaphore", "alloc",
                                        "inuse", "wall",      "cpu"};
    const sp_model_type *asked = &selection->model->types[selection->type];
    size_t used = strlen(out);
    const char *before = "; there are samples of other types: ";
    if (is_cpu(selection) || asked->is_wall)
        return;
    for (size_t i = 0; i < SP_ARRAY_LENGTH(words) && used < size; i++) {
        uint32_t type = sp_type_of_word(selection->model, words[i], true);
        if (type == SP_MODEL_NONE || type == selection->type || !has_samples(selection, type))
            continue;
        used += (size_t)snprintf(out + used, size - used, "%s--type %s", before, words[i]);
        before = ", ";
    }
}

void sp_advice_none_of_several(char out[SP_ADVICE_LENGTH], const sp_selection *selection)
{
    const sp_model *model = selection->model;
    char rate[RATE_LENGTH];
    add_rate(rate, sizeof rate, selection);
    if (is_of_blocks(selection) || model->types[selection->type].is_wait)
        snprintf(out, SP_ADVICE_LENGTH,
                 "too little was %s for a sample (%s), or they were not active on the thread that "
                 "did it",
                 is_of_blocks(selection) ? "allocated" : "waited", rate);
    else
        snprintf(out, SP_ADVICE_LENGTH,
                 "waiting (%s), too short for the sampling rate, or not active on the thread that "
                 "worked",
                 sp_model_wall_type(model, true) != SP_MODEL_NONE
                     ? "ask for --type wall"
                     : "record wall time with SPANPROF_PROFILES=cpu,wall");
    add_other_types(out, SP_ADVICE_LENGTH, selection);
}

void sp_advice_none(char out[SP_ADVICE_LENGTH], const sp_selection *selection, uint32_t number)
{
    const sp_model *model = selection->model;
    const sp_model_span *span = &model->spans[number];
    uint64_t duration = duration_of(span), period = period_ns(selection);
    bool is_long = period && duration >= PERIODS_FOR_A_SAMPLE * period;
    char more[80], rate[RATE_LENGTH], queued[SP_QUEUED_LENGTH], unattributed[SP_ADVICE_LENGTH - 16];
    sp_queued time = sp_queued_of(span);
    add_same(more, sizeof more, model, span);
    add_rate(rate, sizeof rate, selection);
    if (selection->off_cpu && was_visited(selection))
        snprintf(out, SP_ADVICE_LENGTH, "off CPU: where it was seen, it ran; ask for --type wall");
    else if (is_cpu(selection) && span->queued_ns > duration / 2)
        snprintf(out, SP_ADVICE_LENGTH, "of CPU time: %s (spanprof_span_attach)",
                 sp_queued_format(queued, &time));
    else if (say_unattributed(unattributed, sizeof unattributed, selection, span))
        snprintf(out, SP_ADVICE_LENGTH, "of CPU time: %s", unattributed);
    else if (is_cpu(selection) && is_long)
        say_waited(out, SP_ADVICE_LENGTH, selection);
    else if (is_long && model->types[selection->type].is_wall)
        snprintf(out, SP_ADVICE_LENGTH,
                 "of wall time: it was in a queue, or was not active on the thread that worked or "
                 "waited for it; attach it there (spanprof_span_attach, docs/design/carriers.md)");
    else if (is_cpu(selection))
        snprintf(out, SP_ADVICE_LENGTH,
                 "of CPU time: it was too short for the sampling rate, or waited (%s); %sask for "
                 "its parent, or %s",
                 where_it_waited(model, false), more, rate);
    else
        snprintf(out, SP_ADVICE_LENGTH, "of this type%s; %sask for its parent, or %s",
                 why_none(selection), more, rate);
    add_other_types(out, SP_ADVICE_LENGTH, selection);
}

void sp_advice_record(char out[SP_ADVICE_LENGTH], const char *word)
{
    static const char by_wall[] = ", or with `spanprof run --wall`";
    static const char by_preload[] = " and libspanprof-preload.so in LD_PRELOAD, or with `spanprof "
                                     "run --profiles`; a run in which none happened has none";
    static const struct {
        const char *word, *profile, *how;
    } rows[] = {{"cpu", "cpu", ""},
                {"wall", "wall", by_wall},
                {"offcpu", "wall", by_wall},
                {"alloc", "alloc", by_preload},
                {"inuse", "heap", by_preload},
                {"heap", "heap", by_preload},
                {"lock", "lock", by_preload},
                {"delay", "lock", by_preload},
                {"contentions", "lock", by_preload},
                {"condition", "lock", by_preload},
                {"semaphore", "lock", by_preload}};
    *out = 0;
    for (size_t i = 0; i < SP_ARRAY_LENGTH(rows); i++)
        if (strcmp(rows[i].word, word) == 0)
            snprintf(out, SP_ADVICE_LENGTH, "; record it with SPANPROF_PROFILES=%s%s%s",
                     i ? "cpu," : "", rows[i].profile, rows[i].how);
}

static uint64_t wall_error(const sp_selection *selection)
{
    const sp_model_type *type = &selection->model->types[selection->type];
    uint64_t waited = selection->value;
    if (type->has_waiting_samples && selection->where_ns[SP_WHERE_CPU] <= waited)
        waited -= selection->where_ns[SP_WHERE_CPU];
    return sp_model_visits_error_ns(sp_model_period_ns(type), waited);
}

uint64_t sp_selection_error(const sp_selection *selection)
{
    const sp_model *model = selection->model;
    double variance = 0;
    if (model->types[selection->type].is_wall)
        return wall_error(selection);
    /* Blocks that were freed and allocated again make the error of what grew larger than the rest
     * of the difference shows. */
    if (!model->types[selection->type].has_draws || selection->grown)
        return 0;
    for (uint32_t i = 0; i < model->sample_index.count; i++)
        if (sp_selection_has(selection, &model->samples[i]))
            variance += sp_model_sampling_variance(model, i);
    return sp_model_error(variance);
}
