/* SPDX-License-Identifier: Apache-2.0 */
#include "core/intern.h"

#include <stdlib.h>
#include <string.h>

#include "core/arena.h"
#include "core/reach.h"
#include "core/word.h"

static uint64_t mix(uint64_t a, uint64_t b)
{
    __uint128_t product = (__uint128_t)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* Fewer than eight bytes as a word, without a loop. The two loads may overlap; the bytes that both
 * read are equal. */
static uint64_t short_word(const unsigned char *p, size_t length)
{
    if (length >= 4) {
        uint32_t low, high;
        memcpy(&low, p, 4);
        memcpy(&high, p + length - 4, 4);
        return low | (uint64_t)high << 8 * (length - 4);
    }
    if (length == 0)
        return 0;
    return p[0] | (uint64_t)p[length / 2] << 8 * (length / 2) |
           (uint64_t)p[length - 1] << 8 * (length - 1);
}

/* Fractional parts of the square roots of 2, 3, 5 and 7. */
static const uint64_t factors[] = {0x6a09e667f3bcc909u, 0xbb67ae8584caa73bu, 0x3c6ef372fe94f82bu,
                                   0xa54ff53a5f1d36f1u};

/* Hash BLOCKS of 32 bytes, for a long key: 16 bytes go into each of two sums, which the processor
 * computes in parallel. */
static uint64_t hash_blocks(uint64_t hash, const unsigned char *p, size_t blocks)
{
    uint64_t other = hash ^ factors[2];
    for (; blocks > 0; p += 32, blocks--) {
        hash = mix(hash ^ sp_word_load(p, 0), factors[0] ^ sp_word_load(p, 1));
        other = mix(other ^ sp_word_load(p, 2), factors[3] ^ sp_word_load(p, 3));
    }
    return hash ^ other;
}

/* Multiply-fold hashing: two words are multiplied, and the halves of the 128-bit product folded
 * together. */
static inline uint64_t hash_of(const void *data, size_t length)
{
    const unsigned char *p = data;
    uint64_t hash = 0x9e3779b97f4a7c15u ^ length, last[2];
    if (length >= 64) {
        hash = hash_blocks(hash, p, length / 32);
        p += length & ~(size_t)31;
        length &= 31;
    }
    for (; length >= 16; p += 16, length -= 16)
        hash = mix(hash ^ sp_word_load(p, 0), factors[0] ^ sp_word_load(p, 1));
    last[0] = length >= 8 ? sp_word_load(p, 0) : short_word(p, length);
    last[1] = length >= 8 ? short_word(p + 8, length - 8) : 0;
    return mix(hash ^ last[0], factors[1] ^ last[1]);
}

uint64_t sp_hash_bytes(const void *data, size_t length)
{
    return hash_of(data, length);
}

/* The upper half of a hash: the lower one chooses the slot. */
static uint32_t tag_of(uint64_t hash)
{
    return (uint32_t)(hash >> 32);
}

/* Keys of 8 to 40 bytes are compared without a call. A and B may be NULL when LENGTH is 0. */
static inline bool is_equal(const unsigned char *a, const unsigned char *b, size_t length)
{
    if (length < 8 || length > 40)
        return length == 0 || memcmp(a, b, length) == 0;
    uint64_t difference = sp_word_load(a + length - 8, 0) ^ sp_word_load(b + length - 8, 0);
    for (size_t i = 0; i + 8 < length; i += 8)
        difference |= sp_word_load(a + i, 0) ^ sp_word_load(b + i, 0);
    return difference == 0;
}

/* The slot's tag excludes most other keys, so that their entries, in other cache lines, are not
 * read. */
static inline sp_intern_slot *find_slot(const sp_intern *table, uint64_t hash, const void *key,
                                        size_t length)
{
    uint32_t mask = table->slot_count - 1;
    for (uint32_t i = (uint32_t)hash & mask;; i = (i + 1) & mask) {
        sp_intern_slot *slot = &table->slots[i];
        if (slot->number == 0)
            return slot;
        if (slot->tag != tag_of(hash))
            continue;
        const sp_intern_entry *entry = &table->entries[slot->number - 1];
        if (entry->hash == hash && entry->length == length && is_equal(entry->key, key, length))
            return slot;
    }
}

static bool grow_slots(sp_intern *table)
{
    uint32_t count = table->slot_count ? table->slot_count * 2 : 64;
    sp_intern_slot *slots = calloc(count, sizeof *slots);
    if (!slots)
        return false;
    for (uint32_t n = 0; n < table->count; n++) {
        uint64_t hash = table->entries[n].hash;
        uint32_t i = (uint32_t)hash & (count - 1);
        while (slots[i].number)
            i = (i + 1) & (count - 1);
        slots[i] = (sp_intern_slot){tag_of(hash), n + 1};
    }
    free(table->slots);
    table->slots = slots;
    table->slot_count = count;
    return true;
}

static bool grow_entries(sp_intern *table)
{
    if (!table->memory) {
        table->memory = calloc(1, sizeof(sp_arena));
        if (!table->memory)
            return false;
    }
    return SP_REACH(table->entries, table->count, table->entry_capacity, 48);
}

static bool make_room(sp_intern *table)
{
    if (table->count == table->entry_capacity && !grow_entries(table))
        return false;
    return (uint64_t)(table->count + 1) * 4 <= (uint64_t)table->slot_count * 3 || grow_slots(table);
}

uint32_t sp_intern_put(sp_intern *table, const void *key, size_t length, bool *is_new)
{
    if (is_new)
        *is_new = false;
    if (length > UINT32_MAX || !make_room(table))
        return SP_INTERN_FAILED;
    uint64_t hash = hash_of(key, length);
    sp_intern_slot *slot = find_slot(table, hash, key, length);
    if (slot->number)
        return slot->number - 1;
    void *copy = sp_arena_strndup(table->memory, key, length);
    if (!copy)
        return SP_INTERN_FAILED;
    table->entries[table->count] =
        (sp_intern_entry){.hash = hash, .key = copy, .length = (uint32_t)length};
    *slot = (sp_intern_slot){tag_of(hash), ++table->count};
    if (is_new)
        *is_new = true;
    return table->count - 1;
}

uint32_t sp_intern_put_string(sp_intern *table, const char *text)
{
    return sp_intern_put(table, text, strlen(text), NULL);
}

uint32_t sp_intern_find(const sp_intern *table, const void *key, size_t length)
{
    if (!table->slot_count)
        return SP_INTERN_FAILED;
    const sp_intern_slot *slot = find_slot(table, hash_of(key, length), key, length);
    return slot->number ? slot->number - 1 : SP_INTERN_FAILED;
}

size_t sp_intern_bytes(const sp_intern *table)
{
    const sp_arena *memory = table->memory;
    return (memory ? memory->used_bytes : 0) + table->entry_capacity * sizeof *table->entries +
           table->slot_count * sizeof *table->slots;
}

void sp_intern_clear(sp_intern *table)
{
    table->count = 0;
    if (table->slots)
        memset(table->slots, 0, table->slot_count * sizeof *table->slots);
    if (table->memory)
        sp_arena_reset(table->memory);
}

void sp_intern_deinit(sp_intern *table)
{
    free(table->entries);
    free(table->slots);
    if (table->memory)
        sp_arena_deinit(table->memory);
    free(table->memory);
    memset(table, 0, sizeof *table);
}
