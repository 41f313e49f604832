/* SPDX-License-Identifier: Apache-2.0 */
/* Spans that no tick hits cost no memory: a million spans a second are started, attached, detached
 * and ended with sampling on, and the memory that the process holds afterwards is compared with
 * what it held before. Public API only.
 *
 *   spans_workload SECONDS [SPANS_A_SECOND]
 *
 * Before the first look everything that is made once has been made: the load has run for some
 * windows. What is compared is the anonymous memory that /proc/self/smaps_rollup counts page by
 * page (the sums in status are estimates). Some pages are touched for the first time when a tick
 * meets new code; a span that left a single byte behind would show as megabytes. So it is broken
 * (tests/verdict.py) when half a byte a span is left, and unsure when it is more than those pages,
 * or the rate was not kept. Spans are not exported: their queue is another matter, and bounded. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <spanprof/spanprof.h>
#include "verdict.h"

#define NS_PER_S  1000000000ull
#define NS_PER_MS 1000000ull
enum { WARM_UP_S = 4, BURST_MS = 1, TICKS_PAGES_BYTES = 64 * 1024 };

/* The short form's windows are as much shorter as its warm-up. */
enum { WINDOW_MS = 1000, SHORT_WINDOW_MS = 250 };

static uint64_t spans_a_second = 1000000;
static atomic_bool stopping;
static _Atomic uint64_t spans_made;

static uint64_t clock_ns(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

static void make_spans(uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        spanprof_span span = spanprof_span_start(NULL, "unseen", NULL);
        spanprof_scope scope = spanprof_span_attach(span);
        spanprof_scope_detach(&scope);
        spanprof_span_end(span);
    }
    atomic_fetch_add(&spans_made, count);
}

/* A burst each millisecond; one that came late is made up for. */
static void *run(void *unused)
{
    (void)unused;
    uint64_t start = clock_ns(CLOCK_MONOTONIC), made = 0;
    while (!atomic_load(&stopping)) {
        uint64_t due = (clock_ns(CLOCK_MONOTONIC) - start) / NS_PER_MS * spans_a_second / 1000;
        make_spans(due - made);
        made = due;
        struct timespec pause = {.tv_nsec = BURST_MS * (long)NS_PER_MS};
        nanosleep(&pause, NULL);
    }
    return NULL;
}

static void nap(double seconds)
{
    struct timespec pause = {.tv_sec = (time_t)seconds,
                             .tv_nsec = (long)((seconds - (double)(time_t)seconds) * 1e9)};
    nanosleep(&pause, NULL);
}

static uint64_t anonymous_bytes(void)
{
    char line[256];
    unsigned long long kib = 0;
    FILE *file = fopen("/proc/self/smaps_rollup", "r");
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "Anonymous: %llu kB", &kib) == 1)
            break;
    if (file)
        fclose(file);
    return kib * 1024;
}

static spanprof_stats stats_now(void)
{
    spanprof_stats stats = SPANPROF_STATS_INIT;
    spanprof_stats_get(&stats);
    return stats;
}

/* The ticks counted only once the window is closed. */
static uint64_t flushed_ticks(void)
{
    spanprof_flush(30 * NS_PER_S);
    return stats_now().ticks;
}

static int judge(double seconds, uint64_t spans, uint64_t ticks, int64_t grown)
{
    double rate = (double)spans / seconds;
    printf("engine %s, %u Hz: %.0f spans a second for %.1f s, %llu ticks: %lld bytes more\n",
           stats_now().engine, stats_now().cpu_hz, rate, seconds, (unsigned long long)ticks,
           (long long)grown);
    if (grown > 4 * TICKS_PAGES_BYTES && grown > (int64_t)(spans / 2)) {
        printf("BROKEN: spans leave memory behind\n");
        return VERDICT_BROKEN;
    }
    if (grown > TICKS_PAGES_BYTES)
        verdict_unsure("%lld bytes more, right is %d at most", (long long)grown, TICKS_PAGES_BYTES);
    if (rate < 0.9 * (double)spans_a_second || ticks == 0)
        verdict_unsure("this machine did not keep the rate, or took no tick");
    return verdict_code(0);
}

int main(int argc, char **argv)
{
    double seconds = argc > 1 ? atof(argv[1]) : 0;
    bool is_full = verdict_is_full();
    if (!is_full && seconds > 1)
        seconds = verdict_sized(seconds) > 1 ? verdict_sized(seconds) : 1;
    if (argc > 2)
        spans_a_second = strtoull(argv[2], NULL, 10);
    if (seconds <= 0 || spans_a_second < 1000) {
        fprintf(stderr, "usage: spans_workload SECONDS [SPANS_A_SECOND, from 1,000]\n");
        return 2;
    }
    spanprof_options options = SPANPROF_OPTIONS_INIT;
    options.window_ms = is_full ? WINDOW_MS : SHORT_WINDOW_MS;
    spanprof_error error;
    if (spanprof_start(&options, &error) != SPANPROF_OK) {
        fprintf(stderr, "spanprof_start: %s\n", error.message);
        return 1;
    }
    pthread_t thread;
    pthread_create(&thread, NULL, run, NULL);
    anonymous_bytes(); /* the buffer of stdio */
    nap(WARM_UP_S * (is_full ? WINDOW_MS : SHORT_WINDOW_MS) / 1000.0);
    uint64_t ticks = flushed_ticks(), spans = atomic_load(&spans_made), before = anonymous_bytes();
    uint64_t start = clock_ns(CLOCK_MONOTONIC);
    nap(seconds);
    spans = atomic_load(&spans_made) - spans;
    double took = (double)(clock_ns(CLOCK_MONOTONIC) - start) / 1e9;
    ticks = flushed_ticks() - ticks;
    int64_t grown = (int64_t)anonymous_bytes() - (int64_t)before;
    int result = judge(took, spans, ticks, grown);
    atomic_store(&stopping, true);
    pthread_join(thread, NULL);
    spanprof_stop(30 * NS_PER_S);
    return result;
}
