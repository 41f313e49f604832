/* SPDX-License-Identifier: Apache-2.0 */
/* The sampled blocks that are still allocated, with data that the table of live blocks
 * (alloc/live_table.h) lacks: the stack, the span and the weight of each. At a window's end the
 * blocks that live become the window's samples. Collector thread only. */
#ifndef SP_COLLECT_LIVE_BLOCKS_H
#define SP_COLLECT_LIVE_BLOCKS_H

#include "alloc/live_table.h"
#include "collect/aggregate.h"

typedef struct sp_live_block {
    sp_live_entry entry;
    uint64_t seen_ns;  /* when the allocation was drained, monotonic */
    sp_window_key key; /* numbers of `tables` */
    uint64_t bytes, objects;
    uint8_t result; /* sp_join_result */
    uint8_t end;    /* sp_aggregate_stack_end */
    bool by_frame_pointer;
} sp_live_block;

/* tables is a window of which only the tables are used: locations, stacks, links, threads,
 * attribute sets. Zero-initialised is empty. */
typedef struct sp_live_blocks {
    sp_window tables;
    sp_live_block *blocks;
    uint32_t count;
    size_t capacity;
    uint64_t lost; /* blocks that are missing because memory was short */
} sp_live_blocks;

/* Whether a block is still allocated. */
typedef bool sp_live_is(sp_live_entry entry);

/* Add the block of SAMPLE, whose entry in the table of live blocks is ENTRY, unless it has been
 * freed already. The sample's weight is bytes, its count objects. */
void sp_live_blocks_add(sp_live_blocks *live, const sp_aggregate_sample *sample,
                        sp_live_entry entry, sp_live_is *is_live, uint64_t now_ns);

/* What has ended of the spans of LINK. */
typedef sp_live_end sp_live_end_of(void *user, const sp_window_link *link);
/* How a snapshot is made. */
typedef struct sp_live_view {
    uint64_t now_ns; /* monotonic */
    uint32_t max_samples;
    sp_live_is *is_live;
    sp_live_end_of *end_of;
    void *user; /* of end_of */
} sp_live_view;

/* Forget what was freed, and put the others into the heap's samples of WINDOW. */
void sp_live_blocks_snapshot(sp_live_blocks *live, sp_window *window, const sp_live_view *view);
void sp_live_blocks_deinit(sp_live_blocks *live);

#endif
