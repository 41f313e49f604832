/* SPDX-License-Identifier: Apache-2.0 */
/* Which blocks are sampled, and what each stands for.
 *
 * The distance from one sample to the next is random, exponential in bytes with mean PERIOD. So a block of S bytes is sampled with probability
 * p = 1 - exp(-S / PERIOD), whatever was allocated before it. A sampled block stands for 1/p blocks and S/p bytes: the sums of these are
 * right on average for each size. Numbers are whole; fractions are rounded up or down at random, so that this does not change the average.
 * Threads: the owner of RANDOM.  Signals: not safe. */
#ifndef SP_ALLOC_BYTE_SAMPLING_H
#define SP_ALLOC_BYTE_SAMPLING_H

#include <stdint.h>

/* What one sampled block stands for. */
typedef struct sp_alloc_weight {
    uint64_t bytes, objects;
} sp_alloc_weight;

/* The next of a sequence of random numbers; *RANDOM is its state, any number but 0. */
uint64_t sp_random_next(uint64_t *random);

/* Bytes until the next sample, at least 1: a block of as many bytes is sampled, or one that comes when fewer are left. */
uint64_t sp_alloc_draw(uint64_t *random, uint64_t period);
sp_alloc_weight sp_alloc_weight_of(uint64_t *random, uint64_t period, uint64_t bytes);

#endif
