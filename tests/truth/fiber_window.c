/* SPDX-License-Identifier: Apache-2.0 */
/* What falls between the two halves of a fiber's switch. Two fibers hand over to each other, and
 * work on purpose between the call of spanprof_fiber_switch and that of swapcontext, where the
 * context is already the other's: those samples must be unknown. One in three switches goes by the
 * thread's own stack, whose work there must be unknown as well. */
#include <spanprof/spanprof.h>

#include <stdio.h>
#include <stdlib.h>
#include <ucontext.h>

#include "truth/truth_work.h"

enum { WORK_NS = 100000, STACK_BYTES = 256 * 1024, OWN = 2 };

static ucontext_t contexts[3];
static spanprof_fiber fibers[3]; /* the last is zero: the thread's own stack */
static char stacks[2][STACK_BYTES];
static unsigned rounds;

static void hand_over(int from, int to)
{
    spanprof_fiber_switch(fibers[to]);
    truth_work((unsigned)from, WORK_NS);
    swapcontext(&contexts[from], &contexts[to]);
}

static void run(int self)
{
    spanprof_span span = spanprof_span_start(NULL, "fiber", NULL);
    spanprof_span_set_int(span, "request.number", self);
    spanprof_scope scope = spanprof_span_attach(span);
    for (unsigned round = 0; round < rounds; round++) {
        truth_work((unsigned)self, WORK_NS);
        hand_over(self, round % 3 == 2 ? OWN : (self + 1) % 2);
    }
    spanprof_scope_detach(&scope);
    spanprof_span_end(span);
    for (;;)
        hand_over(self, OWN);
}

int main(int argc, char **argv)
{
    rounds = argc > 1 ? (unsigned)atoi(argv[1]) : 3000;
    if (spanprof_start(NULL, NULL) != SPANPROF_OK)
        return 1;
    for (int i = 0; i < OWN; i++) {
        fibers[i] = spanprof_fiber_create(stacks[i], STACK_BYTES);
        getcontext(&contexts[i]);
        contexts[i].uc_stack.ss_sp = stacks[i];
        contexts[i].uc_stack.ss_size = STACK_BYTES;
        makecontext(&contexts[i], (void (*)(void))run, 1, i);
    }
    spanprof_span span = spanprof_span_start(NULL, "own", NULL);
    spanprof_span_set_int(span, "request.number", OWN);
    spanprof_scope scope = spanprof_span_attach(span);
    for (unsigned round = 0; round < rounds; round++) {
        truth_work(OWN, WORK_NS);
        hand_over(OWN, round % 2);
    }
    spanprof_scope_detach(&scope);
    spanprof_span_end(span);
    return spanprof_stop(UINT64_C(5000000000)) == SPANPROF_OK ? 0 : 1;
}
