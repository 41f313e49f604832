/* SPDX-License-Identifier: Apache-2.0 */
/* Bounds of what a program in C measures; verdict.py has the same for judges. After verdict.h. */
#ifndef TESTS_SIGNAL_MEASURED_H
#define TESTS_SIGNAL_MEASURED_H

#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

#include "verdict.h"

/* VALUE belongs between LOW and HIGH, and the noise can move it by MARGIN beyond them. Between the bound and that it is unsure. False:
 * it is further out, so broken; this has been printed. */
static inline bool measured_within(const char *what, double value, double low, double high,
                                   double margin)
{
    if (value >= low && value <= high)
        return true;
    if (value >= low - margin && value <= high + margin) {
        verdict_unsure("%s: %.3f, right is %.3f to %.3f; the noise can reach %.3f further", what,
                       value, low, high, margin);
        return true;
    }
    printf("BROKEN: %s: %.3f, right is %.3f to %.3f, and the noise reaches %.3f further\n", what,
           value, low, high, margin);
    (void)fflush(stdout);
    return false;
}

/* Fewer than WANTED cannot answer the question. */
static inline void measured_enough(const char *what, double got, double wanted)
{
    if (got < wanted)
        verdict_unsure("only %.0f %s, %.0f are needed", got, what, wanted);
}

/* CPU time that the hypervisor took away from all cores since the machine started; 0 where /proc does not say. */
static inline double measured_steal(void)
{
    unsigned long long steal = 0;
    FILE *file = fopen("/proc/stat", "re");
    if (!file)
        return 0;
    if (fscanf(file, "cpu %*u %*u %*u %*u %*u %*u %*u %llu", &steal) != 1)
        steal = 0;
    (void)fclose(file);
    return (double)steal / (double)sysconf(_SC_CLK_TCK);
}

#endif
