/* SPDX-License-Identifier: Apache-2.0 */
/* What a switch of fibers costs with spanprof_fiber_switch in front of it, beside the same without,
 * in nanoseconds: two fibers, each with SCOPES scopes, hand over to each other. swapcontext saves
 * the signal mask, which is a system call; libraries that do not take a tenth, so the hook alone is
 * told, too. The ways take turns, for the machine's speed changes. */
#define BENCH_ROUNDS 101
#include <spanprof/spanprof.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include "figures.h"

enum { SWITCHES = 20000, STACK_BYTES = 64 * 1024, SCOPES_MAX = 3 };

static ucontext_t main_context, contexts[2];
static uint8_t stacks[2][STACK_BYTES];
static spanprof_fiber fibers[2];
static int scopes_wanted;

static void hand_over(int from, bool with_hook)
{
    if (with_hook)
        spanprof_fiber_switch(fibers[1 - from]);
    swapcontext(&contexts[from], &contexts[1 - from]);
}

/* Each fiber's way: begins with its scopes, then hands over whenever it is resumed. */
static void run(int number, int with_hook)
{
    spanprof_context context = {.trace_flags = 1};
    spanprof_scope scopes[SCOPES_MAX];
    memset(context.trace_id, 1 + number, sizeof context.trace_id);
    memset(context.span_id, 1 + number, sizeof context.span_id);
    for (int i = 0; i < scopes_wanted; i++)
        scopes[i] = spanprof_context_attach(&context);
    for (int i = 0; i < SWITCHES / 2; i++)
        hand_over(number, with_hook);
    for (int i = scopes_wanted; i-- > 0;)
        spanprof_scope_detach(&scopes[i]);
    if (with_hook)
        spanprof_fiber_switch((spanprof_fiber){0});
    setcontext(&main_context);
}

static double measure_swapcontext(bool with_hook)
{
    for (int i = 0; i < 2; i++) {
        getcontext(&contexts[i]);
        contexts[i].uc_stack.ss_sp = stacks[i];
        contexts[i].uc_stack.ss_size = STACK_BYTES;
        makecontext(&contexts[i], (void (*)(void))run, 2, i, (int)with_hook);
        fibers[i] = spanprof_fiber_create(stacks[i], STACK_BYTES);
    }
    uint64_t begin = sp_clock_monotonic_ns();
    if (with_hook)
        spanprof_fiber_switch(fibers[0]);
    swapcontext(&main_context, &contexts[0]);
    double ns = (double)(sp_clock_monotonic_ns() - begin) / SWITCHES;
    for (int i = 0; i < 2; i++)
        spanprof_fiber_destroy(fibers[i]);
    return ns;
}

static double measure_hook(void)
{
    spanprof_scope scopes[2][SCOPES_MAX];
    spanprof_context context = {.trace_id = {1}, .span_id = {1}, .trace_flags = 1};
    for (int i = 0; i < 2; i++) {
        fibers[i] = spanprof_fiber_create(stacks[i], STACK_BYTES);
        spanprof_fiber_switch(fibers[i]);
        for (int k = 0; k < scopes_wanted; k++)
            scopes[i][k] = spanprof_context_attach(&context);
    }
    uint64_t begin = sp_clock_monotonic_ns();
    for (int i = 0; i < SWITCHES; i++)
        spanprof_fiber_switch(fibers[i % 2]);
    double ns = (double)(sp_clock_monotonic_ns() - begin) / SWITCHES;
    for (int i = 0; i < 2; i++) {
        spanprof_fiber_switch(fibers[i]);
        for (int k = scopes_wanted; k-- > 0;)
            spanprof_scope_detach(&scopes[i][k]);
    }
    spanprof_fiber_switch((spanprof_fiber){0});
    for (int i = 0; i < 2; i++)
        spanprof_fiber_destroy(fibers[i]);
    return ns;
}

static void tell(const char *what, double *ns)
{
    qsort(ns, BENCH_ROUNDS, sizeof *ns, figures_compare);
    printf("%-44s median %7.1f  best %7.1f ns\n", what, ns[BENCH_ROUNDS / 2], ns[0]);
}

int main(void)
{
    static double without[BENCH_ROUNDS], with[BENCH_ROUNDS], hook[BENCH_ROUNDS];
    for (scopes_wanted = 0; scopes_wanted <= SCOPES_MAX; scopes_wanted = scopes_wanted * 2 + 1) {
        for (int round = 0; round < BENCH_ROUNDS; round++) {
            without[round] = measure_swapcontext(false);
            with[round] = measure_swapcontext(true);
            hook[round] = measure_hook();
        }
        printf("%d scopes in each fiber:\n", scopes_wanted);
        tell("swapcontext", without);
        tell("spanprof_fiber_switch, swapcontext", with);
        tell("spanprof_fiber_switch", hook);
    }
    return 0;
}
