/* SPDX-License-Identifier: Apache-2.0 */
#include "core/slot_table.h"

#include <sys/mman.h>

/* Memory is reserved without access, and made usable in steps: unused slots count neither as memory
 * of the process nor against a strict limit of the system (vm.overcommit_memory=2). */
enum { STEP_BYTES = 1 << 18 };

static size_t reserved_bytes(const sp_slot_table *table)
{
    size_t bytes = (size_t)table->slot_bytes * table->maximum;
    return (bytes + STEP_BYTES - 1) / STEP_BYTES * STEP_BYTES;
}

static bool reserve(sp_slot_table *table)
{
    void *memory = mmap(NULL, reserved_bytes(table), PROT_NONE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory != MAP_FAILED)
        table->memory = memory;
    return memory != MAP_FAILED;
}

/* Make BYTES of the reserved memory usable. A slot is smaller than a step. */
static bool make_usable(sp_slot_table *table, size_t bytes)
{
    if (bytes <= table->usable_bytes)
        return true;
    if (mprotect((uint8_t *)table->memory + table->usable_bytes, STEP_BYTES,
                 PROT_READ | PROT_WRITE) != 0)
        return false;
    table->usable_bytes += STEP_BYTES;
    return true;
}

static void *slot_at(const sp_slot_table *table, uint32_t number)
{
    return (uint8_t *)table->memory + (size_t)(number - 1) * table->slot_bytes;
}

static uint32_t *next_of(const sp_slot_table *table, void *slot)
{
    return (uint32_t *)(void *)((uint8_t *)slot + table->next_at);
}

static void *add_slot(sp_slot_table *table)
{
    uint32_t number = sp_load_relaxed(&table->ever_taken) + 1;
    if (number > table->maximum || !(table->memory || reserve(table)) ||
        !make_usable(table, (size_t)number * table->slot_bytes))
        return NULL;
    void *slot = slot_at(table, number);
    table->init(slot, number);
    sp_store_release(&table->ever_taken, number); /* pairs with sp_slots_ever_taken */
    return slot;
}

void *sp_slot_take(sp_slot_table *table)
{
    if (!table->free_list)
        return add_slot(table);
    void *slot = slot_at(table, table->free_list);
    table->free_list = *next_of(table, slot);
    return slot;
}

void sp_slot_give(sp_slot_table *table, void *slot)
{
    size_t offset = (size_t)((uint8_t *)slot - (uint8_t *)table->memory);
    *next_of(table, slot) = table->free_list;
    table->free_list = (uint32_t)(offset / table->slot_bytes) + 1;
}
