/* SPDX-License-Identifier: Apache-2.0 */
/* What the time recorder costs a switch, beside one reading of its clock in the same rounds, and
 * how many bytes a switch takes in the file. Each round is short enough for the ring, and the
 * writer has emptied it before the next: what is measured is the thread's side. Then what
 * attributes of contexts cost. bench_switches [FILE]      (/dev/shm/spanprof-bench.switches) */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench/figures.h"
#include "sdk/switch_file.h"
#include "context/thread.h"

enum { BURST = 8000, ROUNDS = 200 };

static spanprof_context kept;
static uint64_t next_span;

static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    return x ^ x >> 27;
}

static void clock_alone(void)
{
    uint64_t now_ns = sp_clock_monotonic_ns();
    __asm__ volatile("" : : "r"(now_ns));
}

/* Two switches. */
static void same_context(void)
{
    spanprof_scope scope = spanprof_context_attach(&kept);
    spanprof_scope_detach(&scope);
}

/* Two switches, to a span that was never seen, in a trace of its own. */
static void fresh_request(void)
{
    spanprof_context context = kept;
    uint64_t id = mix(++next_span);
    memcpy(context.trace_id, &id, sizeof id);
    memcpy(context.span_id, &id, sizeof id);
    memcpy(context.local_root_span_id, &id, sizeof id);
    spanprof_scope scope = spanprof_context_attach(&context);
    spanprof_scope_detach(&scope);
}

/* Eight switches: a request with three spans below it, one after the other. */
static void request_with_three_spans(void)
{
    spanprof_context context = kept;
    uint64_t id = mix(++next_span);
    memcpy(context.trace_id, &id, sizeof id);
    memcpy(context.span_id, &id, sizeof id);
    memcpy(context.local_root_span_id, &id, sizeof id);
    spanprof_scope request = spanprof_context_attach(&context);
    for (int i = 0; i < 3; i++) {
        id = mix(++next_span);
        memcpy(context.span_id, &id, sizeof id);
        spanprof_scope scope = spanprof_context_attach(&context);
        spanprof_scope_detach(&scope);
    }
    spanprof_scope_detach(&request);
}

typedef struct workload {
    const char *name;
    void (*run)(void);
    int switches; /* a call */
} workload;

static const workload workloads[] = {
    {"attach, detach of one context", same_context, 2},
    {"attach, detach of a request's span, each new", fresh_request, 2},
    {"a request with three spans, all new", request_with_three_spans, 8},
};

static double measure(void (*run)(void), int calls)
{
    uint64_t begin = sp_clock_monotonic_ns();
    for (int i = 0; i < calls; i++)
        run();
    return (double)(sp_clock_monotonic_ns() - begin) / calls;
}

/* Rounds take turns: off, on, the clock. */
static void compare(const workload *w, const char *path)
{
    static double off[ROUNDS], on[ROUNDS], clocks[ROUNDS];
    int calls = BURST / w->switches;
    sp_switch_counters counters;
    struct stat status;
    uint64_t recorded = 0, lost = 0, bytes = 0;
    for (int round = 0; round < ROUNDS; round++) {
        off[round] = measure(w->run, calls) / w->switches;
        clocks[round] = measure(clock_alone, BURST);
        if (!sp_switch_file_start(path))
            exit(1);
        w->run(); /* the thread begins its records */
        sp_switch_file_flush(UINT64_MAX);
        on[round] = measure(w->run, calls) / w->switches;
        sp_switch_file_stop(UINT64_MAX);
        sp_switch_file_counters_get(&counters);
        recorded += counters.recorded;
        lost += counters.lost;
        if (stat(path, &status) == 0)
            bytes += (uint64_t)status.st_size;
    }
    double with = figures_quantile(on, ROUNDS, 0.5), without = figures_quantile(off, ROUNDS, 0.5);
    double clock = figures_quantile(clocks, ROUNDS, 0.5);
    printf("%-46s off %5.1f  on %5.1f ns a switch; the clock alone %5.1f, ratio %.2f (best %.2f); "
           "%.1f bytes a switch%s\n",
           w->name, without, with, clock, with / clock, on[0] / clocks[0],
           (double)bytes / (double)recorded, lost ? " LOST SOME" : "");
}

