/* SPDX-License-Identifier: Apache-2.0 */
/* Compares a walk with libgcc's _Unwind_Backtrace in the same signal handler. From the interrupted
 * instruction on, both stacks have to be equal, frame by frame. */
#ifndef TESTS_WALK_REFERENCE_H
#define TESTS_WALK_REFERENCE_H

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unwind.h>

#include "context/ring_sig.h"
#include "walk_fixture.h"

/* stops == equal + doubtful + wrong + unknown. The first difference is kept for the report. */
typedef struct reference_score {
    uint64_t stops;
    uint64_t equal;
    uint64_t doubtful; /* the walk ended early and says so; its frames are right */
    uint64_t wrong;    /* a frame differs, or the walk is not complete and says that it is */
    uint64_t unknown;  /* the walk is complete, but libgcc has no information on the interrupted
                          code (PLT entries, and the signal trampoline of aarch64) */
    uint64_t frames;
    uint64_t ends[8];
    uint64_t doubtful_pc;
    uint64_t ours[WALK_DEPTH], theirs[WALK_DEPTH];
    uint32_t our_count, their_count;
    sp_walk_end end;
} reference_score;

typedef struct reference_stack {
    uint64_t pcs[WALK_DEPTH];
    uint32_t count;
    uint64_t first;     /* the interrupted pc; frames before it are of the handler */
    bool found;         /* the frame `first` was found */
    bool last_is_exact; /* the last frame's pc is exact: a signal interrupted it */
} reference_stack;

static _Unwind_Reason_Code reference_frame(struct _Unwind_Context *context, void *user)
{
    reference_stack *stack = user;
    int is_exact = 0;
    uint64_t pc = _Unwind_GetIPInfo(context, &is_exact);
    stack->found |= is_exact && pc == stack->first;
    if (!stack->found || !pc || stack->count == WALK_DEPTH)
        return _URC_NO_REASON;
    /* A signal interrupted this frame, so the frame before it in the list is the signal trampoline,
     * unless that frame was itself interrupted. */
    if (is_exact && stack->count > 0 && !stack->last_is_exact)
        stack->pcs[stack->count - 1] = SP_PC_SIGNAL_HANDLER;
    stack->pcs[stack->count++] = pc - !is_exact;
    stack->last_is_exact = is_exact;
    return _URC_NO_REASON;
}

static void reference_keep(reference_score *score, const sp_walk *walk,
                           const reference_stack *theirs)
{
    memcpy(score->ours, walk->pcs, walk->count * sizeof *score->ours);
    memcpy(score->theirs, theirs->pcs, theirs->count * sizeof *score->theirs);
    score->our_count = walk->count;
    score->their_count = theirs->count;
    score->end = walk->end;
}

/* Called in a signal handler: walk from UCONTEXT in both ways, and count the result. */
static void reference_compare(reference_score *score, const void *ucontext)
{
    uint64_t pcs[WALK_DEPTH];
    sp_walk walk = walk_interrupted(ucontext, pcs);
    bool is_whole = walk.end == SP_WALK_COMPLETE || walk.end == SP_WALK_TRUNCATED;
    score->stops++;
    score->frames += walk.count;
    score->ends[walk.end]++;
    /* On aarch64 this is the kernel's signal trampoline, where libgcc may crash. */
    if (!sp_generation_find(generation, walk.registers.pc)) {
        *(is_whole ? &score->unknown : &score->doubtful) += 1;
        return;
    }
    reference_stack theirs = {.first = walk.registers.pc};
    _Unwind_Backtrace(reference_frame, &theirs);
    bool is_prefix =
        walk.count <= theirs.count && memcmp(walk.pcs, theirs.pcs, walk.count * sizeof *pcs) == 0;
    if (is_prefix && walk.count == theirs.count && is_whole) {
        score->equal++;
    } else if (walk.by_frame_pointer == 1 && theirs.count == 1 && theirs.pcs[0] == pcs[0] &&
               walk.end == SP_WALK_COMPLETE) {
        score->unknown++;
    } else if (is_prefix && !is_whole) {
        if (!score->doubtful++ && !score->wrong)
            reference_keep(score, &walk, &theirs);
    } else if (!score->wrong++) {
        reference_keep(score, &walk, &theirs);
    }
}

static SP_UNUSED void reference_print_stack(const char *title, const uint64_t *pcs, uint32_t count)
{
    printf("  %s\n", title);
    for (uint32_t i = 0; i < count; i++) {
        const sp_module *module = sp_generation_find(generation, pcs[i]);
        printf("    %#lx %s+%#lx\n", (unsigned long)pcs[i], module ? module->path : "?",
               (unsigned long)(pcs[i] - (module ? module->bias : 0)));
    }
}

static SP_UNUSED void reference_report(const char *name, const reference_score *score)
{
    printf("%-28s %7lu stops, %5.1f frames: %lu equal, %lu unknown, %lu doubtful, %lu wrong; ends",
           name, (unsigned long)score->stops,
           (double)score->frames / (double)(score->stops ? score->stops : 1),
           (unsigned long)score->equal, (unsigned long)score->unknown,
           (unsigned long)score->doubtful, (unsigned long)score->wrong);
    for (int i = 0; i < 6; i++)
        printf(" %lu", (unsigned long)score->ends[i]);
    printf("\n");
    if (score->wrong || score->doubtful) {
        printf("  the first difference, end %d:\n", (int)score->end);
        reference_print_stack("the walk", score->ours, score->our_count);
        reference_print_stack("libgcc", score->theirs, score->their_count);
    }
    fflush(stdout);
}

#endif
