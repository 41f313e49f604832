/* SPDX-License-Identifier: Apache-2.0 */
/* Which calls are sampled, and what each stands for. A call has a size: the bytes of a block, or a
 * value.
 *
 * The distance from one sample to the next is random, exponential in size with mean PERIOD. So a
 * call of size S is sampled with probability p = 1 - exp(-S / PERIOD), whatever was called before
 * it. A sampled call stands for 1/p calls and a size of S/p: the sums of these are right on average
 * for each size. Numbers are whole; fractions are rounded up or down at random, so that this does
 * not change the average. Threads: the owner of RANDOM.  Signals: safe. */
#ifndef SP_CALL_CALL_SAMPLING_H
#define SP_CALL_CALL_SAMPLING_H

#include <stdbool.h>
#include <stdint.h>

/* The size, and the number of calls, that one sampled call stands for. */
typedef struct sp_sampling_weight {
    uint64_t size, count;
} sp_sampling_weight;

/* A new state for sp_random_next, different from all others. Never 0. */
uint64_t sp_random_seed(void);
/* The next of a sequence of random numbers; *RANDOM is its state, any number but 0. */
uint64_t sp_random_next(uint64_t *random);

/* Size until the next sample, at least 1: a call of this size or more is sampled. */
uint64_t sp_sampling_draw(uint64_t *random, uint64_t period);
/* Process a call of SIZE when the next sample is *LEFT away. Returns whether the call is sampled;
 * then *WEIGHT is what it stands for, and *LEFT is drawn again. */
bool sp_sampling_pass(uint64_t *left, uint64_t *random, uint64_t period, uint64_t size,
                      sp_sampling_weight *weight);
sp_sampling_weight sp_sampling_weight_of(uint64_t *random, uint64_t period, uint64_t size);

#endif
