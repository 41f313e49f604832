/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/aggregate.h"

#include <stdlib.h>
#include <string.h>

#include "collect/aggregate_room.h"
#include "collect/aggregate_stacks.h"
#include "core/reach.h"

static bool make_room(sp_window_samples *samples)
{
    return SP_REACH(samples->values, samples->keys.count, samples->capacity, 256);
}

/* Samples of one thread are added one after the other and often have the same span, so most keys
 * equal the key before, whose number is *LAST. */
static inline uint32_t put_again(sp_intern *table, uint32_t *last, const void *key, size_t length)
{
    if (*last < table->count && memcmp(sp_intern_key(table, *last), key, length) == 0)
        return *last;
    uint32_t number = sp_intern_put(table, key, length, NULL);
    *last = number == SP_INTERN_FAILED ? 0 : number;
    return number;
}

/* Link 0 is "none" in every window. */
uint32_t sp_aggregate_put_link(sp_window *window, const sp_window_link *link)
{
    static const sp_window_link none;
    if (window->links.count == 0 && sp_intern_put(&window->links, &none, sizeof none, NULL) != 0)
        return SP_INTERN_FAILED;
    return put_again(&window->links, &window->last_link, link, sizeof *link);
}

/* The number of SAMPLE's set of attributes, plus 1; 0 is "none". A backend makes a series of each
 * set, so the number of sets has a bound. */
static uint32_t put_attributes(sp_window *window, const sp_aggregate_sample *sample)
{
    if (sample->attribute_bytes == 0)
        return 0;
    sp_intern *sets = &window->attribute_sets;
    uint32_t number = sets->count < SP_WINDOW_SETS_MAX
                          ? sp_intern_put(sets, sample->attributes, sample->attribute_bytes, NULL)
                          : sp_intern_find(sets, sample->attributes, sample->attribute_bytes);
    if (number != SP_INTERN_FAILED)
        return number + 1;
    window->dropped_attributes += sample->counted;
    return 0;
}

static void count_result(sp_window_samples *samples, sp_join_result result, uint64_t counted)
{
    switch (result) {
    case SP_JOIN_LINKED:
        samples->linked += counted;
        break;
    case SP_JOIN_NONE:
        samples->none += counted;
        break;
    case SP_JOIN_UNKNOWN:
        samples->unknown += counted;
        break;
    }
}

static void count_stack(sp_window_samples *samples, const sp_aggregate_sums *sums)
{
    if ((uint32_t)sums->end < SP_WINDOW_ENDS)
        samples->stacks_by_end[sums->end] += sums->counted;
    if (sums->by_frame_pointer)
        samples->stacks_by_frame_pointer += sums->counted;
}

/* The number of KEY among SAMPLES. KEY is shortened when a full window has no other room for it.
 * SP_INTERN_FAILED when memory is short. */
static uint32_t put_key(sp_window *window, sp_window_samples *samples, uint32_t max_samples,
                        sp_window_key *key, bool *is_new)
{
    *is_new = false;
    if (samples->keys.count >= max_samples) {
        uint32_t number = sp_intern_find(&samples->keys, key, sizeof *key);
        if (number != SP_INTERN_FAILED)
            return number;
        if (!sp_aggregate_make_room(window, samples, max_samples, key))
            return SP_INTERN_FAILED;
    }
    uint32_t number = make_room(samples) ? sp_intern_put(&samples->keys, key, sizeof *key, is_new)
                                         : SP_INTERN_FAILED;
    return number != SP_INTERN_FAILED ? number : sp_intern_find(&samples->keys, key, sizeof *key);
}

/* The sums of the sample with KEY. NULL when memory is short. */
static sp_window_sample *find_value(sp_window *window, sp_window_samples *samples,
                                    uint32_t max_samples, sp_window_key *key)
{
    bool is_new;
    uint32_t number = put_key(window, samples, max_samples, key, &is_new);
    if (number == SP_INTERN_FAILED)
        return NULL;
    if (is_new)
        samples->values[number] = (sp_window_sample){0};
    return &samples->values[number];
}

static bool make_room_for_time(sp_window_times *times)
{
    return SP_REACH(times->entries, times->count, times->capacity, 1024);
}

/* Add SAMPLE's time to the list of VALUE. Once a time was lost no more are kept, because a profile
 * has the times of all its samples or of none. */
static void keep_time(sp_window_times *times, sp_window_sample *value,
                      const sp_aggregate_sums *sample)
{
    if (!sample->time_ns)
        return;
    if (times->lost || sample->weight > SP_WINDOW_TIMES_MAX - times->periods ||
        !make_room_for_time(times)) {
        times->lost += sample->weight;
        return;
    }
    times->entries[times->count++] =
        (sp_window_time){.time_ns = sample->time_ns, .periods = (uint32_t)sample->weight};
    times->periods += sample->weight;
    const sp_window_sample this = {.first_time = times->count, .last_time = times->count};
    sp_window_times_append(times, value, &this);
}

/* SP_INTERN_FAILED when memory is short. */
static uint32_t put_holder_stack(sp_window *window, const sp_aggregate_holder *holder)
{
    const sp_aggregate_sample sample = {
        .record = holder->stack, .generation = holder->generation, .changed = holder->changed};
    return sp_aggregate_put_stack(window, &sample);
}

/* The number of SAMPLE's lock plus 1, as sp_window_holder has it; 0: none. The number of locks has
 * a bound, because each lock makes separate samples: a wait for a lock beyond it has no lock. */
static uint32_t put_lock(sp_window *window, const sp_aggregate_sample *sample)
{
    uint64_t address = sample->holder->lock;
    uint32_t number = address ? sp_aggregate_put_lock(window, sample, address) : 0;
    if (address && number == SP_INTERN_FAILED)
        window->dropped_locks += sample->counted;
    return address && number != SP_INTERN_FAILED ? number + 1 : 0;
}

