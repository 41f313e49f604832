/* SPDX-License-Identifier: Apache-2.0 */
#include "alloc/byte_sampling.h"

#include <math.h>

/* A counter with an odd step goes through all 64-bit numbers; each is then mixed by multiplications and shifts, all of them reversible,
 * with constants that let every bit of the counter reach every bit of the result. */
uint64_t sp_random_next(uint64_t *random)
{
    uint64_t mixed = *random += UINT64_C(0x9e3779b97f4a7c15);
    mixed = (mixed ^ mixed >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    mixed = (mixed ^ mixed >> 27) * UINT64_C(0x94d049bb133111eb);
    return mixed ^ mixed >> 31;
}

/* Above 0, at most 1. */
static double random_share(uint64_t *random)
{
    return ((double)(sp_random_next(random) >> 11) + 1) * 0x1p-53;
}

/* P(draw > n) = P(distance >= n) = exp(-n / period) for whole n. */
uint64_t sp_alloc_draw(uint64_t *random, uint64_t period)
{
    double distance = -log(random_share(random)) * (double)period;
    return (uint64_t)distance + 1;
}

static uint64_t round_at_random(uint64_t *random, double value)
{
    double whole = floor(value);
    return (uint64_t)whole + (random_share(random) <= value - whole);
}

sp_alloc_weight sp_alloc_weight_of(uint64_t *random, uint64_t period, uint64_t bytes)
{
    double probability = -expm1(-(double)bytes / (double)period);
    return (sp_alloc_weight){.bytes = round_at_random(random, (double)bytes / probability),
                             .objects = round_at_random(random, 1 / probability)};
}
