/* SPDX-License-Identifier: Apache-2.0 */
/* Aggregation: samples with the same identity (stack, link, thread, wait, attributes) become one.
 * Collector thread only. */
#ifndef SP_COLLECT_AGGREGATE_H
#define SP_COLLECT_AGGREGATE_H

#include "collect/aggregate_sample.h"

/* Add SAMPLE to SAMPLES of WINDOW, its cpu, wall or calls, to the one with the same identity where
 * there is one. There are never more than MAX_SAMPLES: where another one would be too many, light
 * ones lose frames, then links (aggregate_room.h), and count as folded, then as unknown. After
 * SP_WINDOW_SETS_MAX sets of attributes, samples with another set get none, which is counted. False
 * when memory is short: not counted at all. */
bool sp_aggregate_add(sp_window *window, sp_window_samples *samples,
                      const sp_aggregate_sample *sample, uint32_t max_samples);

/* The two halves of sp_aggregate_add: the identity of SAMPLE, whose parts go into the tables of
 * WINDOW, and what a sample adds to SAMPLES. False when memory is short. */
typedef struct sp_aggregate_sums {
    uint64_t weight, count, counted; /* as those of sp_aggregate_sample */
    uint64_t time_ns;
    sp_join_result result;
    sp_walk_end end; /* sp_aggregate_stack_end */
    bool by_frame_pointer;
} sp_aggregate_sums;

bool sp_aggregate_identify(sp_window *window, const sp_aggregate_sample *sample,
                           sp_window_key *key);
bool sp_aggregate_put(sp_window *window, sp_window_samples *samples, const sp_window_key *key,
                      const sp_aggregate_sums *sums, uint32_t max_samples);
/* The number of LINK in WINDOW, or SP_INTERN_FAILED. Link 0 is "none" in every window. */
uint32_t sp_aggregate_put_link(sp_window *window, const sp_window_link *link);

/* Empty WINDOW so that it can be filled again; modules are released. */
void sp_window_clear(sp_window *window);
void sp_window_deinit(sp_window *window);

#endif
