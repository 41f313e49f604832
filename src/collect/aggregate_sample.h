/* SPDX-License-Identifier: Apache-2.0 */
/* The input of aggregation. */
#ifndef SP_COLLECT_AGGREGATE_SAMPLE_H
#define SP_COLLECT_AGGREGATE_SAMPLE_H

#include "collect/join.h"
#include "profile/window.h"

/* The lock that was waited for, and its holder. generation and changed are those of `stack`, with
 * the same meaning as in sp_aggregate_sample. */
typedef struct sp_aggregate_holder {
    sp_window_link link;           /* its span; all zero: none, or not known */
    const sp_sample_record *stack; /* where it gave the lock back; NULL: not known */
    const sp_generation *generation;
    const sp_modules *changed;
    uint64_t lock; /* its address; 0: not known */
} sp_aggregate_holder;

/* One sample to aggregate. generation may be NULL (its module list is gone): then addresses stay
 * raw. weight and count are added to the sp_window_sample with the same identity, counted to the
 * counts of links and stacks. time_ns is Unix time; 0: none. */
typedef struct sp_aggregate_sample {
    const sp_sample_record *record;
    const sp_generation *generation;
    const sp_modules *changed; /* set when the generation is not the newest one any more */
    const sp_window_thread *thread;
    sp_join_result result;
    sp_window_link link;
    sp_wait wait;
    const sp_aggregate_holder *holder; /* of a wait for a lock; NULL: not known */
    const uint8_t *attributes; /* attribute_bytes of them, as attribute_filter.h left them */
    uint32_t attribute_bytes;
    uint64_t weight, count, counted;
    uint64_t time_ns;
} sp_aggregate_sample;

#endif