/* --- as fast as it goes ----------------------------------------------------------------------- */

enum { FLOOD_THREADS = 2, FLOOD_MS = 1000 };

static void *flood(void *argument)
{
    uint64_t *count = argument, until = sp_clock_monotonic_ns() + FLOOD_MS * SP_NS_PER_MS;
    while (sp_clock_monotonic_ns() < until)
        for (int i = 0; i < 500; i++, *count += 2)
            same_context();
    return NULL;
}

/* What is done, and what of it is in the file, or counted. */
static void measure_flood(const char *path)
{
    pthread_t threads[FLOOD_THREADS];
    uint64_t counts[FLOOD_THREADS] = {0}, done = 0;
    sp_switch_counters counters;
    if (!sp_switch_file_start(path))
        exit(1);
    for (int i = 0; i < FLOOD_THREADS; i++)
        pthread_create(&threads[i], NULL, flood, &counts[i]);
    for (int i = 0; i < FLOOD_THREADS; i++) {
        pthread_join(threads[i], NULL);
        done += counts[i];
    }
    sp_switch_file_stop(UINT64_MAX);
    sp_switch_file_counters_get(&counters);
    printf("%d threads, as fast as they can: %.1f million switches a second; %.2f %% lost; "
           "%lld neither in the file nor counted\n",
           FLOOD_THREADS, (double)done / 1e3 / FLOOD_MS, 100 * (double)counters.lost / (double)done,
           (long long)(done - counters.recorded - counters.lost));
}

/* --- attributes ------------------------------------------------------------------------------- */

static spanprof_context with_attributes[2];

static void alternate(void)
{
    for (int i = 0; i < 2; i++) {
        spanprof_scope scope = spanprof_context_attach(&with_attributes[i]);
        spanprof_scope_detach(&scope);
    }
}

static void same_with_attributes(void)
{
    spanprof_scope scope = spanprof_context_attach(&with_attributes[0]);
    spanprof_scope_detach(&scope);
}

static void set_attributes(void)
{
    spanprof_context context = kept;
    spanprof_context_set_attribute(&context, "tenant", "acme");
    spanprof_context_set_attribute(&context, "http.route", "/cart/{id}");
}

static void measure_attributes(void)
{
    static const struct {
        const char *name;
        void (*run)(void);
        int operations;
    } all[] = {
        {"attach, detach, no attributes, but elsewhere in the process", same_context, 1},
        {"attach, detach of a context with 2 attributes", same_with_attributes, 1},
        {"the same of two contexts by turns", alternate, 2},
        {"a request's 2 attributes, seen before", set_attributes, 1},
    };
    static double ns[ROUNDS];
    for (int round = 0; round < ROUNDS; round++)
        ns[round] = measure(same_context, BURST);
    printf("%-60s %6.1f ns\n", "attach, detach, no attributes in the process",
           figures_quantile(ns, ROUNDS, 0.5));
    for (int i = 0; i < 2; i++) {
        with_attributes[i] = kept;
        spanprof_context_set_attribute(&with_attributes[i], "tenant", i ? "acme" : "globex");
        spanprof_context_set_attribute(&with_attributes[i], "http.route", "/cart/{id}");
    }
    for (size_t i = 0; i < SP_ARRAY_LENGTH(all); i++) {
        for (int round = 0; round < ROUNDS; round++)
            ns[round] = measure(all[i].run, BURST / all[i].operations) / all[i].operations;
        printf("%-60s %6.1f ns\n", all[i].name, figures_quantile(ns, ROUNDS, 0.5));
    }
}

int main(int argc, char **argv)
{
    const char *path = argc > 1 ? argv[1] : "/dev/shm/spanprof-bench.switches";
    memset(&kept, 7, sizeof kept.trace_id + sizeof kept.span_id + sizeof kept.local_root_span_id);
    kept.trace_flags = SPANPROF_TRACE_FLAG_SAMPLED;
    for (size_t i = 0; i < SP_ARRAY_LENGTH(workloads); i++)
        compare(&workloads[i], path);
    measure_flood(path);
    unlink(path);
    measure_attributes();
    return 0;
}