/* SP_INTERN_FAILED when memory is short. */
static uint32_t put_holder(sp_window *window, const sp_aggregate_sample *sample)
{
    const sp_aggregate_holder *from = sample->holder;
    uint32_t link = sp_aggregate_put_link(window, &from->link);
    uint32_t stack = from->stack ? put_holder_stack(window, from) : 0;
    if (link == SP_INTERN_FAILED || stack == SP_INTERN_FAILED)
        return SP_INTERN_FAILED;
    const sp_window_holder holder = {
        .link = link, .stack = from->stack ? stack + 1 : 0, .lock = put_lock(window, sample)};
    if (!holder.link && !holder.stack && !holder.lock)
        return sp_window_wait(sample->wait);
    uint32_t number = sp_intern_put(&window->holders, &holder, sizeof holder, NULL);
    return number == SP_INTERN_FAILED ? number : SP_WINDOW_HOLDER | number;
}

bool sp_aggregate_identify(sp_window *window, const sp_aggregate_sample *sample, sp_window_key *key)
{
    *key = (sp_window_key){
        .stack = sp_aggregate_put_stack(window, sample),
        .link = sp_aggregate_put_link(window, &sample->link),
        .thread = put_again(&window->threads, &window->last_thread, sample->thread,
                            sizeof *sample->thread),
        .wait = sample->holder ? put_holder(window, sample) : sp_window_wait(sample->wait),
        .attributes = put_attributes(window, sample),
    };
    return key->stack != SP_INTERN_FAILED && key->link != SP_INTERN_FAILED &&
           key->thread != SP_INTERN_FAILED && key->wait != SP_INTERN_FAILED;
}

bool sp_aggregate_put(sp_window *window, sp_window_samples *samples, const sp_window_key *key,
                      const sp_aggregate_sums *sums, uint32_t max_samples)
{
    sp_window_key placed = *key;
    sp_window_sample *value = find_value(window, samples, max_samples, &placed);
    if (!value)
        return false;
    value->weight += sums->weight;
    value->count += sums->count;
    samples->count += sums->count;
    keep_time(&samples->times, value, sums);
    count_stack(samples, sums);
    count_result(samples, sums->result, sums->counted);
    sp_aggregate_recount(window, samples, key, &placed, sums->counted);
    return true;
}

bool sp_aggregate_add(sp_window *window, sp_window_samples *samples,
                      const sp_aggregate_sample *sample, uint32_t max_samples)
{
    sp_window_key key;
    if (!sp_aggregate_identify(window, sample, &key))
        return false;
    const sp_aggregate_sums sums = {.weight = sample->weight,
                                    .count = sample->count,
                                    .counted = sample->counted,
                                    .result = sample->result,
                                    .end = sp_aggregate_stack_end(sample),
                                    .by_frame_pointer = sample->record->by_frame_pointer != 0,
                                    .time_ns = sample->time_ns};
    return sp_aggregate_put(window, samples, &key, &sums, max_samples);
}

static void clear_samples(sp_window_samples *samples)
{
    sp_intern keys = samples->keys;
    sp_intern_clear(&keys);
    *samples = (sp_window_samples){
        .keys = keys,
        .values = samples->values,
        .capacity = samples->capacity,
        .times = {.entries = samples->times.entries, .capacity = samples->times.capacity},
    };
}

static void clear_locations(sp_intern *locations)
{
    for (uint32_t n = 0; n < locations->count; n++) {
        const sp_window_location *location = sp_intern_key(locations, n);
        if (location->module)
            sp_module_release(location->module);
    }
    sp_intern_clear(locations);
}

void sp_window_clear(sp_window *window)
{
    clear_locations(&window->locations);
    clear_locations(&window->locks);
    sp_window_recorded_clear(&window->recorded);
    sp_intern_clear(&window->links);
    sp_intern_clear(&window->threads);
    sp_intern_clear(&window->stacks);
    sp_intern_clear(&window->attribute_sets);
    sp_intern_clear(&window->holders);
    clear_samples(&window->cpu);
    clear_samples(&window->wall);
    for (int kind = 0; kind < SP_CALL_KINDS; kind++)
        clear_samples(&window->calls[kind]);
    window->unattributed_count = 0;
    window->unattributed_ns = window->dropped_ring_full = window->dropped_memory =
        window->dropped_small_stack = window->dropped_attributes = 0;
    window->wall_on_core_ns = 0;
    memset(window->wall_parts, 0, sizeof window->wall_parts);
    window->steal_ns = 0;
    window->dropped_calls = window->dropped_live = window->dropped_locks = 0;
    window->misuse = (sp_window_misuse){0};
    window->dropped_visits = window->wall_unmoved = window->wall_discarded = 0;
    window->fp_by_call = window->fp_by_return = window->fp_not_found = 0;
}

static void deinit_samples(sp_window_samples *samples)
{
    sp_intern_deinit(&samples->keys);
    free(samples->values);
    free(samples->times.entries);
}

void sp_window_deinit(sp_window *window)
{
    sp_window_clear(window);
    sp_window_recorded_deinit(&window->recorded);
    sp_intern_deinit(&window->locations);
    sp_intern_deinit(&window->links);
    sp_intern_deinit(&window->threads);
    sp_intern_deinit(&window->stacks);
    sp_intern_deinit(&window->attribute_sets);
    sp_intern_deinit(&window->holders);
    sp_intern_deinit(&window->locks);
    deinit_samples(&window->cpu);
    deinit_samples(&window->wall);
    for (int kind = 0; kind < SP_CALL_KINDS; kind++)
        deinit_samples(&window->calls[kind]);
    memset(window, 0, sizeof *window);
}
