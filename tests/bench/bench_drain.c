/* SPDX-License-Identifier: Apache-2.0 */
/* What the collector does with the rings, without names: drain, join, aggregate. One thread ticks
 * TICKS times, under SPANS contexts in turn and from two functions, then the drain takes them into
 * a window; and a drain that finds nothing, with THREADS threads that sleep.
 *
 *   bench_drain [ROUNDS] */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include <spanprof/spanprof.h>
#include "bench/figures.h"
#include "collect/drain.h"
#include "cpu/cpu_engine.h"

enum { TICKS = 100, SPANS = 10, THREADS = 100, ROUNDS_MAX = 10000 };

static sp_drain drain;
static sp_window window;
static sp_modules *modules;
static pthread_barrier_t arrived, done;

static __attribute__((noinline)) void tick_below(void)
{
    sp_engine_tick_here(1);
    __asm__ volatile("");
}

static void tick(unsigned n)
{
    spanprof_context context = {.trace_flags = SPANPROF_TRACE_FLAG_SAMPLED};
    memset(context.trace_id, 7, sizeof context.trace_id);
    memset(context.span_id, 1 + (int)(n % SPANS), sizeof context.span_id);
    spanprof_scope scope = spanprof_context_attach(&context);
    if (n % 2)
        tick_below();
    else
        sp_engine_tick_here(1);
    spanprof_scope_detach(&scope);
}

static double drain_counts(void)
{
    uint64_t start = figures_count();
    sp_drain_run(&drain, &window, modules, 16000);
    return (double)(figures_count() - start);
}

static void *sleep_registered(void *unused)
{
    sp_thread_self_create();
    pthread_barrier_wait(&arrived);
    pthread_barrier_wait(&done);
    return unused;
}

static void print(const char *what, double *values, int count, double unit)
{
    printf("%-34s median %8.1f  best %8.1f ns\n", what,
           figures_quantile(values, (size_t)count, 0.5) / unit,
           figures_quantile(values, (size_t)count, 0) / unit);
}

int main(int argc, char **argv)
{
    static double full[ROUNDS_MAX], empty[ROUNDS_MAX];
    int rounds = argc > 1 ? atoi(argv[1]) : 1000;
    pthread_t threads[THREADS];
    modules = sp_modules_create();
    if (rounds < 1 || rounds > ROUNDS_MAX || !modules || !sp_thread_self_create())
        return 2;
    sp_engine_config config = {
        .cpu_hz = 99, .max_depth = 128, .synthetic = true, .modules = modules};
    sp_engine_start(&config, NULL);
    sp_drain_begin(&drain);
    double counts_per_ns = figures_counts_per_ns();
    for (int round = 0; round < rounds; round++) {
        for (unsigned n = 0; n < TICKS; n++)
            tick(n);
        full[round] = drain_counts() / TICKS;
    }
    uint64_t taken = window.cpu.count;
    pthread_barrier_init(&arrived, NULL, THREADS + 1);
    pthread_barrier_init(&done, NULL, THREADS + 1);
    for (int n = 0; n < THREADS; n++)
        pthread_create(&threads[n], NULL, sleep_registered, NULL);
    pthread_barrier_wait(&arrived);
    for (int round = 0; round < rounds; round++)
        empty[round] = drain_counts();
    pthread_barrier_wait(&done);
    for (int n = 0; n < THREADS; n++)
        pthread_join(threads[n], NULL);
    print("a sample, drained", full, rounds, counts_per_ns);
    print("a drain of 100 idle threads", empty, rounds, counts_per_ns);
    if (taken != (uint64_t)rounds * TICKS) {
        printf("WRONG: %llu samples of %d\n", (unsigned long long)taken, rounds * TICKS);
        return 1;
    }
    sp_engine_stop();
    return 0;
}
