/* SPDX-License-Identifier: Apache-2.0 */
/* libspanprof-preload.so: the malloc family, passed on to the next allocator, with each block
 * counted. Loaded by LD_PRELOAD, or linked before the C library. It does nothing else until the SDK
 * asks it to (alloc/preload_link.h), and does not depend on the SDK.
 *
 * Threads: any. Signals: as the next allocator. Fork: no lock, nothing to do. */
#ifndef SP_PRELOAD_PRELOAD_H
#define SP_PRELOAD_PRELOAD_H

#include "alloc/preload_link.h"

/* Mark POINTER, a block of the bootstrap room, in the filter, so that a free of it takes the slow
 * path. */
void sp_filter_mark(const void *pointer);

/* For maps.c, whose blocks are not malloc's: whether they are counted. */
int sp_maps_are_counted(void);
/* BYTES at POINTER are a new block. */
void sp_block_count(void *pointer, size_t bytes, const void *return_address);
/* POINTER is about to be freed; it need not be a block. */
void sp_block_forget(void *pointer);
/* As hold and settle of alloc/preload_link.h; 0: it was not sampled. */
uint32_t sp_block_hold(void *pointer);
void sp_block_settle(uint32_t held, int is_freed);

#endif
