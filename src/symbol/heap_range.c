/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol/heap_range.h"

#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/mappings.h"

/* The heap is among the first mappings. */
static bool take_start(const sp_mapping *mapping, void *user)
{
    uint64_t *start = user;
    if (strcmp(mapping->path, "[heap]") == 0)
        *start = mapping->start;
    return *start == 0;
}

static uint64_t start_of(sp_heap_range *range)
{
    if (!range->start && !range->is_sought)
        sp_mappings_of_process(0, take_start, &range->start);
    range->is_sought = true;
    return range->start;
}

/* Asked for nothing, the system call changes nothing. */
static uint64_t current_end(void)
{
    return (uint64_t)syscall(SYS_brk, 0);
}

bool sp_heap_range_has(sp_heap_range *range, uint64_t address, uint64_t *offset)
{
    uint64_t start = start_of(range);
    *offset = address - start;
    return start && address >= start && address < current_end();
}
