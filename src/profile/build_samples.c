/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the samples of a profile from those of the window: samples that are equal in the profile
 * are added up. Their links depend on the scope. */
#include <stdlib.h>
#include <string.h>

#include "profile/build.h"

static bool all_zero(const uint8_t *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (bytes[i])
            return false;
    return true;
}

static uint32_t make_link(sp_build *b, uint32_t number, spanprof_link_scope scope)
{
    const sp_window_link *link = sp_intern_key(&b->window->links, number);
    const uint8_t *span = link->span_id;
    if (scope == SPANPROF_LINK_SCOPE_ROOT &&
        !all_zero(link->root_span_id, sizeof link->root_span_id))
        span = link->root_span_id;
    /* a link needs both ids; with one alone no span can be found */
    if (scope == SPANPROF_LINK_SCOPE_NONE || all_zero(link->trace_id, sizeof link->trace_id) ||
        all_zero(span, sizeof link->span_id))
        return 0;
    return sp_dictionary_link(&b->dictionary, link->trace_id, span);
}

static uint32_t build_link(sp_build *b, uint32_t number, spanprof_link_scope scope)
{
    if (!b->links[number])
        b->links[number] = make_link(b, number, scope) + 1;
    return b->links[number] - 1;
}

static uint64_t saturating_product(uint64_t a, uint64_t b)
{
    uint64_t product;
    return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

static void project_sample(sp_build *b, const sp_window_part *part, uint32_t number,
                           spanprof_link_scope scope)
{
    const sp_window_key *from = sp_intern_key(&part->samples->keys, number);
    const sp_window_sample *sums = &part->samples->values[number];
    uint64_t value = saturating_product(b->by_count ? sums->count : sums->weight, part->unit);
    if (!value) /* backends drop a value of 0, or fail on it */
        return;
    b->samples.list[b->samples.count++] = (sp_projected_sample){
        .stack = sp_build_stack(b, from->stack),
        .link = build_link(b, from->link, scope),
        .attributes = sp_build_attributes(b, from),
        .from = number,
        .value = sp_saturating_sum(0, value),
    };
}

void sp_build_project(sp_build *b, const sp_window_part *part, spanprof_link_scope scope)
{
    for (uint32_t i = 0; i < part->samples->keys.count; i++)
        if (sp_window_part_has(part, i))
            project_sample(b, part, i, scope);
}

void sp_build_begin_profile(sp_build *b)
{
    b->samples.count = 0;
    memset(b->links, 0, b->window->links.count * sizeof *b->links);
}

/* The samples are taken in sorted order. Each becomes a sample of the profile, or is added to the
 * one before when only the value differs. attributes.offset is the number of a list until the
 * dictionary is finished. */
static void add_up(sp_build *b, sp_profile *profile)
{
    const sp_projected_sample *last = NULL;
    uint32_t count = 0;
    for (uint32_t i = 0; i < b->samples.count; i++) {
        const sp_projected_sample *sample = &b->samples.list[b->samples.order[i]];
        if (!last || !sp_sample_is_same(last, sample))
            profile->samples[count++] =
                (sp_profile_sample){.stack_index = sample->stack,
                                    .link_index = sample->link,
                                    .attributes = {.offset = sample->attributes}};
        int64_t *sum = &profile->samples[count - 1].value;
        *sum = sp_saturating_sum(*sum, (uint64_t)sample->value);
        b->samples.places[sample->from] = count;
        last = sample;
    }
    profile->sample_count = count;
}

void sp_build_write_samples(sp_build *b, sp_profile *profile)
{
    uint32_t count = b->samples.count;
    profile->samples = sp_arena_array(&b->data->memory, count, sizeof *profile->samples);
    if (!sp_sample_order(b->samples.list, count, b->samples.order))
        b->dictionary.failed = true;
    else if (profile->samples)
        add_up(b, profile);
}

static uint64_t sum_of_weights(const sp_window_samples *samples)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < samples->keys.count; i++)
        sum += samples->values[i].weight;
    return sum;
}

bool sp_build_has_times(const sp_window *window)
{
    const sp_window_times *times = &window->cpu.times;
    return times->periods > 0 && times->periods == sum_of_weights(&window->cpu);
}

/* How many periods lose their time. All samples of a profile have one shape: when the time of one
 * period is missing, none is written. 0 also when no times were recorded. */
uint64_t sp_build_dropped_times(const sp_window *window)
{
    const sp_window_times *times = &window->cpu.times;
    bool recorded = times->periods > 0 || times->lost > 0;
    return recorded && !sp_build_has_times(window) ? sum_of_weights(&window->cpu) : 0;
}

static int compare_times(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return (left > right) - (left < right);
}

/* Add the times of FROM to SAMPLE, moved into the window: a tick may have read its clock just
 * before the window began, and the clock may have been set. */
static void add_times(sp_build *b, sp_profile_sample *sample, const sp_window_sample *from)
{
    const sp_window *w = b->window;
    for (uint32_t at = from->first_time; at;) {
        const sp_window_time *time = &w->cpu.times.entries[at - 1];
        uint64_t inside =
            sp_max_u64(w->start_time_ns, sp_min_u64(time->time_ns, w->end_time_ns - 1));
        for (uint32_t i = 0; i < time->periods; i++)
            b->data->timestamps[sample->timestamps.offset + sample->timestamps.count++] = inside;
        at = at == from->last_time ? 0 : time->next;
    }
}

/* A time for each period, in order. The value of a sample of the CPU profile is the number of its
 * periods. */
void sp_build_write_times(sp_build *b, sp_profile *profile)
{
    const sp_window_samples *cpu = &b->window->cpu;
    uint32_t at = 0;
    b->data->timestamps =
        sp_arena_array(&b->data->memory, cpu->times.periods, sizeof *b->data->timestamps);
    if (b->data->memory.failed || b->dictionary.failed)
        return;
    for (uint32_t i = 0; i < profile->sample_count; i++) {
        profile->samples[i].timestamps.offset = at;
        at += (uint32_t)profile->samples[i].value;
    }
    for (uint32_t i = 0; i < b->samples.count; i++) {
        uint32_t from = b->samples.list[i].from;
        add_times(b, &profile->samples[b->samples.places[from] - 1], &cpu->values[from]);
    }
    for (uint32_t i = 0; i < profile->sample_count; i++) {
        sp_index_list list = profile->samples[i].timestamps;
        qsort(b->data->timestamps + list.offset, list.count, sizeof(uint64_t), compare_times);
    }
}
