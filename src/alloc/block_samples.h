/* SPDX-License-Identifier: Apache-2.0 */
/* Sampling of allocations, and the table of sampled blocks that live. Allocations are reported by
 * libspanprof-preload.so, or by an allocator itself (spanprof/alloc.h). See docs/design/memory.md.
 *
 * | operation                              | setup | any thread | collector |
 * | start, stop                            |  yes  |            |           |
 * | pause, resume                          |       |    yes     |           |
 * | is_live, live_full                     |       |            |    yes    |
 * Fork: the child calls stop. */
#ifndef SP_ALLOC_BLOCK_SAMPLES_H
#define SP_ALLOC_BLOCK_SAMPLES_H

#include "alloc/live_table.h"

typedef struct sp_alloc_config {
    uint64_t period_bytes; /* between two samples, on average; at least 1 */
    bool heap;             /* live blocks are kept */
    bool maps;             /* mappings without a file are blocks, too */
    uint32_t live_max;     /* about so many; the first start's value is used by the process */
} sp_alloc_config;

/* Blocks are sampled from now on; sp_calls_start was called. If no allocations can be seen, one
 * warning says why. */
void sp_alloc_start(const sp_alloc_config *config);
/* No block is sampled any more. Live blocks stay in the table until they are freed. A second call
 * does nothing. */
void sp_alloc_stop(void);
void sp_alloc_pause(void);
void sp_alloc_resume(void);

bool sp_alloc_is_live(sp_live_entry entry);
/* Blocks that found no place in the table, since the process began. */
uint64_t sp_alloc_live_full(void);

#endif
