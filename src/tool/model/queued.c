/* SPDX-License-Identifier: Apache-2.0 */
/* Finds spans that lasted longer than threads worked and waited for them, beyond chance. Wall time
 * is a sum over all threads. If several threads work at once, it is larger, and less of the time
 * without a thread is found, never more. Time in which the process was not sampled does not
 * count. */
#include "tool/model/queued.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/compiler.h"
#include "tool/model/hidden.h"
#include "tool/model/process.h"
#include "tool/model/sum.h"
#include "tool/text/messages.h"

/* If more than one in LOST_OF of the linked time was lost, nothing is reported, because the lost
 * time may belong to one span. */
enum { LOST_OF = 10 };

typedef struct window {
    sp_process process;
    uint64_t begin_ns, end_ns;
} window;

typedef struct search {
    const sp_model *model;
    const sp_model_type *type;
    sp_intern traces;     /* ids of traces that have samples of spans that the files do not have */
    uint64_t *missing_ns; /* by number of `traces`: the value of these samples */
    double all_missing_ns;
    window *windows; /* of all processes, sorted by begin */
    size_t count;
    window *own; /* the windows of `process`, without overlaps */
    size_t own_count;
    const Sp__Resource__Resource *resource; /* of the last span that was examined */
    sp_process process;                     /* the process of `resource` */
    bool has_process;
} search;

static int compare_windows(const void *a, const void *b)
{
    uint64_t x = ((const window *)a)->begin_ns, y = ((const window *)b)->begin_ns;
    return (x > y) - (x < y);
}

static bool collect_windows(search *search, uint32_t type)
{
    const sp_model *model = search->model;
    search->windows = malloc((model->profile_count + 1) * sizeof *search->windows);
    search->own = malloc((model->profile_count + 1) * sizeof *search->own);
    if (!search->windows || !search->own)
        return false;
    for (size_t i = 0; i < model->profile_count; i++) {
        const sp_model_profile *profile = &model->profiles[i];
        if (profile->type == type)
            search->windows[search->count++] =
                (window){sp_process_of(profile->resource, profile->dictionary),
                         profile->message->time_unix_nano, sp_profile_end_ns(profile->message)};
    }
    if (search->count)
        qsort(search->windows, search->count, sizeof *search->windows, compare_windows);
    return true;
}

/* Add NEXT to the own windows, or join it with the last one. A window that was too large for one
 * request has several parts with the same time. */
static void add_own(search *search, const window *next)
{
    window *last = search->own_count ? &search->own[search->own_count - 1] : NULL;
    if (!last || next->begin_ns > last->end_ns)
        search->own[search->own_count++] = *next;
    else if (next->end_ns > last->end_ns)
        last->end_ns = next->end_ns;
}

static void take_process(search *search, const sp_model_span *span)
{
    if (search->has_process && search->resource == span->resource)
        return;
    sp_process process = sp_process_of(span->resource, NULL);
    bool is_known = search->has_process && sp_process_is_same(&process, &search->process);
    search->has_process = true;
    search->resource = span->resource;
    search->process = process;
    if (is_known)
        return;
    search->own_count = 0;
    for (size_t i = 0; i < search->count; i++)
        if (sp_process_may_be_same(&search->windows[i].process, &process))
            add_own(search, &search->windows[i]);
}

