/* SPDX-License-Identifier: Apache-2.0 */
/* The order of a profile's samples: by link, then by stack, then by attributes. Samples that are
 * equal come one after the other, so that adding them up needs no search; and a request is smaller
 * after compression, because neighbours differ in little more than the stack. */
#ifndef SP_PROFILE_SAMPLE_ORDER_H
#define SP_PROFILE_SAMPLE_ORDER_H

#include <stdbool.h>
#include <stdint.h>

/* A sample of the window as a profile has it. Numbers are small: they are of entries of tables. */
typedef struct sp_projected_sample {
    uint32_t stack;
    uint32_t link;
    uint32_t attributes; /* number of a list */
    uint32_t from;       /* number of the window's sample */
    int64_t value;
} sp_projected_sample;

/* Put into ORDER, which has room for COUNT, the places of SAMPLES in their order; equal ones keep
 * their order. Takes time in proportion to COUNT and to the largest number. False when memory is
 * short. */
bool sp_sample_order(const sp_projected_sample *samples, uint32_t count, uint32_t *order);

static inline bool sp_sample_is_same(const sp_projected_sample *a, const sp_projected_sample *b)
{
    return a->stack == b->stack && a->link == b->link && a->attributes == b->attributes;
}

#endif
