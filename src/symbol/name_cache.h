/* SPDX-License-Identifier: Apache-2.0 */
/* The frames of addresses that were named, by (module's number, address), within a bound: there are
 * two generations. An entry that is looked up moves into the young one. When that has half of the
 * bound, it becomes the old one, and the previous old one is freed. Collector thread only. */
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
    sp_intern strings;   /* every string that is handed out */
    sp_intern addresses; /* number n has lists[n] */
    sp_arena frames;
    sp_frame_list *lists; /* capacity */
    size_t capacity;
} sp_name_generation;

/* Zero-initialised is empty. */
typedef struct sp_name_cache {
    sp_name_generation young, old;
} sp_name_cache;

void sp_name_cache_deinit(sp_name_cache *cache);

/* What was put in; count 0 when nothing was, it is forgotten, or memory is short. */
sp_frame_list sp_name_cache_find(sp_name_cache *cache, uint64_t module, uint64_t address);
/* LIST is of memory that the next two functions gave since the last aging. False when memory is
 * short. */
bool sp_name_cache_put(sp_name_cache *cache, uint64_t module, uint64_t address, sp_frame_list list);
/* Room for COUNT zeroed frames; NULL when memory is short. */
sp_frame *sp_name_cache_frames(sp_name_cache *cache, uint32_t count);
/* TEXT as it is kept: equal texts have one address. NULL when memory is short. */
const char *sp_name_cache_string(sp_name_cache *cache, const char *text);

/* Forget what was not asked for lately if the young generation has LIMIT_BYTES / 2: what was handed
 * out is valid until now. True when something was forgotten. */
bool sp_name_cache_age(sp_name_cache *cache, size_t limit_bytes);
/* What both generations take of memory. */
size_t sp_name_cache_bytes(const sp_name_cache *cache);

#endif
