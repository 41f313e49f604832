/* SPDX-License-Identifier: Apache-2.0 */
/* A fuzz target is one parser of other people's bytes, fuzz_TARGET.c, with the one function that
 * libFuzzer calls for each input it thinks of. A target does more than not crash: what the parser
 * accepts has to hold what its header promises. The files of corpus/TARGET/ are where libFuzzer
 * begins, and, without it, all that is run (replay.c). */
#ifndef TESTS_FUZZ_FUZZ_H
#define TESTS_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Returns 0. DATA has exactly LENGTH bytes: a sanitizer sees what reads behind them. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length);

/* End with a crash, which is what libFuzzer keeps the input for, unless CONDITION holds. */
#define FUZZ_CHECK(condition)                                                                      \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #condition);         \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

/* DATA as a string, up to its first NUL, in a block of its own; for free(). */
static inline char *fuzz_string(const uint8_t *data, size_t length)
{
    char *text = strndup((const char *)data, length);
    FUZZ_CHECK(text);
    return text;
}

#endif
