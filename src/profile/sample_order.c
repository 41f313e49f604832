/* SPDX-License-Identifier: Apache-2.0 */
/* Counting sort, from the least significant number to the most significant one. */
#include "profile/sample_order.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* A number of a sample, by its offset in sp_projected_sample. */
typedef enum sample_number {
    OF_STACK = offsetof(sp_projected_sample, stack),
    OF_LINK = offsetof(sp_projected_sample, link),
    OF_ATTRIBUTES = offsetof(sp_projected_sample, attributes),
} sample_number;

static inline uint32_t number_of(const sp_projected_sample *sample, sample_number which)
{
    uint32_t number;
    memcpy(&number, (const char *)sample + which, sizeof number);
    return number;
}

static uint32_t largest(const sp_projected_sample *samples, uint32_t count, sample_number which)
{
    uint32_t most = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t number = number_of(&samples[i], which);
        most = number > most ? number : most;
    }
    return most;
}

/* Set STARTS[n] to the place where the samples with number n begin in the order. */
static void count_starts(const sp_projected_sample *samples, uint32_t count, sample_number which,
                         uint32_t *starts, uint32_t most)
{
    uint32_t sum = 0;
    memset(starts, 0, ((size_t)most + 1) * sizeof *starts);
    for (uint32_t i = 0; i < count; i++)
        starts[number_of(&samples[i], which)]++;
    for (uint32_t number = 0; number <= most; number++) {
        uint32_t here = starts[number];
        starts[number] = sum;
        sum += here;
    }
}

/* Copy FROM, the places of samples, to TO, in the stable order of one of their numbers. */
static void sort_by(const sp_projected_sample *samples, uint32_t count, sample_number which,
                    uint32_t *starts, const uint32_t *from, uint32_t *to)
{
    for (uint32_t i = 0; i < count; i++)
        to[starts[number_of(&samples[from[i]], which)]++] = from[i];
}

/* Each pass copies from one array to the other, the last one to ORDER. A number that is always 0
 * needs no pass. */
bool sp_sample_order(const sp_projected_sample *samples, uint32_t count, uint32_t *order)
{
    static const sample_number passes[] = {OF_ATTRIBUTES, OF_STACK, OF_LINK};
    enum { PASSES = sizeof passes / sizeof passes[0] };
    uint32_t most[PASSES], largest_of_all = 0, needed = 0;
    for (int pass = 0; pass < PASSES; pass++) {
        most[pass] = largest(samples, count, passes[pass]);
        needed += most[pass] > 0;
        largest_of_all = most[pass] > largest_of_all ? most[pass] : largest_of_all;
    }
    uint32_t *other = malloc(((size_t)count + 1) * sizeof *other);
    uint32_t *starts = malloc(((size_t)largest_of_all + 1) * sizeof *starts);
    uint32_t *from = needed % 2 ? other : order, *to = needed % 2 ? order : other;
    for (uint32_t i = 0; i < count && other && starts; i++)
        from[i] = i;
    for (int pass = 0; pass < PASSES && other && starts; pass++) {
        if (most[pass] == 0)
            continue;
        count_starts(samples, count, passes[pass], starts, most[pass]);
        sort_by(samples, count, passes[pass], starts, from, to);
        uint32_t *swap = from;
        from = to;
        to = swap;
    }
    bool done = other && starts;
    free(other);
    free(starts);
    return done;
}
