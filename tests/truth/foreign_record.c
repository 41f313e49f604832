/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that work under spans of another tracer, which publishes them (foreign_tracer.c), and
 * never call spanprof. Some work under spans of ours, too, which come first. Threads come and go.
 *
 *   foreign_record STYLE TICKS [SPANPROF TRACER]     STYLE: swaps, flags, or waits: as flags, and
 * the works wait
 *
 * With two more names, of libraries, the program is linked with neither, and loads both. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <spanprof/spanprof.h>
#include "foreign_tracer.h"
#include "truth_work.h"

enum { THREADS = 4, OURS = 50 };

#ifdef LOADS
static __typeof__(spanprof_start) *start;
static __typeof__(spanprof_stop) *stop;
static __typeof__(spanprof_stats_get) *stats_get;
static __typeof__(spanprof_context_attach) *attach;
static __typeof__(spanprof_scope_detach) *detach;
static __typeof__(foreign_begin) *begin;
static __typeof__(foreign_end) *end;
static __typeof__(foreign_leave_rudely) *leave_rudely;

static void *load(const char *path)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
    if (!library) {
        fprintf(stderr, "%s\n", dlerror());
        exit(1);
    }
    return library;
}

static void load_both(char **paths)
{
    void *theirs = load(paths[1]), *ours = load(paths[0]); /* theirs defines the variable first */
    *(void **)&start = dlsym(ours, "spanprof_start");
    *(void **)&stop = dlsym(ours, "spanprof_stop");
    *(void **)&stats_get = dlsym(ours, "spanprof_stats_get");
    *(void **)&attach = dlsym(ours, "spanprof_context_attach");
    *(void **)&detach = dlsym(ours, "spanprof_scope_detach");
    *(void **)&begin = dlsym(theirs, "foreign_begin");
    *(void **)&end = dlsym(theirs, "foreign_end");
    *(void **)&leave_rudely = dlsym(theirs, "foreign_leave_rudely");
}
#else
#define start        spanprof_start
#define stop         spanprof_stop
#define stats_get    spanprof_stats_get
#define attach       spanprof_context_attach
#define detach       spanprof_scope_detach
#define begin        foreign_begin
#define end          foreign_end
#define leave_rudely foreign_leave_rudely
static void load_both(char **paths)
{
    (void)paths;
}
#endif

static foreign_style style;
static int works_wait;
static atomic_bool stopping;

/* Works that wait: each call comes from a function of its own. */
#define WAIT_WORK(k)                                                                               \
    static __attribute__((noinline)) void truth_work_wait_##k(unsigned us)                         \
    {                                                                                              \
        usleep(us);                                                                                \
        __asm__ volatile("" : : "i"(k) : "memory");                                                \
    }
WAIT_WORK(0)
WAIT_WORK(1)
WAIT_WORK(2)
WAIT_WORK(3)

static void wait_nothing(unsigned us)
{
    usleep(us);
    __asm__ volatile("" : : "i"(-1) : "memory");
}

/* Short ones and long ones; at a long one's end the span is another one at once. */
static void run_waits(unsigned round)
{
    static void (*const waits[])(unsigned) = {truth_work_wait_0, truth_work_wait_1,
                                              truth_work_wait_2, truth_work_wait_3};
    unsigned us = round % 5 == 0 ? 4000 : 50 + round % 7 * 30;
    begin(style, round % 2);
    waits[round % 2](us);
    begin(style, 2 + round % 2);
    waits[2 + round % 2](us);
    end(style);
    waits[round % 2](us);
    end(style);
    if (round % 3 == 0)
        wait_nothing(us);
}

static void rest(void)
{
    truth_nothing(300000);
}

/* Works 0 to 9 by turns, each with one of 10 to 19 inside: neighbours are never the same. */
static void run_round(unsigned round)
{
    unsigned outer = round % 10;
    begin(style, outer);
    truth_work(outer, 20000 + round % 7 * 10000);
    begin(style, 10 + outer);
    truth_work(10 + outer, 30000);
    end(style);
    truth_work(outer, 20000);
    end(style);
    if (round % 3 == 0)
        truth_nothing(10000);
}

/* A context of ours inside one of theirs, and theirs again behind it. */
static void run_ours(unsigned thread, unsigned round)
{
    spanprof_context context = {.trace_flags = SPANPROF_TRACE_FLAG_SAMPLED};
    unsigned work = OURS + round % 10;
    context.trace_id[0] = 0xf0;
    context.trace_id[1] = (uint8_t)work;
    context.trace_id[8] = (uint8_t)thread;
    uint64_t span = foreign_checksum(context.trace_id);
    memcpy(context.span_id, &span, sizeof span);
    begin(style, round % 10);
    truth_work(round % 10, 20000);
    spanprof_scope scope = attach(&context);
    truth_work(work, 20000);
    begin(style, 20); /* hidden by ours */
    truth_work(work, 20000);
    end(style);
    detach(&scope);
    truth_work(round % 10, 20000);
    end(style);
}

/* Of a thread's life: some never call spanprof. */
static void *live(void *argument)
{
    unsigned thread = (unsigned)(uintptr_t)argument;
    for (unsigned round = 0; round < 2000 && !atomic_load(&stopping); round++) {
        if (works_wait)
            run_waits(round + thread);
        else
            run_round(round + thread);
        if (thread % 2 == 1 && !works_wait)
            run_ours(thread, round);
    }
    leave_rudely(rest);
    return NULL;
}

static void *live_again_and_again(void *argument)
{
    while (!atomic_load(&stopping)) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, live, argument) != 0)
            abort();
        pthread_join(thread, NULL);
    }
    return NULL;
}

static uint64_t ticks_now(void)
{
    spanprof_stats stats = SPANPROF_STATS_INIT;
    stats_get(&stats);
    if (works_wait && !stats.wall_running) {
        printf("SKIPPED: no wall time is to be had here: %s\n", stats.wall_reason);
        exit(77);
    }
    return works_wait ? stats.visits : stats.ticks;
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    style = strcmp(argv[1], "swaps") == 0 ? FOREIGN_SWAPS : FOREIGN_FLAGS;
    works_wait = strcmp(argv[1], "waits") == 0;
    uint64_t ticks = strtoull(argv[2], NULL, 10);
    load_both(argv + 3);
    spanprof_error error;
    if (start(NULL, &error) != SPANPROF_OK) {
        fprintf(stderr, "spanprof_start: %s\n", error.message);
        return 1;
    }
    pthread_t threads[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, live_again_and_again, (void *)i) != 0)
            abort();
    for (int waited = 0; ticks_now() < ticks && waited < 20000; waited++)
        usleep(10000);
    atomic_store(&stopping, true);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    spanprof_stats stats = SPANPROF_STATS_INIT;
    stats_get(&stats);
    printf("%s %s\n", stats.engine, stats.engine_reason);
    return stop(UINT64_C(60000000000)) == SPANPROF_OK ? 0 : 1;
}
