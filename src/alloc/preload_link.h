/* SPDX-License-Identifier: Apache-2.0 */
/* The interface between libspanprof-preload.so, which intercepts allocations, and the SDK, which
 * samples them. The library exports one function, spanprof_preload, which returns an sp_preload;
 * the SDK finds it by name, and fills in its functions while it samples. Both sides may be of
 * different versions, and there may be several copies of the SDK, of which one at a time
 * samples. */
#ifndef SP_ALLOC_PRELOAD_LINK_H
#define SP_ALLOC_PRELOAD_LINK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "call/sampling_thread.h"

/* A byte counts the live sampled blocks of an address's hash; 255 stays. 0 says that a block was
 * not sampled. */
enum { SP_FILTER_BITS = 16, SP_FILTER_SIZE = 1 << SP_FILTER_BITS };

/* Blocks are aligned to 16, and large ones to a page. */
static inline uint32_t sp_filter_index(const void *pointer)
{
    uintptr_t address = (uintptr_t)pointer;
    return (uint32_t)(address >> 4 ^ address >> 20) & (SP_FILTER_SIZE - 1);
}

/* BYTES at POINTER were allocated by the calling thread, which is THREAD. Its `left` does not cover
 * BYTES, or is of another run. RETURN_ADDRESS is the interposed function's. */
typedef void sp_alloc_seen(sp_sampling_thread *thread, void *pointer, size_t bytes,
                           const void *return_address);
/* POINTER is about to be freed. */
typedef void sp_alloc_freed(void *pointer);
/* POINTER is about to be reallocated. Another thread may get the same address before the
 * reallocation returns. Returns the argument of settle; 0: the block was not sampled. */
typedef uint32_t sp_alloc_hold(void *pointer);
/* The reallocation is over. IS_FREED: the old block is gone; else the block is unchanged. */
typedef void sp_alloc_settle(uint32_t held, bool is_freed);

enum { SP_PRELOAD_VERSION = 2 };

typedef struct sp_preload {
    uint32_t version;
    _Atomic uint32_t run; /* 0: nothing is sampled. Written last (release) */
    _Atomic(sp_alloc_seen *) seen;
    _Atomic(sp_alloc_freed *)
        freed; /* this and the next two stay set while the filter is not empty */
    _Atomic(sp_alloc_hold *) hold;
    _Atomic(sp_alloc_settle *) settle;
    _Atomic uint8_t filter[SP_FILTER_SIZE];
    _Atomic uint32_t maps; /* 1: mappings without a file are blocks, too */
} sp_preload;

/* NULL when the library does not know VERSION. */
typedef sp_preload *sp_preload_function(uint32_t version);

#endif
