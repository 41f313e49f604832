/* SPDX-License-Identifier: Apache-2.0 */
/* Aggregation: samples with the same identity (stack, link, thread, wait, attributes) become one.
 * Collector thread only. */
#ifndef SP_COLLECT_AGGREGATE_H
#define SP_COLLECT_AGGREGATE_H

#include "collect/aggregate_sample.h"

/* Add SAMPLE to SAMPLES, the cpu, the wall or the calls of WINDOW; samples with the same identity
 * become one. There are never more than MAX_SAMPLES: when there would be, light ones lose frames,
 * then links (aggregate_room.h), and count as folded, then as unknown. After SP_WINDOW_SETS_MAX
 * sets of attributes, samples with another set get none, which is counted. False when memory is
 * short: SAMPLE is not counted then. */
bool sp_aggregate_add(sp_window *window, sp_window_samples *samples,
                      const sp_aggregate_sample *sample, uint32_t max_samples);

/* The two halves of sp_aggregate_add. sp_aggregate_identify puts the parts of SAMPLE's identity
 * into the tables of WINDOW; sp_aggregate_put adds SUMS to the sample of SAMPLES with KEY. False
 * when memory is short. */
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
