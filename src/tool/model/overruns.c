/* SPDX-License-Identifier: Apache-2.0 */
/* Finds spans that have more CPU time than all threads that worked for them can use while the span
 * lasts. The reason is often a scope that was not detached. The samples name the threads. */
#include <string.h>

#include "core/compiler.h"
#include "tool/model/model.h"
#include "tool/text/messages.h"

/* The CPU time above the duration that is tolerated: a share of the duration, and for each thread a
 * tick at both ends. A timer fires only at the kernel's timer ticks, which may be 10 ms apart even
 * if the period of the timer is shorter. Each sample then has the weight of several periods. */
enum { EXTRA_PERCENT = 10, EXTRA_TICKS = 2, KERNEL_TICK_NS = 10000000 };

/* A thread that worked for a span. The texts are strings of the model: equal texts are one
 * pointer. */
typedef struct worker {
    const char *service, *instance;
    int64_t tid;
    uint64_t span;
} worker;

typedef struct search {
    sp_model *model;
    sp_intern workers;
    const sp_model_profile *profile;
    bool failed;
} search;

/* Whether entry INDEX of the attribute table is a thread id. INDEX may be outside the table,
 * because the attribute indices of CPU samples were not checked when the model was built. */
static bool is_thread(const Sp__Profiles__ProfilesDictionary *d, int32_t index)
{
    if (index < 0 || (size_t)index >= d->n_attribute_table)
        return false;
    const Sp__Profiles__KeyValueAndUnit *attribute = d->attribute_table[index];
    int32_t key = attribute->key_strindex;
    return key > 0 && (size_t)key < d->n_string_table && attribute->value &&
           attribute->value->value_case == SP__COMMON__ANY_VALUE__VALUE_INT_VALUE &&
           strcmp(d->string_table[key], "thread.id") == 0;
}

bool sp_model_find_thread(const sp_model_profile *profile, const Sp__Profiles__Sample *sample,
                          int64_t *tid)
{
    const Sp__Profiles__ProfilesDictionary *d = profile->dictionary;
    for (size_t i = 0; i < sample->n_attribute_indices; i++) {
        int32_t index = sample->attribute_indices[i];
        if (!is_thread(d, index))
            continue;
        *tid = d->attribute_table[index]->value->int_value;
        return true;
    }
    return false;
}

static uint32_t find_span(const search *search, const Sp__Profiles__Sample *sample)
{
    const Sp__Profiles__Link *link = search->profile->dictionary->link_table[sample->link_index];
    sp_model_link id;
    if (link->trace_id.len != sizeof id.trace_id || link->span_id.len != sizeof id.span_id)
        return SP_MODEL_NONE;
    memcpy(id.trace_id, link->trace_id.data, sizeof id.trace_id);
    memcpy(id.span_id, link->span_id.data, sizeof id.span_id);
    return sp_model_span_of_link(search->model, &id);
}

/* Note that the thread TID worked for SPAN and its ancestors. The walk stops at a span that has the
 * thread already, because its ancestors have it, too. */
static void add_worker(search *search, uint32_t span, int64_t tid)
{
    bool is_new = true;
    while (span != SP_MODEL_NONE && is_new && !search->failed) {
        worker key = {search->profile->service, search->profile->instance, tid, span};
        search->failed =
            sp_intern_put(&search->workers, &key, sizeof key, &is_new) == SP_INTERN_FAILED;
        search->model->spans[span].threads += is_new;
        span = search->model->spans[span].parent;
    }
}

/* Link indices are inside the table here, because the model was built from the same samples. */
static void add_workers(search *search)
{
    const Sp__Profiles__Profile *message = search->profile->message;
    for (size_t i = 0; i < message->n_samples; i++) {
        int64_t tid;
        const Sp__Profiles__Sample *sample = message->samples[i];
        if (sample->link_index && sp_model_find_thread(search->profile, sample, &tid))
            add_worker(search, find_span(search, sample), tid);
    }
}

uint64_t sp_model_tick_ns(const sp_model_type *type)
{
    return type && type->period > KERNEL_TICK_NS ? (uint64_t)type->period : KERNEL_TICK_NS;
}

static bool overruns(const sp_model_span *span, const sp_model_type *type)
{
    double tick = (double)sp_model_tick_ns(type);
    double of_a_thread =
        (double)(span->end_ns - span->start_ns) * (100 + EXTRA_PERCENT) / 100 + EXTRA_TICKS * tick;
    return span->threads && (double)span->total_value > span->threads * of_a_thread;
}

int sp_model_find_overruns(sp_model *model)
{
    search search = {.model = model};
    uint32_t type = sp_model_cpu_type(model, true);
    if (type == SP_MODEL_NONE || type != sp_model_time_type(model))
        return SP_TOOL_DONE;
    for (size_t i = 0; i < model->profile_count && !search.failed; i++) {
        search.profile = &model->profiles[i];
        if (search.profile->type == type)
            add_workers(&search);
    }
    for (uint32_t i = 0; i < model->span_index.count; i++)
        model->spans[i].overruns = overruns(&model->spans[i], &model->types[type]);
    sp_intern_deinit(&search.workers);
    return search.failed ? sp_tool_no_memory() : SP_TOOL_DONE;
}
