/* SPDX-License-Identifier: Apache-2.0 */
#include "core/intern.h"

#include <stdlib.h>
#include <string.h>

#include "core/arena.h"

static uint64_t mix(uint64_t a, uint64_t b)
{
    __uint128_t product = (__uint128_t)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* Multiply-fold hashing: eight bytes a step, the halves of a 128-bit product folded together. */
uint64_t sp_hash_bytes(const void *data, size_t length)
{
    const unsigned char *p = data;
    uint64_t hash = 0x9e3779b97f4a7c15u ^ length;
    for (; length >= 8; p += 8, length -= 8) {
        uint64_t word;
        memcpy(&word, p, 8);
        hash = mix(hash ^ word, 0xd6e8feb86659fd93u);
    }
    uint64_t tail = 0;
    if (length)
        memcpy(&tail, p, length);
    return mix(hash ^ tail, 0xa0761d6478bd642fu);
}

static uint32_t *find_slot(const sp_intern *table, uint64_t hash, const void *key, size_t length)
{
    uint32_t mask = table->slot_count - 1;
    for (uint32_t i = (uint32_t)hash & mask;; i = (i + 1) & mask) {
        uint32_t *slot = &table->slots[i];
        if (*slot == 0)
            return slot;
        const sp_intern_entry *entry = &table->entries[*slot - 1];
        if (entry->hash == hash && entry->length == length &&
            (length == 0 || memcmp(entry->key, key, length) == 0)) /* KEY may be NULL then */
            return slot;
    }
}

static bool grow_slots(sp_intern *table)
{
    uint32_t count = table->slot_count ? table->slot_count * 2 : 64;
    uint32_t *slots = calloc(count, sizeof *slots);
    if (!slots)
        return false;
    for (uint32_t n = 0; n < table->count; n++) {
        uint32_t i = (uint32_t)table->entries[n].hash & (count - 1);
        while (slots[i])
            i = (i + 1) & (count - 1);
        slots[i] = n + 1;
    }
    free(table->slots);
    table->slots = slots;
    table->slot_count = count;
    return true;
}

static bool make_room(sp_intern *table)
{
    if (!table->memory) {
        table->memory = calloc(1, sizeof(sp_arena));
        if (!table->memory)
            return false;
    }
    if (table->count == table->entry_capacity) {
        uint32_t capacity = table->entry_capacity ? table->entry_capacity * 2 : 48;
        sp_intern_entry *entries = realloc(table->entries, capacity * sizeof *entries);
        if (!entries)
            return false;
        table->entries = entries;
        table->entry_capacity = capacity;
    }
    return (uint64_t)(table->count + 1) * 4 <= (uint64_t)table->slot_count * 3 || grow_slots(table);
}

uint32_t sp_intern_put(sp_intern *table, const void *key, size_t length, bool *is_new)
{
    if (is_new)
        *is_new = false;
    if (length > UINT32_MAX || !make_room(table))
        return SP_INTERN_FAILED;
    uint64_t hash = sp_hash_bytes(key, length);
    uint32_t *slot = find_slot(table, hash, key, length);
    if (*slot)
        return *slot - 1;
    void *copy = sp_arena_strndup(table->memory, key, length);
    if (!copy)
        return SP_INTERN_FAILED;
    table->entries[table->count] =
        (sp_intern_entry){.hash = hash, .key = copy, .length = (uint32_t)length};
    *slot = ++table->count;
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
    const uint32_t *slot = find_slot(table, sp_hash_bytes(key, length), key, length);
    return *slot ? *slot - 1 : SP_INTERN_FAILED;
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
