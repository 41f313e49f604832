/* SPDX-License-Identifier: Apache-2.0 */
/* Puts stacks and locks into the tables of a window, by their addresses. Collector thread only. */
#ifndef SP_COLLECT_AGGREGATE_STACKS_H
#define SP_COLLECT_AGGREGATE_STACKS_H

#include "collect/aggregate_sample.h"

/* The number in window.stacks of SAMPLE's stack; SP_INTERN_FAILED when memory is short. */
uint32_t sp_aggregate_put_stack(sp_window *window, const sp_aggregate_sample *sample);

/* The number in window.locks of the lock at ADDRESS that SAMPLE waited for. SP_INTERN_FAILED: there
 * are SP_WINDOW_LOCKS_MAX others, or memory is short. */
uint32_t sp_aggregate_put_lock(sp_window *window, const sp_aggregate_sample *sample,
                               uint64_t address);

/* Forget the recorded stacks and addresses, but keep memory for the next ones. */
void sp_window_recorded_clear(sp_window_recorded *recorded);
void sp_window_recorded_deinit(sp_window_recorded *recorded);

/* What SAMPLE's stack is counted as: how its walk ended, TRUNCATED if it was complete but frames
 * are missing in the middle, or UNLOADED. */
sp_walk_end sp_aggregate_stack_end(const sp_aggregate_sample *sample);

#endif
