/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the sample of the model that has a given key. The index refers to the samples and has no
 * copies of their keys, because samples are the largest table of a recording. */
#ifndef SP_TOOL_MODEL_SAMPLE_INDEX_H
#define SP_TOOL_MODEL_SAMPLE_INDEX_H

#include <stdbool.h>
#include <stdint.h>

#include "core/intern.h"

/* The first ten members are the key: samples with equal keys are added up. */
typedef struct sp_model_sample {
    uint32_t type, stack, link;
    uint32_t where; /* sp_where; SP_WHERE_CPU unless the type is wall time */
    /* string: the kind of descriptor that the thread waited for, or SP_MODEL_NONE */
    uint32_t descriptor;
    uint32_t outlived; /* sp_outlived, of live blocks */
    uint32_t age;      /* string: the least age of live blocks, or SP_MODEL_NONE */
    uint32_t holder; /* link: the span that held the lock that the thread waited for; 0: unknown */
    uint32_t holder_stack; /* string: the holder's functions, "root;…;leaf", or SP_MODEL_NONE */
    /* number of the model's locks: the lock, condition or semaphore that the thread waited for;
     * SP_MODEL_NONE: unknown */
    uint32_t lock;
    uint64_t value; /* in the type's unit */
    uint64_t count; /* the number of events, or if unknown 1 for each sample in the files */
} sp_model_sample;

/* A zero-initialised index is empty. */
typedef struct sp_sample_index {
    uint32_t count; /* the number of samples; they are numbered from 0 */
    uint32_t slot_count;
    sp_intern_slot *slots;
} sp_sample_index;

/* Returns the number of the member of SAMPLES that has the key of SAMPLE. If there is none, returns
 * the next number, sets *IS_NEW, and the caller stores SAMPLE under this number. Returns
 * SP_INTERN_FAILED when memory is short. */
uint32_t sp_sample_index_put(sp_sample_index *index, const sp_model_sample *samples,
                             const sp_model_sample *sample, bool *is_new);
/* Fetch the slot of SAMPLE into the CPU cache. Call it some time before SAMPLE is put. */
void sp_sample_index_prefetch(const sp_sample_index *index, const sp_model_sample *sample);
void sp_sample_index_deinit(sp_sample_index *index);

#endif
