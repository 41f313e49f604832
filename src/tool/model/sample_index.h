/* SPDX-License-Identifier: Apache-2.0 */
/* Which sample of the model has the same key as another one: an index over the samples themselves,
 * which are the largest table of a recording. */
#ifndef SP_TOOL_MODEL_SAMPLE_INDEX_H
#define SP_TOOL_MODEL_SAMPLE_INDEX_H

#include <stdbool.h>
#include <stdint.h>

#include "core/intern.h"

/* Samples whose first ten members are equal are one. */
typedef struct sp_model_sample {
    uint32_t type, stack, link;
    uint32_t where;        /* sp_where; SP_WHERE_CPU unless the type is wall time */
    uint32_t descriptor;   /* string: the kind of descriptor that was waited on, or SP_MODEL_NONE */
    uint32_t outlived;     /* sp_outlived, of live blocks */
    uint32_t age;          /* string: how old they are at least, or SP_MODEL_NONE */
    uint32_t holder;       /* link: the span that held the lock that was waited for; 0: not told */
    uint32_t holder_stack; /* string: its functions "root;…;leaf", or SP_MODEL_NONE */
    uint32_t lock;         /* that was waited for, or its condition or semaphore: a number of the
                              model's locks; SP_MODEL_NONE: not told */
    uint64_t value;        /* in the type's unit */
    uint64_t count;        /* of events, where they are known; else 1 for each sample message */
} sp_model_sample;

/* Zero-initialised it is empty. */
typedef struct sp_sample_index {
    uint32_t count; /* samples, which are numbered from 0 */
    uint32_t slot_count;
    sp_intern_slot *slots;
} sp_sample_index;

/* The number of the one of SAMPLES that has the key of SAMPLE, or else count, which grows by one:
 * the caller puts SAMPLE there (*IS_NEW). SP_INTERN_FAILED when memory is short. */
uint32_t sp_sample_index_put(sp_sample_index *index, const sp_model_sample *samples,
                             const sp_model_sample *sample, bool *is_new);
/* SAMPLE will be put soon. */
void sp_sample_index_prefetch(const sp_sample_index *index, const sp_model_sample *sample);
void sp_sample_index_deinit(sp_sample_index *index);

#endif
