/* SPDX-License-Identifier: Apache-2.0 */
/* Most ticks find a stack that another tick of the window has found before. So the window remembers
 * for each stack in a ring which of its own stacks it became: a sample costs one hash of its
 * addresses, and the search for modules and locations is done once for each distinct stack. In a
 * new stack most addresses are known from others, so what an address became is remembered, too.
 *
 * Both are valid for one generation of the modules. A sample of an older generation is looked up in
 * full, because its stack ends where a library has been unloaded since. That happens only just
 * after a library was loaded or unloaded. */
#include "collect/aggregate_stacks.h"
#include "wall/visit.h"

#include <stdlib.h>
#include <string.h>

#include "core/reach.h"

/* One more than the depth, because the stack of a visit begins with its system call. */
enum { STACK_MAX = 1 + SP_VISIT_DEPTH_MAX };

/* The memory of these tables is bounded: at the bound they are emptied. */
enum { RECORDED_BYTES_MAX = 4 * 1024 * 1024, PCS_FIRST = 256, PCS_MAX = 16384 };

static sp_window_location locate(const sp_generation *generation, uint64_t address)
{
    const sp_module *module = generation ? sp_generation_find(generation, address) : NULL;
    return (sp_window_location){.module = (sp_module *)(uintptr_t)module,
                                .address = module ? address - module->bias : address};
}

static uint32_t put_in(sp_intern *locations, const sp_window_location *location)
{
    bool is_new;
    uint32_t number = sp_intern_put(locations, location, sizeof *location, &is_new);
    if (is_new && location->module)
        sp_module_acquire(location->module);
    return number;
}

static uint32_t put_location(sp_window *window, const sp_generation *generation, uint64_t pc)
{
    const sp_window_location location = locate(generation, pc);
    return put_in(&window->locations, &location);
}

/* ---- addresses ---- */

/* The entry of PC, or the free entry where it belongs. There must be a free one. */
static sp_window_pc *find_pc(const sp_window_pcs *pcs, uint64_t pc)
{
    uint32_t mask = pcs->capacity - 1;
    for (uint32_t i = (uint32_t)(pc * UINT64_C(0x9e3779b97f4a7c15) >> 32) & mask;;
         i = (i + 1) & mask)
        if (pcs->entries[i].pc == pc || !pcs->entries[i].location)
            return &pcs->entries[i];
}

static bool grow_pcs(sp_window_pcs *pcs)
{
    sp_window_pcs grown = {.capacity = pcs->capacity ? pcs->capacity * 2 : PCS_FIRST,
                           .count = pcs->count};
    grown.entries = calloc(grown.capacity, sizeof *grown.entries);
    if (!grown.entries)
        return false;
    for (uint32_t i = 0; i < pcs->capacity; i++)
        if (pcs->entries[i].location)
            *find_pc(&grown, pcs->entries[i].pc) = pcs->entries[i];
    free(pcs->entries);
    *pcs = grown;
    return true;
}

static void forget_pcs(sp_window_pcs *pcs)
{
    if (pcs->count)
        memset(pcs->entries, 0, pcs->capacity * sizeof *pcs->entries);
    pcs->count = 0;
}

/* At most a quarter full, so that most searches end at the first entry. */
static bool make_room_for_pc(sp_window_pcs *pcs)
{
    if (pcs->count < pcs->capacity / 4)
        return true;
    if (pcs->capacity < PCS_MAX)
        return grow_pcs(pcs);
    forget_pcs(pcs);
    return true;
}

static void remember_pc(sp_window_pcs *pcs, uint64_t pc, uint32_t location)
{
    if (!make_room_for_pc(pcs))
        return;
    *find_pc(pcs, pc) = (sp_window_pc){pc, location + 1};
    pcs->count++;
}

static uint32_t remembered_location(sp_window *window, const sp_generation *generation, uint64_t pc)
{
    sp_window_pcs *pcs = &window->recorded.pcs;
    if (SP_LIKELY(pcs->capacity)) {
        const sp_window_pc *entry = find_pc(pcs, pc);
        if (SP_LIKELY(entry->location))
            return entry->location - 1;
    }
    uint32_t number = put_location(window, generation, pc);
    if (number != SP_INTERN_FAILED)
        remember_pc(pcs, pc, number);
    return number;
}

/* ---- stacks ---- */

static bool is_of_newest_generation(const sp_aggregate_sample *sample)
{
    return sample->generation && !sample->changed;
}

/* Whether ADDRESS is in a library that has been unloaded, or that may have been unloaded and loaded
 * again. Another library may have been in its place when the sample was taken, so neither the name
 * nor the unwind rule is certain. */
static bool is_unloaded(const sp_aggregate_sample *sample, uint64_t address)
{
    const sp_module *module = sample->changed && sample->generation
                                  ? sp_generation_find(sample->generation, address)
                                  : NULL;
    return module && !sp_modules_has_stayed(sample->changed, sample->generation, module);
}

