/* SPDX-License-Identifier: Apache-2.0 */
/* Time and quantiles for benchmarks. */
#ifndef TESTS_FIGURES_H
#define TESTS_FIGURES_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "core/clock.h"
#include "core/compiler.h"
#include "core/cycles_sig.h"

/* The counter once everything before it is done, and before anything behind it begins. */
static inline uint64_t figures_count(void)
{
#if defined(__x86_64__)
    __builtin_ia32_lfence();
    uint64_t count = sp_cycles();
    __builtin_ia32_lfence();
    return count;
#else
    return sp_cycles();
#endif
}

static inline SP_UNUSED double figures_counts_per_ns(void)
{
    uint64_t start_ns = sp_clock_monotonic_ns(), start = figures_count();
    while (sp_clock_monotonic_ns() - start_ns < 100 * SP_NS_PER_MS)
        ;
    uint64_t counts = figures_count() - start;
    return (double)counts / (double)(sp_clock_monotonic_ns() - start_ns);
}

static inline int figures_compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The value at SHARE of the length of VALUES, which gets sorted. */
static inline SP_UNUSED double figures_quantile(double *values, size_t count, double share)
{
    qsort(values, count, sizeof values[0], figures_compare);
    return values[(size_t)(share * (double)(count - 1) + 0.5)];
}

#endif
