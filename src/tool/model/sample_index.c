/* SPDX-License-Identifier: Apache-2.0 */
#include "tool/model/sample_index.h"

#include <stdlib.h>
#include <string.h>

/* The length of the key of a sample: all members before `value`. Samples with equal keys are added
 * up. */
#define KEY_BYTES (10 * sizeof(uint32_t))
_Static_assert(offsetof(sp_model_sample, lock) + sizeof(uint32_t) == KEY_BYTES,
               "the key is not the beginning of a sample");

static uint64_t hash_of(const sp_model_sample *sample)
{
    return sp_hash_bytes(sample, KEY_BYTES);
}

/* The upper half of a hash. The lower half chooses the slot. */
static uint32_t tag_of(uint64_t hash)
{
    return (uint32_t)(hash >> 32);
}

static bool grow(sp_sample_index *index, const sp_model_sample *samples)
{
    uint32_t count = index->slot_count ? index->slot_count * 2 : 1024;
    sp_intern_slot *slots = calloc(count, sizeof *slots);
    if (!slots)
        return false;
    for (uint32_t n = 0; n < index->count; n++) {
        uint64_t hash = hash_of(&samples[n]);
        uint32_t i = (uint32_t)hash & (count - 1);
        while (slots[i].number)
            i = (i + 1) & (count - 1);
        slots[i] = (sp_intern_slot){tag_of(hash), n + 1};
    }
    free(index->slots);
    index->slots = slots;
    index->slot_count = count;
    return true;
}

/* The slot of the sample that has the key of SAMPLE, or the free slot for it. */
static sp_intern_slot *find_slot(const sp_sample_index *index, const sp_model_sample *samples,
                                 const sp_model_sample *sample, uint64_t hash)
{
    uint32_t mask = index->slot_count - 1;
    for (uint32_t i = (uint32_t)hash & mask;; i = (i + 1) & mask) {
        sp_intern_slot *slot = &index->slots[i];
        if (slot->number == 0 || (slot->tag == tag_of(hash) &&
                                  memcmp(&samples[slot->number - 1], sample, KEY_BYTES) == 0))
            return slot;
    }
}

uint32_t sp_sample_index_put(sp_sample_index *index, const sp_model_sample *samples,
                             const sp_model_sample *sample, bool *is_new)
{
    bool is_full = (uint64_t)(index->count + 1) * 4 > (uint64_t)index->slot_count * 3;
    *is_new = false;
    if (index->count == SP_INTERN_FAILED - 1 || (is_full && !grow(index, samples)))
        return SP_INTERN_FAILED;
    uint64_t hash = hash_of(sample);
    sp_intern_slot *slot = find_slot(index, samples, sample, hash);
    if (slot->number)
        return slot->number - 1;
    *slot = (sp_intern_slot){tag_of(hash), ++index->count};
    *is_new = true;
    return index->count - 1;
}

void sp_sample_index_prefetch(const sp_sample_index *index, const sp_model_sample *sample)
{
    if (index->slot_count)
        __builtin_prefetch(&index->slots[(uint32_t)hash_of(sample) & (index->slot_count - 1)]);
}

void sp_sample_index_deinit(sp_sample_index *index)
{
    free(index->slots);
    *index = (sp_sample_index){0};
}