/* The first window of the process that ends after TIME_NS. */
static size_t find_window(const search *search, uint64_t time_ns)
{
    size_t low = 0, high = search->own_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (search->own[middle].end_ns > time_ns)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* For how much of SPAN's duration the wall time of its process was sampled. */
static uint64_t sampled_ns(search *search, const sp_model_span *span)
{
    uint64_t sum = 0;
    take_process(search, span);
    for (size_t i = find_window(search, span->start_ns);
         i < search->own_count && search->own[i].begin_ns < span->end_ns; i++) {
        const window *at = &search->own[i];
        uint64_t begin = at->begin_ns > span->start_ns ? at->begin_ns : span->start_ns;
        sum += (at->end_ns < span->end_ns ? at->end_ns : span->end_ns) - begin;
    }
    return sum;
}

/* The value of samples in SPAN's trace whose spans the files do not have. These spans may be
 * descendants of SPAN, and their values are not in SPAN's sum. */
static uint64_t missing_of(const search *search, const sp_model_span *span)
{
    uint32_t trace = sp_intern_find(&search->traces, span->id.trace_id, sizeof span->id.trace_id);
    return trace == SP_INTERN_FAILED ? 0 : search->missing_ns[trace];
}

static void fill_span(search *search, sp_model_span *span)
{
    span->sampled_ns = sampled_ns(search, span);
    span->missing_ns = missing_of(search, span);
    span->queued_ns = sp_queued_of_span(search->model, search->type, span);
}

/* Add a sample to the sum of its trace. The files do not have the span of the sample. */
static bool add_missing(search *search, const sp_model_sample *sample)
{
    const sp_model_link *link = sp_intern_key(&search->model->links, sample->link);
    uint32_t trace = sp_intern_put(&search->traces, link->trace_id, sizeof link->trace_id, NULL);
    if (trace == SP_INTERN_FAILED)
        return false;
    sp_sum_add(&search->missing_ns[trace], sample->value);
    search->all_missing_ns += (double)sample->value;
    return true;
}

static bool find_missing(search *search, uint32_t type)
{
    const sp_model *model = search->model;
    search->missing_ns = calloc(model->links.count + (size_t)1, sizeof *search->missing_ns);
    bool done = search->missing_ns != NULL;
    for (uint32_t i = 0; done && i < model->sample_index.count; i++) {
        const sp_model_sample *sample = &model->samples[i];
        if (sample->type == type && sample->link &&
            sp_model_link_span(model, sample->link) == SP_MODEL_NONE)
            done = add_missing(search, sample);
    }
    return done;
}

/* The average time that a visit stood for. It is more than a period when there were too many
 * threads to visit each in each round, or when rounds came late. */
static uint64_t find_visit_ns(const sp_model *model, uint32_t type)
{
    uint64_t visits = 0, waited = 0, period = sp_model_period_ns(&model->types[type]);
    for (size_t i = 0; i < model->profile_count; i++)
        if (model->profiles[i].type == type)
            sp_sum_add(&visits,
                       sp_model_profile_number(&model->profiles[i], "spanprof.wall.visits"));
    for (uint32_t i = 0; i < model->sample_index.count; i++)
        if (model->samples[i].type == type && model->samples[i].where != SP_WHERE_CPU)
            sp_sum_add(&waited, model->samples[i].value);
    return visits && waited / visits > period ? waited / visits : period;
}

static double linked_ns(const sp_model *model, uint32_t type)
{
    double sum = 0;
    for (uint32_t i = 0; i < model->sample_index.count; i++)
        if (model->samples[i].type == type && model->samples[i].link)
            sum += (double)model->samples[i].value;
    return sum;
}

/* The number of samples of PROFILE whose span is unknown, or that were dropped. */
static double lost_samples(const sp_model_profile *profile)
{
    static const char *const keys[] = {"spanprof.samples.unknown", "spanprof.dropped.visits",
                                       "spanprof.dropped.ring_full", "spanprof.dropped.memory",
                                       "spanprof.dropped.small_stack"};
    double sum = 0;
    for (size_t i = 0; i < SP_ARRAY_LENGTH(keys); i++)
        sum += (double)sp_model_profile_number(profile, keys[i]);
    return sum;
}

/* The lost time: that of lost samples, CPU time without a sample, and time that the host of a
 * virtual machine took. The last is added to all samples, but may belong to one span. */
static double lost_ns(const sp_model *model, uint32_t type)
{
    uint32_t cpu = sp_model_cpu_type(model, true);
    double sum = 0;
    for (size_t i = 0; i < model->profile_count; i++) {
        const sp_model_profile *profile = &model->profiles[i];
        if (profile->type == type || profile->type == cpu)
            sum += lost_samples(profile) * (double)profile->message->period;
        if (profile->type == type)
            sum += (double)sp_model_profile_number(profile, "spanprof.unattributed_ns") +
                   (double)sp_model_profile_number(profile, "spanprof.steal_ns");
    }
    return sum;
}

/* Whether wall time of the type was sampled from outside. Such wall time does not include the time
 * in which a thread waited for a core. */
static bool is_from_outside(const sp_model *model, uint32_t type)
{
    for (size_t i = 0; i < model->profile_count; i++)
        if (model->profiles[i].type == type && sp_model_is_from_outside(&model->profiles[i]))
            return true;
    return false;
}

static bool can_tell(const sp_model *model, uint32_t type)
{
    if (type == SP_MODEL_NONE || model->types[type].is_unlinked ||
        sp_model_period_ns(&model->types[type]) == 0 || sp_model_is_of_two_runs(model) ||
        is_from_outside(model, type))
        return false;
    return lost_ns(model, type) <= linked_ns(model, type) / LOST_OF;
}

int sp_model_find_queued(sp_model *model)
{
    uint32_t type = sp_model_wall_type(model, true), cpu = sp_model_cpu_type(model, true);
    if (!can_tell(model, type))
        return SP_TOOL_DONE;
    search search = {.model = model, .type = &model->types[type]};
    model->queues = (sp_model_queues){
        .is_known = true,
        .tick_ns = sp_model_tick_ns(cpu == SP_MODEL_NONE ? NULL : &model->types[cpu]),
        .visit_ns = find_visit_ns(model, type),
        .lost_ns = lost_ns(model, type)};
    bool done = collect_windows(&search, type) && find_missing(&search, type) &&
                sp_queued_count_threads(model, type, linked_ns(model, type));
    model->queues.missing_ns = search.all_missing_ns;
    for (uint32_t i = 0; done && i < model->span_index.count; i++)
        fill_span(&search, &model->spans[i]);
    sp_intern_deinit(&search.traces);
    free(search.missing_ns);
    free(search.windows);
    free(search.own);
    return done ? SP_TOOL_DONE : sp_tool_no_memory();
}
