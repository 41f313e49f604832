/* SPDX-License-Identifier: Apache-2.0 */
/* What libspanprof-preload.so adds to malloc(64) and free, in nanoseconds, beside the next
 * allocator's own pair in the same run: while the SDK does not run, with `alloc`, with `alloc,heap`
 * and live blocks in the table; and what a sampled block takes with a stack of 26 frames. The ways
 * take turns, for the machine's speed changes.
 *
 *     bench_alloc PRELOAD [ALLOCATOR]     starts itself anew with both in LD_PRELOAD */
#include <spanprof/spanprof.h>

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/figures.h"

enum { ROUNDS = 201, PAIRS = 20000, BLOCK = 64, DEPTH = 22, BURST = 300, BURSTS = 40, LIVE = 4000 };

typedef struct allocator {
    void *(*malloc)(size_t);
    void (*free)(void *);
} allocator;

static allocator plain, ours;

static double measure(const allocator *a)
{
    uint64_t begin = sp_clock_monotonic_ns();
    for (int i = 0; i < PAIRS; i++) {
        void *block = a->malloc(BLOCK);
        __asm__ volatile("" : "+r"(block) : : "memory");
        a->free(block);
    }
    return (double)(sp_clock_monotonic_ns() - begin) / PAIRS;
}

static void compare(const char *what)
{
    static double plains[ROUNDS], differences[ROUNDS];
    for (int i = 0; i < ROUNDS; i++) {
        double before = measure(&plain), with = measure(&ours), after = measure(&plain);
        plains[i] = before;
        differences[i] = with - (before + after) / 2;
    }
    double median = figures_quantile(differences, ROUNDS, 0.5);
    printf("%-28s %6.2f ns more (quartiles %5.2f and %5.2f) than the plain pair's %5.2f ns\n", what,
           median, figures_quantile(differences, ROUNDS, 0.25),
           figures_quantile(differences, ROUNDS, 0.75), figures_quantile(plains, ROUNDS, 0.5));
}

static void start(const char *profiles, uint32_t bytes)
{
    spanprof_options options = SPANPROF_OPTIONS_INIT;
    spanprof_error error;
    options.exporter = "none";
    options.profiles = profiles;
    options.alloc_bytes = bytes;
    if (spanprof_start(&options, &error) != SPANPROF_OK)
        printf("%s\n", error.message);
}

/* Each block is sampled. Bursts are shorter than the rings, which are empty before each. */
static __attribute__((noinline)) double sampled(int depth, bool is_ours)
{
    if (depth > 0) {
        double result = sampled(depth - 1, is_ours);
        __asm__ volatile("" : : : "memory");
        return result;
    }
    const allocator *a = is_ours ? &ours : &plain;
    uint64_t begin = sp_clock_monotonic_ns();
    for (int i = 0; i < BURST; i++) {
        void *block = a->malloc(BLOCK);
        __asm__ volatile("" : "+r"(block) : : "memory");
        a->free(block);
    }
    return (double)(sp_clock_monotonic_ns() - begin) / BURST;
}

static void measure_samples(const char *profiles)
{
    static double takes[BURSTS];
    start(profiles, 1);
    for (int i = 0; i < BURSTS; i++) {
        spanprof_flush(UINT64_MAX);
        takes[i] = sampled(DEPTH, true) - sampled(DEPTH, false);
    }
    spanprof_stats stats = SPANPROF_STATS_INIT;
    spanprof_stats_get(&stats);
    spanprof_stop(UINT64_MAX);
    printf("a sample, 26 frames, %-10s %5.0f ns (quartiles %4.0f and %4.0f; %llu samples, %llu "
           "dropped)\n",
           profiles, figures_quantile(takes, BURSTS, 0.5), figures_quantile(takes, BURSTS, 0.25),
           figures_quantile(takes, BURSTS, 0.75),
           (unsigned long long)(stats.calls_none + stats.dropped_calls),
           (unsigned long long)stats.dropped_calls);
}

static void keep_live(void)
{
    for (int i = 0; i < LIVE; i++)
        __asm__ volatile("" : : "r"(malloc(1 << 20)) : "memory");
}

static void start_anew(char **argv)
{
    char preload[2048];
    snprintf(preload, sizeof preload, "%s %s", argv[1], argv[2] ? argv[2] : "");
    setenv("LD_PRELOAD", preload, 1);
    setenv("BENCH_ALLOCATOR", argv[2] ? argv[2] : "libc.so.6", 1);
    execv("/proc/self/exe", argv);
    perror("execv");
    exit(1);
}

int main(int argc, char **argv)
{
    const char *name = getenv("BENCH_ALLOCATOR");
    if (!name && argc > 1)
        start_anew(argv);
    void *library = name ? dlopen(name, RTLD_NOW | RTLD_NOLOAD) : NULL;
    if (!library) {
        fprintf(stderr, "bench_alloc PRELOAD [ALLOCATOR]: the paths of libspanprof-preload.so and "
                        "of an allocator's library\n");
        return 2;
    }
    plain = (allocator){(void *(*)(size_t))dlsym(library, "malloc"),
                        (void (*)(void *))dlsym(library, "free")};
    ours = (allocator){(void *(*)(size_t))dlsym(RTLD_DEFAULT, "malloc"),
                       (void (*)(void *))dlsym(RTLD_DEFAULT, "free")};
    printf("%s\n", name);
    compare("the SDK does not run");
    start("alloc", 0);
    compare("alloc");
    spanprof_stop(UINT64_MAX);
    start("alloc,heap", 0);
    compare("alloc,heap, nothing live");
    keep_live();
    compare("alloc,heap, 3,500 live");
    spanprof_stop(UINT64_MAX);
    measure_samples("alloc");
    measure_samples("alloc,heap");
    return 0;
}