sp_walk_end sp_aggregate_stack_end(const sp_aggregate_sample *sample)
{
    const sp_sample_record *record = sample->record;
    for (uint32_t i = 0; sample->changed && i < record->count; i++)
        if (is_unloaded(sample, record->pcs[i]))
            return SP_WALK_UNLOADED;
    bool is_cut = record->leaf_count < record->count;
    return is_cut && record->end == SP_WALK_COMPLETE ? SP_WALK_TRUNCATED : (sp_walk_end)record->end;
}

static uint32_t put_cut_stack(sp_window *window, uint32_t *key, uint32_t length)
{
    key[length++] = SP_WALK_UNLOADED;
    return sp_intern_put(&window->stacks, key, length * sizeof key[0], NULL);
}

/* The usual case: no library can have been unloaded. Does what search_stack does. */
static uint32_t make_stack(sp_window *window, const sp_aggregate_sample *sample)
{
    const sp_sample_record *record = sample->record;
    uint32_t key[STACK_MAX + 2], length = 0;
    uint32_t count = record->count < STACK_MAX ? record->count : STACK_MAX;
    for (uint32_t i = 0; i < count; i++) {
        if (i == record->leaf_count)
            key[length++] = SP_WINDOW_GAP;
        key[length] = remembered_location(window, sample->generation, record->pcs[i]);
        if (key[length++] == SP_INTERN_FAILED)
            return SP_INTERN_FAILED;
    }
    key[length++] = record->end;
    return sp_intern_put(&window->stacks, key, length * sizeof key[0], NULL);
}

static uint32_t search_stack(sp_window *window, const sp_aggregate_sample *sample)
{
    const sp_sample_record *record = sample->record;
    uint32_t key[STACK_MAX + 2], length = 0;
    uint32_t count = record->count < STACK_MAX ? record->count : STACK_MAX;
    for (uint32_t i = 0; i < count; i++) {
        if (is_unloaded(sample, record->pcs[i]))
            return put_cut_stack(window, key, length);
        if (i == record->leaf_count)
            key[length++] = SP_WINDOW_GAP;
        key[length] = put_location(window, sample->generation, record->pcs[i]);
        if (key[length++] == SP_INTERN_FAILED)
            return SP_INTERN_FAILED;
    }
    key[length++] = record->end;
    return sp_intern_put(&window->stacks, key, length * sizeof key[0], NULL);
}

static bool make_room_for_stack(sp_window_recorded *recorded)
{
    return SP_REACH(recorded->numbers, recorded->stacks.count, recorded->capacity, 64);
}

static void forget_other_generations(sp_window_recorded *recorded, uint32_t generation)
{
    if (recorded->generation == generation)
        return;
    sp_window_recorded_clear(recorded);
    recorded->generation = generation;
}

/* The number of RECORD's stack in `recorded`. The key is the bytes of the record from `count` on,
 * which identify the stack and how it was walked. */
static uint32_t remember_stack(sp_window_recorded *recorded, const sp_sample_record *record,
                               bool *is_new)
{
    forget_other_generations(recorded, record->generation);
    if (sp_intern_bytes(&recorded->stacks) > RECORDED_BYTES_MAX)
        sp_intern_deinit(&recorded->stacks);
    size_t length = offsetof(sp_sample_record, pcs) - offsetof(sp_sample_record, count) +
                    record->count * sizeof record->pcs[0];
    return make_room_for_stack(recorded)
               ? sp_intern_put(&recorded->stacks, &record->count, length, is_new)
               : SP_INTERN_FAILED;
}

uint32_t sp_aggregate_put_stack(sp_window *window, const sp_aggregate_sample *sample)
{
    sp_window_recorded *recorded = &window->recorded;
    bool is_new;
    if (!is_of_newest_generation(sample))
        return search_stack(window, sample);
    uint32_t known = remember_stack(recorded, sample->record, &is_new);
    if (known == SP_INTERN_FAILED)
        return search_stack(window, sample);
    if (is_new || recorded->numbers[known] == SP_INTERN_FAILED)
        recorded->numbers[known] = make_stack(window, sample);
    return recorded->numbers[known];
}

/* ---- locks ---- */

uint32_t sp_aggregate_put_lock(sp_window *window, const sp_aggregate_sample *sample,
                               uint64_t address)
{
    bool is_known = sample->generation && !is_unloaded(sample, address);
    const sp_window_location lock = locate(is_known ? sample->generation : NULL, address);
    return window->locks.count < SP_WINDOW_LOCKS_MAX
               ? put_in(&window->locks, &lock)
               : sp_intern_find(&window->locks, &lock, sizeof lock);
}

void sp_window_recorded_clear(sp_window_recorded *recorded)
{
    sp_intern_clear(&recorded->stacks);
    forget_pcs(&recorded->pcs);
}

void sp_window_recorded_deinit(sp_window_recorded *recorded)
{
    sp_intern_deinit(&recorded->stacks);
    free(recorded->numbers);
    free(recorded->pcs.entries);
    memset(recorded, 0, sizeof *recorded);
}
