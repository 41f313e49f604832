/* SPDX-License-Identifier: Apache-2.0 */
/* The verdicts of tests that measure, for programs in C. verdict.py says what broken and unsure
 * mean and runs the tests.
 *
 * A program of cmocka fails an assertion for what is broken, calls verdict_unsure for what this run
 * cannot answer, and returns verdict_code(cmocka_run_group_tests(...)) from main. */
#ifndef TESTS_VERDICT_H
#define TESTS_VERDICT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Exit codes beside 0. */
enum { VERDICT_BROKEN = 1, VERDICT_UNSURE = 75, VERDICT_SKIPPED = 77 };

/* How many times fewer samples, or less time, the short form of a test takes. */
enum { VERDICT_SHORT = 10 };

static unsigned verdict_unsure_count;

/* Whether this is the full form of the test. */
static inline bool verdict_is_full(void)
{
    const char *value = getenv("SPANPROF_TEST_MEASURE");
    return value && strcmp(value, "1") == 0;
}

/* FULL in the full form, a tenth of it in the short one. */
static inline double verdict_sized(double full)
{
    return verdict_is_full() ? full : full / VERDICT_SHORT;
}

/* Prints why this run cannot answer the question. The test continues, because it may still find
 * something broken. */
__attribute__((format(printf, 1, 2))) static inline void verdict_unsure(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    printf("UNSURE: ");
    vprintf(format, arguments);
    printf("\n");
    (void)fflush(stdout);
    va_end(arguments);
    verdict_unsure_count++;
}

/* The exit code for main. FAILED is the number of cases that found something broken. */
static inline int verdict_code(int failed)
{
    return failed ? VERDICT_BROKEN : verdict_unsure_count ? VERDICT_UNSURE : 0;
}

/* Judges VALUE, which has to be between LOW and HIGH. The noise can move it by MARGIN out of these
 * bounds; there it is unsure. Returns false when VALUE is even further out: then it is broken, and
 * a message was printed. */
static inline bool verdict_within(const char *what, double value, double low, double high,
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

/* Unsure when GOT is less than WANTED: that is too little to answer the question. */
static inline void verdict_enough(const char *what, double got, double wanted)
{
    if (got < wanted)
        verdict_unsure("only %.0f %s, %.0f are needed", got, what, wanted);
}

/* The CPU time in seconds that the hypervisor took from all cores since the machine started; 0 when
 * it is not in /proc/stat. */
static inline double verdict_steal(void)
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
