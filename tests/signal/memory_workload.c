/* SPDX-License-Identifier: Apache-2.0 */
/* The workload of the memory test: many threads that mostly sleep, each awake now and then inside a
 * span, on stacks of many shapes. Compiled twice: with WITHOUT_SDK it is the same program without
 * the library, to be subtracted. memory_judge.py runs both.
 *
 *   memory_workload SECONDS THREADS [EVERY [churn [PLUGIN]]]
 *
 * Prints one JSON line every EVERY seconds (2): what /proc says of the process's memory, in kB.
 * With `churn` threads live for half a second only, each new one with another stack, and PLUGIN is
 * loaded and unloaded all the time. All threads together use about half a core, however many there
 * are. With MEMORY_SMAPS set, /proc/self/smaps is copied to that file before the end. */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#ifndef WITHOUT_SDK
#include <spanprof/spanprof.h>
#endif

enum { FUNCTIONS = 8, STACK_BYTES = 64 * 1024, WORK_NS = 1000000, LIFE_NS = 500000000 };

typedef struct worker {
    pthread_t thread;
    uint64_t random;
    bool short_lived;
} worker;

static atomic_bool stopping;
static uint64_t sleep_ns;
static volatile uint64_t sink;

static uint64_t clock_ns(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void sleep_for(uint64_t ns)
{
    struct timespec pause = {(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
    while (nanosleep(&pause, &pause) != 0 && errno == EINTR)
        ;
}

static uint64_t random_next(worker *self)
{
    self->random ^= self->random << 13;
    self->random ^= self->random >> 7;
    self->random ^= self->random << 17;
    return self->random;
}

/* Work of a program: arithmetic, and calls into the C library, so that its names are needed, too.
 */
static inline __attribute__((always_inline)) void spin(uint64_t ns)
{
    char text[64];
    uint64_t end = clock_ns(CLOCK_THREAD_CPUTIME_ID) + ns, x = ns;
    do {
        for (int i = 0; i < 2000; i++)
            x = x * 6364136223846793005u + 1442695040888963407u;
        x += (uint64_t)snprintf(text, sizeof text, "%llu", (unsigned long long)x);
    } while (clock_ns(CLOCK_THREAD_CPUTIME_ID) < end);
    sink = x;
}

static void descend(worker *self, unsigned path, int depth);

/* PATH says which functions are called, three bits for each: 8^depth different stacks. */
#define STEP(k)                                                                                    \
    __attribute__((noinline)) static void step_##k(worker *self, unsigned path, int depth)         \
    {                                                                                              \
        descend(self, path, depth);                                                                \
        __asm__ volatile("" : : "i"(k) : "memory");                                                \
    }
STEP(0)
STEP(1)
STEP(2)
STEP(3)
STEP(4)
STEP(5)
STEP(6)
STEP(7)

static void (*const steps[FUNCTIONS])(worker *, unsigned, int) = {
    step_0, step_1, step_2, step_3, step_4, step_5, step_6, step_7,
};

static void descend(worker *self, unsigned path, int depth)
{
    if (depth == 0)
        spin(WORK_NS);
    else
        steps[path % FUNCTIONS](self, path / FUNCTIONS, depth - 1);
}

static void request(worker *self)
{
    unsigned path = (unsigned)random_next(self);
    int depth = 4 + (int)(random_next(self) % 6);
#ifndef WITHOUT_SDK
    spanprof_span span = spanprof_span_start(NULL, "request", NULL);
    spanprof_scope scope = spanprof_span_attach(span);
    descend(self, path, depth);
    spanprof_scope_detach(&scope);
    spanprof_span_end(span);
#else
    descend(self, path, depth);
#endif
}

static void *work(void *argument)
{
    worker *self = argument;
    uint64_t end = self->short_lived ? clock_ns(CLOCK_MONOTONIC) + LIFE_NS : UINT64_MAX;
    sleep_for(random_next(self) % sleep_ns); /* or all would work at the same moment */
    while (!atomic_load(&stopping) && clock_ns(CLOCK_MONOTONIC) < end) {
        request(self);
        sleep_for(sleep_ns / 2 + random_next(self) % sleep_ns);
    }
    return NULL;
}

static bool start_worker(worker *self)
{
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    int error = pthread_create(&self->thread, &attributes, work, self);
    pthread_attr_destroy(&attributes);
    return error == 0;
}

/* The number behind KEY in the file PATH, whose lines are "Key:   123 kB"; -1 when there is none.
 */
static long kilobytes(const char *path, const char *key)
{
    char line[256];
    long value = -1;
    size_t length = strlen(key);
    FILE *file = fopen(path, "r");
    while (file && value < 0 && fgets(line, sizeof line, file))
        if (strncmp(line, key, length) == 0 && line[length] == ':')
            value = atol(line + length + 1);
    if (file)
        fclose(file);
    return value;
}

static void report(uint64_t started_ns)
{
    printf("{\"seconds\":%.1f,\"anon\":%ld,\"file\":%ld,\"private_dirty\":%ld,\"highest\":%ld",
           (double)(clock_ns(CLOCK_MONOTONIC) - started_ns) / 1e9,
           kilobytes("/proc/self/status", "RssAnon"), kilobytes("/proc/self/status", "RssFile"),
           kilobytes("/proc/self/smaps_rollup", "Private_Dirty"),
           kilobytes("/proc/self/status", "VmHWM"));
#ifndef WITHOUT_SDK
    spanprof_stats stats = SPANPROF_STATS_INIT;
    spanprof_stats_get(&stats);
    printf(
        ",\"threads\":%u,\"ticks\":%llu,\"linked\":%llu,\"spans\":%llu,\"ring_full\":%llu,"
        "\"memory\":%llu,\"failed_threads\":%llu",
        stats.threads, (unsigned long long)stats.ticks, (unsigned long long)stats.samples_linked,
        (unsigned long long)stats.spans_ended, (unsigned long long)stats.dropped_samples_ring_full,
        (unsigned long long)stats.dropped_samples_memory, (unsigned long long)stats.failed_threads);
#endif
    printf("}\n");
    fflush(stdout);
}

static void copy_smaps(const char *to)
{
    char line[4096];
    FILE *in = fopen("/proc/self/smaps", "r"), *out = to ? fopen(to, "w") : NULL;
    while (in && out && fgets(line, sizeof line, in))
        fputs(line, out);
    if (in)
        fclose(in);
    if (out)
        fclose(out);
}

/* Threads that end, one after the other, are joined and started anew; libraries come and go beside
 * them. */
static void churn(worker *workers, int count, uint64_t until_ns, const char *plugin)
{
    for (int n = 0; clock_ns(CLOCK_MONOTONIC) < until_ns; n = (n + 1) % count) {
        void *library = plugin && n % 16 == 0 ? dlopen(plugin, RTLD_NOW | RTLD_LOCAL) : NULL;
        if (pthread_join(workers[n].thread, NULL) != 0 || !start_worker(&workers[n]))
            exit(1);
        sleep_for(LIFE_NS / (uint64_t)count); /* or all would end together */
        if (library)
            dlclose(library);
    }
}

int main(int argc, char **argv)
{
    double seconds = argc > 1 ? atof(argv[1]) : 10;
    int count = argc > 2 ? atoi(argv[2]) : 100;
    double every = argc > 3 ? atof(argv[3]) : 2;
    bool churning = argc > 4 && strcmp(argv[4], "churn") == 0;
    worker *workers = calloc(count > 0 ? (size_t)count : 1, sizeof *workers);
    if (!workers || count < 1 || seconds <= 0 || every <= 0) {
        fprintf(stderr, "usage: memory_workload SECONDS THREADS [EVERY [churn [PLUGIN]]]\n");
        return 2;
    }
    sleep_ns = (uint64_t)count * WORK_NS * 2;
#ifndef WITHOUT_SDK
    spanprof_error error;
    if (spanprof_start(NULL, &error) != SPANPROF_OK) {
        fprintf(stderr, "spanprof_start: %s\n", error.message);
        return 1;
    }
#endif
    for (int i = 0; i < count; i++) {
        workers[i] =
            (worker){.random = 0x9e3779b97f4a7c15u * (uint64_t)(i + 1), .short_lived = churning};
        if (!start_worker(&workers[i])) {
            fprintf(stderr, "SKIPPED: no more than %d threads can be made here\n", i);
            return 77;
        }
    }
    uint64_t started = clock_ns(CLOCK_MONOTONIC);
    for (double at = every; at <= seconds; at += every) {
        uint64_t until = started + (uint64_t)(at * 1e9), now = clock_ns(CLOCK_MONOTONIC);
        if (churning)
            churn(workers, count, until, argc > 5 ? argv[5] : NULL);
        else if (now < until)
            sleep_for(until - now);
        report(started);
    }
    copy_smaps(getenv("MEMORY_SMAPS"));
    atomic_store(&stopping, true);
    if (count > 1000) /* they sleep for long: not waited for */
        _exit(0);
    for (int i = 0; i < count; i++)
        pthread_join(workers[i].thread, NULL);
#ifndef WITHOUT_SDK
    spanprof_stop(10000000000u);
#endif
    return 0;
}
