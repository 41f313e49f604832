/* SPDX-License-Identifier: Apache-2.0 */
/* The table of sampled blocks that are still allocated, by address. It only identifies a block: the
 * collector keeps all other facts, by place and id.
 *
 * | operation                    | caller                                                                       |
 * | put                          | the thread that was just given the block, before another thread has it       |
 * | remove, hold, settle         | the thread that frees or reallocates it, before the allocator does           |
 * | has                          | the collector                                                                |
 * | init, clear                  | setup; a clear may run beside put, remove and the others                     |
 *
 * No locks. An address has one entry at most, because its block has one owner at a time: an entry
 * is removed before the block is given back. An entry lies in one of 16 places next to each other,
 * so that no entry is ever moved and a search ends. Signals: all but init are safe. */
#ifndef SP_ALLOC_LIVE_TABLE_H
#define SP_ALLOC_LIVE_TABLE_H

#include "alloc/preload_link.h"

enum { SP_LIVE_PLACES = 16 };

/* A key is 0 (free), an address, or the address plus 1 (held). Each put has a new id; 0: none. */
typedef struct sp_live_table {
    _Atomic uint64_t *keys;
    _Atomic uint64_t *ids;
    _Atomic uint32_t size; /* a power of two; 0: no table. Stored last */
    _Atomic uint64_t last_id;
    _Atomic uint64_t full;   /* puts that found no place */
    _Atomic uint8_t *filter; /* SP_FILTER_SIZE */
} sp_live_table;

/* Where an entry is, and its id. */
typedef struct sp_live_entry {
    uint32_t slot;
    uint64_t id;
} sp_live_entry;

/* Room for BLOCKS and more. Memory of unused places is not touched. False when memory is short. It
 * is never freed. */
bool sp_live_init(sp_live_table *table, uint32_t blocks, _Atomic uint8_t *filter);
/* Add an entry for POINTER. False, and counted, when there is no free place. */
bool sp_live_put(sp_live_table *table, const void *pointer, sp_live_entry *out);
/* Remove the entry of POINTER. Returns whether there was one. */
bool sp_live_remove(sp_live_table *table, const void *pointer);
/* Hold the entry of POINTER: it cannot be found by its address until sp_live_settle removes or
 * restores it. Returns its number, 0 when there is none. */
uint32_t sp_live_hold(sp_live_table *table, const void *pointer);
void sp_live_settle(sp_live_table *table, uint32_t held, bool is_freed);
bool sp_live_has(const sp_live_table *table, sp_live_entry entry);
/* Remove all entries except those that are held. */
void sp_live_clear(sp_live_table *table);

#endif
