/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/fold.h"

#include <stdlib.h>
#include <string.h>

enum { STACK_MAX = 512 };

static uint32_t put_location(sp_window *window, const sp_generation *generation, uint64_t pc)
{
    const sp_module *module = generation ? sp_generation_find(generation, pc) : NULL;
    sp_window_location location = {
        .module = (sp_module *)(uintptr_t)module,
        .address = module ? pc - module->bias : pc,
    };
    bool is_new;
    uint32_t number = sp_intern_put(&window->locations, &location, sizeof location, &is_new);
    if (is_new && location.module)
        sp_module_acquire(location.module);
    return number;
}

/* Whether PC is in a library that is no longer there, or may have been away. When the sample was taken another may have been in its place:
 * neither the name nor the rule by which the walk went on is certain. */
static bool is_unloaded(const sp_fold_sample *sample, uint64_t pc)
{
    const sp_module *module =
        sample->changed && sample->generation ? sp_generation_find(sample->generation, pc) : NULL;
    return module && !sp_modules_has_stayed(sample->changed, sample->generation, module);
}

static uint32_t put_cut_stack(sp_window *window, uint32_t *key, uint32_t length)
{
    key[length++] = SP_WALK_UNLOADED;
    return sp_intern_put(&window->stacks, key, length * sizeof key[0], NULL);
}

static uint32_t put_stack(sp_window *window, const sp_fold_sample *sample)
{
    const sp_sample_record *record = sample->record;
    uint32_t key[STACK_MAX + 2], length = 0;
    uint32_t count = record->count < STACK_MAX ? record->count : STACK_MAX;
    for (uint32_t i = 0; i < count; i++) {
        if (is_unloaded(sample, record->pcs[i]))
            return put_cut_stack(window, key, length);
        if (i == record->leaf_count)
            key[length++] = SP_WINDOW_GAP;
        uint32_t location = put_location(window, sample->generation, record->pcs[i]);
        if (location == SP_INTERN_FAILED)
            return SP_INTERN_FAILED;
        key[length++] = location;
    }
    key[length++] = record->end;
    return sp_intern_put(&window->stacks, key, length * sizeof key[0], NULL);
}

static uint32_t put_folded_stack(sp_window *window)
{
    uint32_t key = SP_WALK_FOLDED;
    window->folded_frames++;
    return sp_intern_put(&window->stacks, &key, sizeof key, NULL);
}

static bool make_room(sp_window *window)
{
    if (window->samples.count < window->sample_capacity)
        return true;
    uint32_t capacity = window->sample_capacity ? window->sample_capacity * 2 : 256;
    sp_window_sample *values = realloc(window->sample_values, capacity * sizeof *values);
    if (!values)
        return false;
    window->sample_values = values;
    window->sample_capacity = capacity;
    return true;
}

/* Link 0 is "none" in every window. */
static uint32_t put_link(sp_window *window, const sp_window_link *link)
{
    static const sp_window_link none;
    if (window->links.count == 0 && sp_intern_put(&window->links, &none, sizeof none, NULL) != 0)
        return SP_INTERN_FAILED;
    return sp_intern_put(&window->links, link, sizeof *link, NULL);
}

static void count_result(sp_window *window, sp_join_result result, uint32_t periods)
{
    switch (result) {
    case SP_JOIN_LINKED:
        window->samples_linked += periods;
        break;
    case SP_JOIN_NONE:
        window->samples_none += periods;
        break;
    case SP_JOIN_UNKNOWN:
        window->samples_unknown += periods;
        break;
    }
}

sp_walk_end sp_fold_stack_end(const sp_fold_sample *sample)
{
    const sp_sample_record *record = sample->record;
    for (uint32_t i = 0; sample->changed && i < record->count; i++)
        if (is_unloaded(sample, record->pcs[i]))
            return SP_WALK_UNLOADED;
    bool is_cut = record->leaf_count < record->count;
    return is_cut && record->end == SP_WALK_COMPLETE ? SP_WALK_TRUNCATED : (sp_walk_end)record->end;
}

static void count_stack(sp_window *window, const sp_fold_sample *sample)
{
    const sp_sample_record *record = sample->record;
    sp_walk_end end = sp_fold_stack_end(sample);
    if ((uint32_t)end < SP_WINDOW_ENDS)
        window->stacks_by_end[end] += record->periods;
    if (record->by_frame_pointer)
        window->stacks_by_frame_pointer += record->periods;
}

bool sp_fold_add(sp_window *window, const sp_fold_sample *sample, uint32_t max_samples)
{
    bool full = window->samples.count >= max_samples; /* then frames are dropped, never links */
    sp_window_key key = {
        .stack = full ? put_folded_stack(window) : put_stack(window, sample),
        .link = put_link(window, &sample->link),
        .thread = sp_intern_put(&window->threads, sample->thread, sizeof *sample->thread, NULL),
    };
    bool is_new = false;
    uint32_t number = SP_INTERN_FAILED;
    if (key.stack != SP_INTERN_FAILED && key.link != SP_INTERN_FAILED &&
        key.thread != SP_INTERN_FAILED && make_room(window))
        number = sp_intern_put(&window->samples, &key, sizeof key, &is_new);
    if (number == SP_INTERN_FAILED) {
        window->dropped_memory++;
        return false;
    }
    sp_window_sample *value = &window->sample_values[number];
    if (is_new)
        *value = (sp_window_sample){0};
    value->periods += sample->record->periods;
    value->ticks++;
    window->ticks++;
    count_stack(window, sample);
    count_result(window, sample->result, sample->record->periods);
    return true;
}

void sp_window_clear(sp_window *window)
{
    for (uint32_t n = 0; n < window->locations.count; n++) {
        const sp_window_location *location = sp_intern_key(&window->locations, n);
        if (location->module)
            sp_module_release(location->module);
    }
    sp_intern_clear(&window->locations);
    sp_intern_clear(&window->links);
    sp_intern_clear(&window->threads);
    sp_intern_clear(&window->stacks);
    sp_intern_clear(&window->samples);
    window->ticks = 0;
    window->samples_linked = window->samples_none = window->samples_unknown =
        window->samples_boundary = 0;
    memset(window->stacks_by_end, 0, sizeof window->stacks_by_end);
    window->stacks_by_frame_pointer = 0;
    window->residual_count = 0;
    window->residual_ns = window->dropped_ring_full = window->dropped_memory =
        window->dropped_small_stack = window->folded_frames = 0;
}

void sp_window_deinit(sp_window *window)
{
    sp_window_clear(window);
    sp_intern_deinit(&window->locations);
    sp_intern_deinit(&window->links);
    sp_intern_deinit(&window->threads);
    sp_intern_deinit(&window->stacks);
    sp_intern_deinit(&window->samples);
    free(window->sample_values);
    memset(window, 0, sizeof *window);
}
