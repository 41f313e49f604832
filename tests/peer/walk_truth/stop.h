/* SPDX-License-Identifier: Apache-2.0 */
/* One stop: the walk and libunwind's from the same registers in the same signal handler, compared
 * frame by frame. Where the two differ, libgcc is asked as well. Threads: one stop at a time.
 * Signals: made for handlers, but libunwind and libgcc promise nothing there; preload.c says what
 * keeps them from waiting for a lock. */
#ifndef TESTS_PEER_WALK_TRUTH_STOP_H
#define TESTS_PEER_WALK_TRUTH_STOP_H

#include <stdatomic.h>
#include <stdio.h>

#include "unwind/walk_sig.h"

enum { STOP_DEPTH = 1024, STOP_KEPT = 64, STOP_ROOTS = 16 };

typedef enum stop_verdict {
    STOP_EQUAL,        /* the same frames as libunwind's, and the walk says that they are all */
    STOP_EQUAL_LIBGCC, /* not libunwind's, but libgcc's */
    STOP_BEYOND, /* called whole, and the same as theirs as far as these go: nobody knows the rest
                  */
    STOP_LOST,   /* marked as cut short, and neither of them comes to a root frame */
    STOP_DOUBT,  /* marked as cut short, and the same as far as it goes as one who does */
    STOP_DEEP,   /* deeper than STOP_DEPTH: not judged */
    STOP_WRONG_MARKED, /* other frames than one who comes to a root, but marked */
    STOP_WRONG,        /* other frames than both, or called whole and is not */
    STOP_VERDICTS
} stop_verdict;

typedef struct stop_stack {
    uint32_t count;
    bool failed; /* its maker ended with an error, or crashed */
    uint64_t pcs[STOP_DEPTH];
} stop_stack;

/* A stop that was not equal, the first with its verdict and frames. */
typedef struct stop_example {
    stop_verdict verdict;
    sp_walk_end end;
    uint64_t times;
    const sp_generation *generation; /* for names: none is freed */
    stop_stack ours, libunwind, libgcc;
} stop_example;

/* The sum of verdicts is the number of stops. The caller clears it. */
typedef struct stop_score {
    uint64_t verdicts[STOP_VERDICTS];
    uint64_t frames;
    uint64_t by_frame_pointer;  /* stops with a step along frame pointers */
    uint64_t libunwind_failed;  /* stops at which it ended with an error */
    uint64_t reference_crashed; /* stops at which it, or libgcc, met SIGSEGV */
    uint64_t ends[SP_WALK_FOLDED];
    uint64_t roots[STOP_ROOTS]; /* last frames of equal stacks: where threads begin */
    uint32_t root_count;
    uint32_t example_count;
    stop_example examples[STOP_KEPT];
} stop_score;

/* Once, before the first stop. FOREIGN: code without frame information is expected, at which
 * libunwind guesses: only libgcc is asked, which ends there. False when the other two are not
 * there. */
bool stop_set_up(bool foreign);

uint64_t stop_count(const stop_score *score);

/* Compare at UCONTEXT, which a signal handler of the calling thread got, and count in SCORE. */
void stop_compare(stop_score *score, const sp_generation *generation, sp_stack_bounds bounds,
                  void *ucontext);

/* SCORE as one JSON object. Not for handlers. */
void stop_write(const stop_score *score, FILE *out);

#endif
