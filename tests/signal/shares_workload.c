/* SPDX-License-Identifier: Apache-2.0 */
/* The workload of the shares test: five functions that work in random pieces of 20 to 200 us, drawn
 * so that their shares of the time come to about 40, 25, 20, 10 and 5 percent. The threads measure
 * by the time stamp counter what the shares came to. Public API only.
 *
 *   shares_workload TICKS THREADS
 *
 * Ends when the SDK has taken TICKS ticks. Prints one JSON line: the counter's units that each
 * function used, and the SDK's counters. Times in which the thread did not run, or ran the kernel
 * or the handler, show as a gap between two readings: they are left out. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

#include <spanprof/spanprof.h>

#define NS_PER_S 1000000000ull
enum { FUNCTIONS = 5, MAX_THREADS = 64, PATIENCE_S = 600 };

static const unsigned shares[FUNCTIONS] = {40, 25, 20, 10, 5};
static atomic_bool stopping;
static _Atomic uint64_t used[FUNCTIONS];
static uint64_t units_per_us;
static volatile uint64_t sink;

static uint64_t clock_ns(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

static inline uint64_t counter(void)
{
#if defined(__x86_64__)
    return __rdtsc();
#else
    return clock_ns(CLOCK_MONOTONIC);
#endif
}

static uint64_t random_next(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* Work until UNITS were used, gaps of over a microsecond left out. Always inlined: the time is the
 * named function's own. */
static inline __attribute__((always_inline)) uint64_t work(uint64_t units)
{
    uint64_t sum = 0, last = counter(), x = units, gap = units_per_us;
    while (sum < units) {
        for (int i = 0; i < 16; i++)
            x = x * 6364136223846793005u + 1442695040888963407u;
        uint64_t now = counter();
        if (now - last < gap)
            sum += now - last;
        last = now;
    }
    sink = x;
    return sum;
}

#define SHARE_FUNCTION(k)                                                                          \
    __attribute__((noinline)) static uint64_t share_work_##k(uint64_t units)                       \
    {                                                                                              \
        uint64_t sum = work(units);                                                                \
        __asm__ volatile("" : : "i"(k) : "memory"); /* keeps equal functions apart */              \
        return sum;                                                                                \
    }
SHARE_FUNCTION(0)
SHARE_FUNCTION(1)
SHARE_FUNCTION(2)
SHARE_FUNCTION(3)
SHARE_FUNCTION(4)

static uint64_t (*const functions[FUNCTIONS])(uint64_t) = {
    share_work_0, share_work_1, share_work_2, share_work_3, share_work_4,
};

static unsigned pick_function(uint64_t *random)
{
    unsigned at = (unsigned)(random_next(random) % 100), function = 0;
    while (at >= shares[function])
        at -= shares[function++];
    return function;
}

static void *run(void *number)
{
    uint64_t random = 0x9e3779b97f4a7c15u * ((uint64_t)(uintptr_t)number + 1);
    uint64_t sums[FUNCTIONS] = {0};
    spanprof_scope scope = spanprof_context_attach(NULL); /* sampled from here on */
    while (!atomic_load_explicit(&stopping, memory_order_relaxed)) {
        unsigned function = pick_function(&random);
        sums[function] += functions[function]((20 + random_next(&random) % 180) * units_per_us);
    }
    spanprof_scope_detach(&scope);
    for (int i = 0; i < FUNCTIONS; i++)
        atomic_fetch_add(&used[i], sums[i]);
    return NULL;
}

static void learn_counter(void)
{
    uint64_t start_ns = clock_ns(CLOCK_MONOTONIC), start = counter();
    while (clock_ns(CLOCK_MONOTONIC) - start_ns < NS_PER_S / 20)
        ;
    units_per_us = (counter() - start) * 1000 / (clock_ns(CLOCK_MONOTONIC) - start_ns);
}

static spanprof_stats stats_now(void)
{
    spanprof_stats stats = SPANPROF_STATS_INIT;
    spanprof_stats_get(&stats);
    return stats;
}

static bool wait_for_ticks(uint64_t ticks)
{
    struct timespec pause = {.tv_nsec = 50000000};
    uint64_t end = clock_ns(CLOCK_MONOTONIC) + PATIENCE_S * NS_PER_S;
    while (stats_now().ticks < ticks) {
        if (clock_ns(CLOCK_MONOTONIC) > end)
            return false;
        nanosleep(&pause, NULL);
    }
    return true;
}

static void print_result(const spanprof_stats *stats)
{
    printf("{\"engine\":\"%s\",\"cpu_hz\":%u,\"ticks\":%llu,\"weights\":%llu,\"dropped\":%llu,"
           "\"used\":[",
           stats->engine, stats->cpu_hz, (unsigned long long)stats->ticks,
           (unsigned long long)stats->weights,
           (unsigned long long)(stats->dropped_samples_ring_full + stats->dropped_samples_memory));
    for (int i = 0; i < FUNCTIONS; i++)
        printf("%s%llu", i ? "," : "", (unsigned long long)atomic_load(&used[i]));
    printf("]}\n");
}

int main(int argc, char **argv)
{
    static pthread_t ids[MAX_THREADS];
    uint64_t ticks = argc == 3 ? strtoull(argv[1], NULL, 10) : 0;
    int threads = argc == 3 ? atoi(argv[2]) : 0;
    if (ticks == 0 || threads < 1 || threads > MAX_THREADS) {
        fprintf(stderr, "usage: shares_workload TICKS THREADS (1 to %d)\n", MAX_THREADS);
        return 2;
    }
    learn_counter();
    spanprof_error error;
    if (spanprof_start(NULL, &error) != SPANPROF_OK) {
        fprintf(stderr, "spanprof_start: %s\n", error.message);
        return 1;
    }
    for (int i = 0; i < threads; i++)
        pthread_create(&ids[i], NULL, run, (void *)(uintptr_t)i);
    bool enough = wait_for_ticks(ticks);
    atomic_store(&stopping, true);
    for (int i = 0; i < threads; i++)
        pthread_join(ids[i], NULL);
    spanprof_flush(30 * NS_PER_S);
    spanprof_stats stats = stats_now();
    spanprof_stop(30 * NS_PER_S);
    print_result(&stats);
    if (!enough)
        fprintf(stderr, "too few ticks after %d s\n", PATIENCE_S);
    return enough ? 0 : 1;
}
