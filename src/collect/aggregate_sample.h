/* SPDX-License-Identifier: Apache-2.0 */
/* What aggregation is given. */
#ifndef SP_COLLECT_AGGREGATE_SAMPLE_H
#define SP_COLLECT_AGGREGATE_SAMPLE_H

#include "collect/join.h"
#include "profile/window.h"

/* The lock that was waited for, and who held it. generation and changed, of `stack`, are as those
 * of sp_aggregate_sample. */
typedef struct sp_aggregate_holder {
    sp_window_link link;           /* its span; all zero: none, or not known */
    const sp_sample_record *stack; /* where it gave the lock back; NULL: not known */
    const sp_generation *generation;
    const sp_modules *changed;
    uint64_t lock; /* its address; 0: not told */
} sp_aggregate_holder;

/* One sample to aggregate. generation may be NULL (its module list is gone): then addresses stay
 * raw. weight and count are what it adds to its kind's sp_window_sample, and counted is what it
 * adds to the counts of links and stacks. time_ns, Unix, is kept where it is not 0. */
typedef struct sp_aggregate_sample {
    const sp_sample_record *record;
    const sp_generation *generation;
    const sp_modules *changed; /* set when the generation is not the newest one any more */
    const sp_window_thread *thread;
    sp_join_result result;
    sp_window_link link;
    sp_wait wait;
    const sp_aggregate_holder *holder; /* of a wait for a lock; NULL: nothing of it is known */
    const uint8_t *attributes; /* attribute_bytes of them, as attribute_filter.h left them */
    uint32_t attribute_bytes;
    uint64_t weight, count, counted;
    uint64_t time_ns;
} sp_aggregate_sample;

#endif
