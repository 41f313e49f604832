/* SPDX-License-Identifier: Apache-2.0 */
/* Allocates in functions that are named after their spans, from several threads; blocks are kept,
 * and freed by other threads. What `planted_leak` keeps is held past its request; what
 * `open_request` keeps is not, for its request goes on. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <spanprof/spanprof.h>

enum { WORKS = 16, THREADS = 4, SHELF = 1024, ROUNDS = 100, ROUNDS_A_FLUSH = 5, BLOCKS = 20 };

#define NOINLINE __attribute__((noinline))

/* So that neither the block nor the call can be left out. */
#define USE(pointer) __asm__ volatile("" : : "r"(pointer) : "memory")

static const spanprof_value_type *rows;
/* Blocks change hands here: who puts one frees the one before. */
static _Atomic(void *) shelf[SHELF];

static void keep(void *block, uint32_t place)
{
    void *before = __atomic_exchange_n((void **)&shelf[place % SHELF], block, __ATOMIC_ACQ_REL);
    free(before);
}

static void allocate(int work, int round)
{
    for (int i = 0; i < BLOCKS; i++) {
        void *block = malloc(500 + (size_t)work * 1000);
        USE(block);
        if (i % 4 == 0)
            block = realloc(block, 3000);
        USE(block);
        if (i % 5 == 0)
            keep(block, (uint32_t)(work * 37 + round + i));
        else
            free(block);
    }
    void *aligned = NULL;
    if (posix_memalign(&aligned, 64, 20000) == 0)
        free(aligned);
    char *text = strdup("a text that the C library allocates");
    USE(text);
    free(text);
    spanprof_record(rows, (uint64_t)work + 1);
}

#define WORK(n)                                                                                    \
    NOINLINE static void truth_work_##n(int round)                                                 \
    {                                                                                              \
        allocate(n, round);                                                                        \
        USE(&round);                                                                               \
    }
WORK(0)
WORK(1)
WORK(2)
WORK(3)
WORK(4)
WORK(5)
WORK(6)
WORK(7)
WORK(8)
WORK(9)
WORK(10)
WORK(11)
WORK(12)
WORK(13)
WORK(14)
WORK(15)

static void (*const works[WORKS])(int) = {
    truth_work_0,  truth_work_1,  truth_work_2,  truth_work_3, truth_work_4,  truth_work_5,
    truth_work_6,  truth_work_7,  truth_work_8,  truth_work_9, truth_work_10, truth_work_11,
    truth_work_12, truth_work_13, truth_work_14, truth_work_15};

NOINLINE static void planted_leak(void)
{
    for (int i = 0; i < 5000; i++) {
        void *block = malloc(4096);
        USE(block);
    }
}

NOINLINE static void open_request(void)
{
    for (int i = 0; i < 5000; i++) {
        void *block = malloc(4096);
        USE(block);
    }
}

NOINLINE static void truth_work_none(int round)
{
    allocate(3, round);
    USE(&round);
}

static void *run(void *argument)
{
    int thread = (int)(intptr_t)argument;
    for (int round = 0; round < ROUNDS; round++) {
        char name[32];
        int work = (thread * 5 + round) % WORKS, inner = (work + 7) % WORKS;
        snprintf(name, sizeof name, "work %d", work);
        spanprof_span outer_span = spanprof_span_start(NULL, name, NULL);
        spanprof_scope outer = spanprof_span_attach(outer_span);
        works[work](round);
        snprintf(name, sizeof name, "work %d", inner);
        spanprof_span inner_span = spanprof_span_start(NULL, name, NULL);
        spanprof_scope scope = spanprof_span_attach(inner_span);
        works[inner](round);
        spanprof_scope_detach(&scope);
        spanprof_span_end(inner_span);
        works[work](round);
        spanprof_scope_detach(&outer);
        spanprof_span_end(outer_span);
        truth_work_none(round);
        /* Rings have room for what all threads sample in so many rounds: nothing is dropped. */
        if (round % ROUNDS_A_FLUSH == 0)
            spanprof_flush(UINT64_MAX);
    }
    return NULL;
}

/* The test waits for this line before it believes the rest. */
static void start(void)
{
    spanprof_error error;
    rows = spanprof_value_type_get("rows_of_truth", "rows");
    if (spanprof_start(NULL, &error) == SPANPROF_OK)
        return;
    fprintf(stderr, "%s\n", error.message);
    exit(1);
}

int main(void)
{
    pthread_t threads[THREADS];
    start();
    SPANPROF_SPAN("leaky request") {
        planted_leak();
    }
    spanprof_span open_span = spanprof_span_start(NULL, "open request", NULL);
    spanprof_scope open_scope = spanprof_span_attach(open_span);
    open_request();
    spanprof_scope_detach(&open_scope);
    for (intptr_t i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, run, (void *)i);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    spanprof_stats stats = SPANPROF_STATS_INIT;
    spanprof_flush(UINT64_MAX);
    spanprof_span_end(open_span);
    spanprof_stats_get(&stats);
    printf("calls linked %llu none %llu unknown %llu dropped %llu\n",
           (unsigned long long)stats.calls_linked, (unsigned long long)stats.calls_none,
           (unsigned long long)stats.calls_unknown, (unsigned long long)stats.dropped_calls);
    /* Without a stop: its last window would find the open request ended. */
    fflush(stdout);
    _Exit(0);
}
