/* SPDX-License-Identifier: Apache-2.0 */
/* The range of this process's heap after the program's data ("[heap]" in /proc/self/maps). Its
 * begin never changes. Memory that an allocator maps elsewhere is not part of it. Collector thread
 * only. */
#ifndef SP_SYMBOL_HEAP_RANGE_H
#define SP_SYMBOL_HEAP_RANGE_H

#include <stdbool.h>
#include <stdint.h>

/* Zero-initialised it is not known yet. */
typedef struct sp_heap_range {
    uint64_t start, end; /* equal: it was not found */
    bool is_sought;      /* and is not looked for again until that is false */
} sp_heap_range;

/* Whether ADDRESS is in it, and how far behind its begin. */
bool sp_heap_range_has(sp_heap_range *range, uint64_t address, uint64_t *offset);

#endif
