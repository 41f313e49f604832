/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol/heap_range.h"

#include <string.h>

#include "core/mappings.h"

/* The heap is among the first mappings. */
static bool take_heap(const sp_mapping *mapping, void *user)
{
    sp_heap_range *range = user;
    if (strcmp(mapping->path, "[heap]") != 0)
        return true;
    range->start = mapping->start;
    range->end = mapping->end;
    return false;
}

/* The system call brk would return the end, too, but it delays the page faults of all threads. */
bool sp_heap_range_has(sp_heap_range *range, uint64_t address, uint64_t *offset)
{
    if (!range->is_sought)
        sp_mappings_of_process(0, take_heap, range);
    range->is_sought = true;
    *offset = address - range->start;
    return address >= range->start && address < range->end;
}
