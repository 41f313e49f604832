/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol/name_cache.h"

#include <stdlib.h>
#include <string.h>

#include "core/reach.h"

/* Key of `addresses`. It has no padding, because keys are compared bytewise. */
typedef struct address_key {
    uint64_t address;
    uint64_t module;
} address_key;

static void deinit_generation(sp_name_generation *generation)
{
    sp_intern_deinit(&generation->strings);
    sp_intern_deinit(&generation->addresses);
    sp_arena_deinit(&generation->frames);
    free(generation->lists);
    *generation = (sp_name_generation){0};
}

void sp_name_cache_deinit(sp_name_cache *cache)
{
    deinit_generation(&cache->young);
    deinit_generation(&cache->old);
}

const char *sp_name_cache_string(sp_name_cache *cache, const char *text)
{
    uint32_t number = sp_intern_put_string(&cache->young.strings, text);
    return number == SP_INTERN_FAILED ? NULL : sp_intern_key(&cache->young.strings, number);
}

sp_frame *sp_name_cache_frames(sp_name_cache *cache, uint32_t count)
{
    return sp_arena_array(&cache->young.frames, count, sizeof(sp_frame));
}

static sp_frame_list find(const sp_name_generation *generation, const address_key *key)
{
    uint32_t number = sp_intern_find(&generation->addresses, key, sizeof *key);
    return number == SP_INTERN_FAILED || number >= generation->capacity ? (sp_frame_list){0}
                                                                        : generation->lists[number];
}

/* Copy LIST, which belongs to the old generation, into the young one. */
static sp_frame_list copy_to_young(sp_name_cache *cache, sp_frame_list list)
{
    sp_frame *frames = sp_name_cache_frames(cache, list.count);
    for (uint32_t i = 0; i < list.count && frames; i++) {
        sp_frame *frame = &frames[i];
        *frame = list.frames[i];
        frame->name = sp_name_cache_string(cache, frame->name);
        frame->system_name = sp_name_cache_string(cache, frame->system_name);
        frame->file = sp_name_cache_string(cache, frame->file);
        if (!frame->name || !frame->system_name || !frame->file)
            frames = NULL;
    }
    return frames ? (sp_frame_list){frames, list.count} : (sp_frame_list){0};
}

sp_frame_list sp_name_cache_find(sp_name_cache *cache, uint64_t module, uint64_t address)
{
    address_key key = {.address = address, .module = module};
    sp_frame_list list = find(&cache->young, &key);
    if (list.count)
        return list;
    list = find(&cache->old, &key);
    if (list.count)
        list = copy_to_young(cache, list);
    if (list.count && !sp_name_cache_put(cache, module, address, list))
        list.count = 0;
    return list;
}

static bool reach(sp_name_generation *generation, uint32_t number)
{
    size_t old = generation->capacity;
    if (!SP_REACH(generation->lists, number, generation->capacity, 64))
        return false;
    memset(generation->lists + old, 0, (generation->capacity - old) * sizeof *generation->lists);
    return true;
}

bool sp_name_cache_put(sp_name_cache *cache, uint64_t module, uint64_t address, sp_frame_list list)
{
    sp_name_generation *young = &cache->young;
    address_key key = {.address = address, .module = module};
    uint32_t number = sp_intern_put(&young->addresses, &key, sizeof key, NULL);
    if (number == SP_INTERN_FAILED || !reach(young, number))
        return false;
    young->lists[number] = list;
    return true;
}

static size_t bytes_of(const sp_name_generation *generation)
{
    return sp_intern_bytes(&generation->strings) + sp_intern_bytes(&generation->addresses) +
           generation->frames.used_bytes + generation->capacity * sizeof *generation->lists;
}

size_t sp_name_cache_bytes(const sp_name_cache *cache)
{
    return bytes_of(&cache->young) + bytes_of(&cache->old);
}

bool sp_name_cache_age(sp_name_cache *cache, size_t limit_bytes)
{
    if (bytes_of(&cache->young) < limit_bytes / 2)
        return false;
    bool forgets = cache->old.addresses.count > 0;
    deinit_generation(&cache->old);
    cache->old = cache->young;
    cache->young = (sp_name_generation){0};
    return forgets;
}
