/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps the frames of addresses that were named, by (module's number, address). Memory is bounded
 * by two generations: an entry that is found in the old one moves into the young one. When the
 * young one takes half of the bound, it becomes the old one, and the previous old one is freed.
 * Collector thread only. */
#ifndef SP_SYMBOL_NAME_CACHE_H
#define SP_SYMBOL_NAME_CACHE_H

#include "core/arena.h"
#include "core/intern.h"
#include "symbol/frame.h"

/* The default bound: about 40,000 addresses with their inlined functions. */
#define SP_NAME_CACHE_BYTES ((size_t)16 * 1024 * 1024)

/* count 0: not known. */
typedef struct sp_frame_list {
    const sp_frame *frames;
    uint32_t count;
} sp_frame_list;

typedef struct sp_name_generation {
    sp_intern strings;   /* every string of a frame */
    sp_intern addresses; /* the key with number n has lists[n] */
    sp_arena frames;
    sp_frame_list *lists;
    size_t capacity;
} sp_name_generation;

/* Zero-initialised is empty. */
typedef struct sp_name_cache {
    sp_name_generation young, old;
} sp_name_cache;

void sp_name_cache_deinit(sp_name_cache *cache);

/* The frames that were put for ADDRESS; count 0 when there are none (any more), or memory is short.
 */
sp_frame_list sp_name_cache_find(sp_name_cache *cache, uint64_t module, uint64_t address);
/* Keep LIST for ADDRESS. Its memory must be from the next two functions, and allocated since the
 * last aging. False when memory is short. */
bool sp_name_cache_put(sp_name_cache *cache, uint64_t module, uint64_t address, sp_frame_list list);
/* Room for COUNT zeroed frames; NULL when memory is short. */
sp_frame *sp_name_cache_frames(sp_name_cache *cache, uint32_t count);
/* A copy of TEXT, which is the same pointer for equal texts. NULL when memory is short. */
const char *sp_name_cache_string(sp_name_cache *cache, const char *text);

/* If the young generation takes LIMIT_BYTES / 2, it becomes the old one, and the entries of the
 * previous old one are freed. Frames and strings that were returned before are invalid after this
 * call. True when entries were freed. */
bool sp_name_cache_age(sp_name_cache *cache, size_t limit_bytes);
/* The memory of both generations, in bytes. */
size_t sp_name_cache_bytes(const sp_name_cache *cache);

#endif
