/* SPDX-License-Identifier: Apache-2.0 */
#include "alloc/live_table.h"

#include <sys/mman.h>

#include "core/atomic.h"
#include "core/compiler.h"

/* --- the filter ------------------------------------------------------------------------------- */

/* Add STEP to the count of ADDRESS. A count of 255 never changes again, because the true count is
 * not known then; a filter may have false positives. */
static void filter_add(sp_live_table *table, uint64_t address, int step)
{
    _Atomic uint8_t *count =
        &table->filter[sp_filter_index((const void *)(uintptr_t)address)]; // NOLINT
    uint8_t before = sp_load_relaxed(count);
    while (before != UINT8_MAX &&
           !atomic_compare_exchange_weak(count, &before, (uint8_t)(before + step)))
        continue;
}

/* --- places ----------------------------------------------------------------------------------- */

static void *map_words(uint32_t count)
{
    void *words = mmap(NULL, (size_t)count * sizeof(uint64_t), PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return words == MAP_FAILED ? NULL : words;
}

/* At most half of the places are used, because otherwise too many addresses would find all their 16
 * places used. */
static uint32_t size_for(uint32_t blocks)
{
    uint32_t size = 1024;
    while (size / 2 < blocks)
        size *= 2;
    return size;
}

bool sp_live_init(sp_live_table *table, uint32_t blocks, _Atomic uint8_t *filter)
{
    uint32_t size = size_for(blocks);
    table->keys = map_words(size);
    table->ids = map_words(size);
    table->filter = filter;
    if (!table->keys || !table->ids)
        return false;
    sp_store_release(&table->size, size); /* pairs with size_of */
    return true;
}

/* The number of places; 0: there is no table yet (pairs with sp_live_init). */
static uint32_t size_of(const sp_live_table *table)
{
    return sp_load_acquire(&table->size);
}

static uint32_t first_place(const sp_live_table *table, uint64_t address)
{
    uint64_t mixed = (address >> 4) * UINT64_C(0x9e3779b97f4a7c15);
    return (uint32_t)(mixed >> 32) & (sp_load_relaxed(&table->size) - 1) &
           ~(uint32_t)(SP_LIVE_PLACES - 1);
}

static uint64_t address_of(const void *pointer)
{
    return (uint64_t)(uintptr_t)pointer;
}

bool sp_live_put(sp_live_table *table, const void *pointer, sp_live_entry *out)
{
    uint64_t address = address_of(pointer);
    uint32_t first = first_place(table, address);
    for (uint32_t slot = first; slot < first + SP_LIVE_PLACES; slot++) {
        uint64_t none = 0;
        if (sp_load_relaxed(&table->keys[slot]) != 0 ||
            !atomic_compare_exchange_strong(&table->keys[slot], &none, address | 1))
            continue; /* the taken key is held until the entry is complete, so a clear skips it */
        *out = (sp_live_entry){
            slot, atomic_fetch_add_explicit(&table->last_id, 1, memory_order_relaxed) + 1};
        sp_store_release(&table->ids[slot], out->id); /* pairs with sp_live_has */
        filter_add(table, address, 1);
        sp_store_release(&table->keys[slot], address);
        return true;
    }
    sp_count(&table->full, 1);
    return false;
}

/* Change the key of POINTER's entry to KEY. Returns the entry's number; 0 when there is none, or a
 * clear has removed it. */
static uint32_t change_key(sp_live_table *table, const void *pointer, uint64_t key)
{
    uint64_t address = address_of(pointer);
    uint32_t first = first_place(table, address);
    for (uint32_t slot = first; slot < first + SP_LIVE_PLACES; slot++) {
        uint64_t expected = address;
        if (sp_load_relaxed(&table->keys[slot]) == address)
            return atomic_compare_exchange_strong(&table->keys[slot], &expected, key) ? slot + 1
                                                                                      : 0;
    }
    return 0;
}

/* Free the entry in SLOT, which the caller holds. */
static void free_place(sp_live_table *table, uint32_t slot, uint64_t address)
{
    filter_add(table, address, -1);
    sp_store_relaxed(&table->ids[slot], 0);
    sp_store_release(&table->keys[slot], 0); /* pairs with the exchange in sp_live_put */
}

bool sp_live_remove(sp_live_table *table, const void *pointer)
{
    uint32_t held = sp_live_hold(table, pointer);
    if (held)
        sp_live_settle(table, held, true);
    return held != 0;
}

uint32_t sp_live_hold(sp_live_table *table, const void *pointer)
{
    /* NULL is the key of free places. */
    return pointer && size_of(table) ? change_key(table, pointer, address_of(pointer) | 1) : 0;
}

void sp_live_settle(sp_live_table *table, uint32_t held, bool is_freed)
{
    uint32_t slot = held - 1;
    uint64_t address = sp_load_relaxed(&table->keys[slot]) & ~UINT64_C(1);
    if (is_freed)
        free_place(table, slot, address);
    else
        sp_store_release(&table->keys[slot], address);
}

bool sp_live_has(const sp_live_table *table, sp_live_entry entry)
{
    return entry.slot < size_of(table) && sp_load_acquire(&table->ids[entry.slot]) == entry.id;
}

/* An entry that is held stays: the thread that holds it settles it. */
void sp_live_clear(sp_live_table *table)
{
    for (uint32_t slot = 0; slot < size_of(table); slot++) {
        uint64_t address = sp_load_relaxed(&table->keys[slot]);
        if (address != 0 && !(address & 1) &&
            atomic_compare_exchange_strong(&table->keys[slot], &address, address | 1))
            free_place(table, slot, address);
    }
}
