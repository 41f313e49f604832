/* SPDX-License-Identifier: Apache-2.0 */
#include "call/call_sampling.h"

#include <math.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/atomic.h"
#include "core/clock.h"

/* Called once for each thread. It uses the system call, because getrandom(3) is a cancellation
 * point, and malloc must not be one. If the kernel has no random numbers yet (at boot), the clock
 * and a counter are enough. */
uint64_t sp_random_seed(void)
{
    static _Atomic uint64_t count;
    uint64_t seed = 0;
    if (syscall(SYS_getrandom, &seed, sizeof seed, GRND_NONBLOCK) != (long)sizeof seed)
        seed = sp_clock_monotonic_ns();
    seed += atomic_fetch_add_explicit(&count, 1, memory_order_relaxed);
    return seed ? seed : 1;
}

/* A counter with an odd step goes through all 64-bit numbers; each is then mixed by multiplications
 * and shifts, all of them reversible, with constants that let every bit of the counter reach every
 * bit of the result. */
uint64_t sp_random_next(uint64_t *random)
{
    uint64_t mixed = *random += UINT64_C(0x9e3779b97f4a7c15);
    mixed = (mixed ^ mixed >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    mixed = (mixed ^ mixed >> 27) * UINT64_C(0x94d049bb133111eb);
    return mixed ^ mixed >> 31;
}

/* A random number above 0 and at most 1. */
static double random_share(uint64_t *random)
{
    return ((double)(sp_random_next(random) >> 11) + 1) * 0x1p-53;
}

/* P(draw > n) = P(distance >= n) = exp(-n / period) for whole n. */
uint64_t sp_sampling_draw(uint64_t *random, uint64_t period)
{
    double distance = -log(random_share(random)) * (double)period;
    return (uint64_t)distance + 1;
}

static uint64_t round_at_random(uint64_t *random, double value)
{
    double whole = floor(value);
    return (uint64_t)whole + (random_share(random) <= value - whole);
}

sp_sampling_weight sp_sampling_weight_of(uint64_t *random, uint64_t period, uint64_t size)
{
    double probability = -expm1(-(double)size / (double)period);
    return (sp_sampling_weight){.size = round_at_random(random, (double)size / probability),
                                .count = round_at_random(random, 1 / probability)};
}

bool sp_sampling_pass(uint64_t *left, uint64_t *random, uint64_t period, uint64_t size,
                      sp_sampling_weight *weight)
{
    if (size < *left) {
        *left -= size;
        return false;
    }
    *left = sp_sampling_draw(random, period);
    *weight = sp_sampling_weight_of(random, period, size);
    return true;
}
