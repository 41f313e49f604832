/* SPDX-License-Identifier: Apache-2.0 */
/* Room in a full window: at SPANPROF_MAX_SAMPLES distinct samples the light ones are made shorter
 * until enough of them are equal. First they lose the lock that was waited for, then frames, from
 * the root end on, then links. Heavy samples keep everything, also when they were added late.
 * Collector thread only. */
#ifndef SP_COLLECT_AGGREGATE_ROOM_H
#define SP_COLLECT_AGGREGATE_ROOM_H

#include "profile/window.h"

/* Make room for a sample with KEY, which SAMPLES (the cpu, the wall or the calls of WINDOW) does
 * not have. With a bound of 1 there is no room: then KEY becomes the key of the one sample, which
 * keeps only weight. False when memory is short: then nothing has changed. */
bool sp_aggregate_make_room(sp_window *window, sp_window_samples *samples, uint32_t max_samples,
                            sp_window_key *key);

/* The key FROM of a sample was shortened to TO: move its COUNTED periods, or visits, between the
 * counts of SAMPLES accordingly. */
void sp_aggregate_recount(sp_window *window, sp_window_samples *samples, const sp_window_key *from,
                          const sp_window_key *to, uint64_t counted);

#endif
