/* SPDX-License-Identifier: Apache-2.0 */
/* The range of this process's heap after the program's data ("[heap]" in /proc/self/maps). Its
 * begin never changes. Memory that an allocator maps elsewhere is not part of it. Collector thread
 * only. */
#ifndef SP_SYMBOL_HEAP_RANGE_H
#define SP_SYMBOL_HEAP_RANGE_H

#include <stdbool.h>
#include <stdint.h>

/* Zero-initialised: not searched yet. */
typedef struct sp_heap_range {
    uint64_t start, end; /* equal: it was not found */
    bool is_sought;      /* it was searched, and is not searched again until this is false */
} sp_heap_range;

/* Whether ADDRESS is in the heap; *OFFSET: how far from the heap's begin. */
bool sp_heap_range_has(sp_heap_range *range, uint64_t address, uint64_t *offset);

#endif
