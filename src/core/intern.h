/* SPDX-License-Identifier: Apache-2.0 */
/* Interning: equal byte strings get one small number, counted from 0 in the order of their first
 * appearance. All tables of a profile's dictionary are made with it (strings, stacks, links, …),
 * and the collector's aggregation. Threads: one at a time.  Signals: not safe. */
#ifndef SP_CORE_INTERN_H
#define SP_CORE_INTERN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SP_INTERN_FAILED UINT32_MAX

typedef struct sp_intern_entry {
    uint64_t hash;
    const void
        *key; /* length bytes in the table's own memory, aligned to 16, with a NUL after them */
    uint32_t length;
} sp_intern_entry;

/* number: of an entry, plus one; 0: free. */
typedef struct sp_intern_slot {
    uint32_t tag; /* a part of the entry's hash */
    uint32_t number;
} sp_intern_slot;

/* entries[0 .. count) are the keys by number. slots has a power of two of them, and is never more
 * than 3/4 full. Zero-initialised is an empty table. */
typedef struct sp_intern {
    sp_intern_entry *entries;
    uint32_t count;
    size_t entry_capacity;
    sp_intern_slot *slots;
    uint32_t slot_count;
    void *memory; /* an sp_arena */
} sp_intern;

/* The number of KEY, LENGTH bytes, copied when it is new. SP_INTERN_FAILED when memory is short;
 * *IS_NEW (may be NULL) says whether this call has added it. */
uint32_t sp_intern_put(sp_intern *table, const void *key, size_t length, bool *is_new);
uint32_t sp_intern_put_string(sp_intern *table, const char *text);
/* The number of KEY, or SP_INTERN_FAILED when it is not in the table. */
uint32_t sp_intern_find(const sp_intern *table, const void *key, size_t length);
static inline const void *sp_intern_key(const sp_intern *table, uint32_t number)
{
    return table->entries[number].key;
}
/* The bytes of memory that the keys and the table take. */
size_t sp_intern_bytes(const sp_intern *table);
/* Forget all keys, keep some memory. */
void sp_intern_clear(sp_intern *table);
void sp_intern_deinit(sp_intern *table);

/* A 64-bit hash of LENGTH bytes. It does not resist keys that were chosen to collide; such keys
 * only cost time. */
uint64_t sp_hash_bytes(const void *data, size_t length);

#endif
