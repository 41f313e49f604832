/* SPDX-License-Identifier: Apache-2.0 */
/* The workload of the books test: threads that read their own CPU clocks at the start and at the
 * end of their function, so that the sum of what the SDK shows can be held against the sum of what
 * was used. Public API only.
 *
 *   books_workload MODE SECONDS THREADS [LIFE_MS]
 *
 *   steady   THREADS threads compute until the end
 *   bursty   each works about 100 us and sleeps about 900 us; both lengths are random, so that no
 * phase is kept short    THREADS threads at a time; each computes for 8 to 12 ms (or LIFE_MS) under
 * a span of its own and is gone plain    as short, without a span: nobody calls the SDK, the
 * threads are found or not locked   each sleeps until just after the kernel's periodic tick, works
 * 0.5 ms, and is asleep when the next one comes
 *
 * Prints one JSON line that books_judge.py reads. The SDK is configured by its environment
 * variables. */
#include <dirent.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <spanprof/spanprof.h>
#include "cpu_work.h"

#define NS_PER_S 1000000000ull
enum { MAX_THREADS = 1000, SHORT_STACK_BYTES = 64 * 1024 };

static const char *mode;
static atomic_bool stopping;
static _Atomic uint64_t threads_cpu_ns, threads_looked_ns, threads_ended;
static uint64_t life_ns = 10000000;
static uint64_t jiffy_ns, jiffy_phase_ns;
static sem_t places;
static volatile uint64_t sink;

static uint64_t clock_ns(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

static void sleep_until(uint64_t monotonic_ns)
{
    struct timespec until = {.tv_sec = (time_t)(monotonic_ns / NS_PER_S),
                             .tv_nsec = (long)(monotonic_ns % NS_PER_S)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) != 0)
        ;
}

static uint64_t random_next(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* The functions whose names the judge looks for in the stacks. */
__attribute__((noinline)) static void books_work(clockid_t clock, uint64_t ns)
{
    cpu_work work = cpu_work_of(clock, (double)ns / 1e9);
    uint64_t x = ns;
    do {
        for (int i = 0; i < 500; i++)
            x = x * 6364136223846793005u + 1442695040888963407u;
    } while (cpu_work_goes_on(&work) && !atomic_load_explicit(&stopping, memory_order_relaxed));
    sink = x;
}

static void work_steadily(uint64_t *random)
{
    (void)random;
    books_work(CLOCK_MONOTONIC, 3600 * NS_PER_S);
}

static void work_in_bursts(uint64_t *random)
{
    while (!atomic_load(&stopping)) {
        books_work(CLOCK_MONOTONIC, 50000 + random_next(random) % 100000);
        struct timespec pause = {.tv_nsec = (long)(450000 + random_next(random) % 900000)};
        nanosleep(&pause, NULL);
    }
}

/* A fifth more or less, so that a life is no whole number of periods at any rate. */
static void live_shortly(uint64_t *random)
{
    books_work(CLOCK_THREAD_CPUTIME_ID, life_ns / 5 * 4 + random_next(random) % (life_ns / 5 * 2));
}

/* A tenth of a jiffy after the tick: the wake-up itself must not be late enough to reach the next
 * one. */
static void work_between_ticks(uint64_t *random)
{
    (void)random;
    while (!atomic_load(&stopping)) {
        uint64_t now = clock_ns(CLOCK_MONOTONIC) - jiffy_phase_ns;
        sleep_until(jiffy_phase_ns + (now / jiffy_ns + 1) * jiffy_ns + jiffy_ns / 10);
        books_work(CLOCK_MONOTONIC, 500000);
    }
}

static const struct {
    const char *name;
    void (*work)(uint64_t *random);
    bool attaches, is_short;
} modes[] = {
    {"steady", work_steadily, true, false},      {"bursty", work_in_bursts, true, false},
    {"short", live_shortly, true, true},         {"plain", live_shortly, false, true},
    {"locked", work_between_ticks, true, false},
};
static unsigned chosen;

/* The coarse clock is advanced by the tick. Ticks come at whole jiffies of the monotonic clock,
 * from a phase that the boot set: of many observations, the one with the least delay tells it. */
static void find_ticks(void)
{
    struct timespec resolution;
    clock_getres(CLOCK_MONOTONIC_COARSE, &resolution);
    jiffy_ns = (uint64_t)resolution.tv_nsec;
    uint64_t first = 0, least = 0;
    for (int i = 0; i < 50; i++) {
        uint64_t before = clock_ns(CLOCK_MONOTONIC_COARSE);
        while (clock_ns(CLOCK_MONOTONIC_COARSE) == before)
            ;
        uint64_t seen = clock_ns(CLOCK_MONOTONIC) % jiffy_ns;
        if (i == 0)
            first = seen + jiffy_ns / 2; /* of the differences from here none wraps around */
        uint64_t delay = (seen + 2 * jiffy_ns - first) % jiffy_ns;
        if (i == 0 || delay < least)
            least = delay;
    }
    jiffy_phase_ns = (first + least) % jiffy_ns;
}

/* --- the kernel's looks ----------------------------------------------------------------------- */

/* At each periodic tick the kernel looks at the CPU timers of the thread that it meets. A timer of
 * our own, so short that each look finds it expired, tells what the thread had used at the first
 * look and at the last. */
static _Thread_local struct {
    uint64_t begun_ns;
    volatile uint64_t first_ns, last_ns; /* 0: no look yet */
} looks;

static bool counts_looks;

static void note_look(int signal)
{
    (void)signal;
    looks.last_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - looks.begun_ns;
    if (looks.first_ns == 0)
        looks.first_ns = looks.last_ns;
}

static timer_t start_looks(void)
{
    timer_t timer = NULL;
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGUSR2};
    event._sigev_un._tid = gettid();
    looks.begun_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    if (timer_create(CLOCK_THREAD_CPUTIME_ID, &event, &timer) != 0)
        abort();
    struct itimerspec often = {{0, 10000}, {0, 1}};
    timer_settime(timer, 0, &often, NULL);
    return timer;
}

/* What looks tell of this thread: all until the last one, and the first, too, stands for a jiffy at
 * least. */
static void end_looks(timer_t timer)
{
    timer_delete(timer);
    uint64_t more_ns = looks.first_ns && looks.first_ns < jiffy_ns ? jiffy_ns - looks.first_ns : 0;
    atomic_fetch_add(&threads_looked_ns, looks.last_ns + more_ns);
}

static void run_mode(uint64_t number)
{
    uint64_t random = 0x9e3779b97f4a7c15u * (number + 1) ^ clock_ns(CLOCK_MONOTONIC);
    if (!modes[chosen].attaches) {
        modes[chosen].work(&random);
        return;
    }
    spanprof_span span = spanprof_span_start(NULL, mode, NULL);
    spanprof_scope scope = spanprof_span_attach(span);
    timer_t timer = counts_looks ? start_looks() : NULL;
    modes[chosen].work(&random);
    if (counts_looks)
        end_looks(timer);
    spanprof_scope_detach(&scope);
    spanprof_span_end(span);
}

static void *live(void *number)
{
    uint64_t before = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    run_mode((uint64_t)(uintptr_t)number);
    atomic_fetch_add(&threads_ended, 1);
    if (modes[chosen].is_short)
        sem_post(&places);
    atomic_fetch_add(&threads_cpu_ns, clock_ns(CLOCK_THREAD_CPUTIME_ID) - before);
    return NULL;
}

static void nap(double seconds)
{
    struct timespec pause = {.tv_sec = (time_t)seconds,
                             .tv_nsec = (long)((seconds - (double)(time_t)seconds) * 1e9)};
    nanosleep(&pause, NULL);
}

static uint64_t run_long_lived(double seconds, int threads)
{
    static pthread_t ids[MAX_THREADS];
    for (int i = 0; i < threads; i++)
        pthread_create(&ids[i], NULL, live, (void *)(uintptr_t)i);
    nap(seconds);
    atomic_store(&stopping, true);
    for (int i = 0; i < threads; i++)
        pthread_join(ids[i], NULL);
    return (uint64_t)threads;
}

/* Until they are all out of the kernel: the process's clock gets their last bits when they go. */
static void wait_until_alone(void)
{
    for (int round = 0; round < 1000; round++) {
        int count = 0;
        DIR *directory = opendir("/proc/self/task");
        for (struct dirent *entry; directory && (entry = readdir(directory)) != NULL;) {
            char path[300], name[16] = "";
            snprintf(path, sizeof path, "/proc/self/task/%s/comm", entry->d_name);
            FILE *file = entry->d_name[0] == '.' ? NULL : fopen(path, "r");
            if (file && fgets(name, sizeof name, file) && strncmp(name, "spanprof-", 9) != 0)
                count++;
            if (file)
                fclose(file);
        }
        if (directory)
            closedir(directory);
        if (count <= 1)
            return;
        usleep(10000);
    }
}

static uint64_t run_short_lived(double seconds, int threads)
{
    uint64_t end = clock_ns(CLOCK_MONOTONIC) + (uint64_t)(seconds * 1e9), count = 0;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes, SHORT_STACK_BYTES);
    sem_init(&places, 0, (unsigned)threads);
    while (clock_ns(CLOCK_MONOTONIC) < end) {
        pthread_t id;
        sem_wait(&places);
        if (pthread_create(&id, &attributes, live, (void *)(uintptr_t)count) == 0)
            count++;
        else
            sem_post(&places);
    }
    while (atomic_load(&threads_ended) < count)
        usleep(10000);
    wait_until_alone();
    pthread_attr_destroy(&attributes);
    return count;
}

/* The CPU time of the SDK's own threads, which carry its name. */
static uint64_t own_cpu_ns(void)
{
    uint64_t sum = 0;
    DIR *directory = opendir("/proc/self/task");
    for (struct dirent *entry; directory && (entry = readdir(directory)) != NULL;) {
        char path[300], name[16] = "";
        snprintf(path, sizeof path, "/proc/self/task/%s/comm", entry->d_name);
        FILE *file = entry->d_name[0] == '.' ? NULL : fopen(path, "r");
        clockid_t clock = (clockid_t)(~(unsigned)atoi(entry->d_name) << 3 | 6);
        if (file && fgets(name, sizeof name, file) && strncmp(name, "spanprof-", 9) == 0)
            sum += clock_ns(clock);
        if (file)
            fclose(file);
    }
    if (directory)
        closedir(directory);
    return sum;
}

static uint64_t application_cpu_ns(void)
{
    return clock_ns(CLOCK_PROCESS_CPUTIME_ID) - own_cpu_ns();
}

static void print_number(const char *name, uint64_t value)
{
    printf("\"%s\":%llu,", name, (unsigned long long)value);
}

/* What the profiles must show: they end with the stop. */
static void print_at_stop(void)
{
    spanprof_stats stats = SPANPROF_STATS_INIT;
    spanprof_stats_get(&stats);
    print_number("weights_at_stop", stats.weights);
    print_number("unattributed_ns_at_stop", stats.unattributed_ns);
}

static void print_result(const spanprof_stats *stats, uint64_t process_ns, uint64_t threads)
{
    printf("{\"mode\":\"%s\",\"engine\":\"%s\",", mode, stats->engine);
    print_number("cpu_ns", atomic_load(&threads_cpu_ns));
    print_number("looked_ns", atomic_load(&threads_looked_ns));
    print_number("process_ns", process_ns);
    print_number("threads", threads);
    print_number("cpu_hz", stats->cpu_hz);
    print_number("ticks", stats->ticks);
    print_number("weights", stats->weights);
    print_number("unattributed_ns", stats->unattributed_ns);
    print_number("jiffy_ns", jiffy_ns);
    print_at_stop();
    print_number("failed_threads", stats->failed_threads);
    print_number("ring_full", stats->dropped_samples_ring_full);
    printf("\"memory\":%llu}\n", (unsigned long long)stats->dropped_samples_memory);
}

static bool choose_mode(const char *name)
{
    for (chosen = 0; chosen < sizeof modes / sizeof modes[0]; chosen++)
        if (strcmp(modes[chosen].name, name) == 0) {
            mode = modes[chosen].name;
            return true;
        }
    return false;
}

int main(int argc, char **argv)
{
    double seconds = argc >= 4 ? atof(argv[2]) : 0;
    int threads = argc >= 4 ? atoi(argv[3]) : 0;
    if (argc >= 5 && atoi(argv[4]) > 0)
        life_ns = (uint64_t)atoi(argv[4]) * 1000000;
    if (seconds <= 0 || threads < 1 || threads > MAX_THREADS || !choose_mode(argv[1])) {
        fprintf(stderr,
                "usage: books_workload steady|bursty|short|plain|locked SECONDS THREADS "
                "(1 to %d)\n",
                MAX_THREADS);
        return 2;
    }
    find_ticks();
    spanprof_error error;
    if (spanprof_start(NULL, &error) != SPANPROF_OK) {
        fprintf(stderr, "spanprof_start: %s\n", error.message);
        return 1;
    }
    spanprof_stats stats = SPANPROF_STATS_INIT;
    spanprof_stats_get(&stats);
    counts_looks = strcmp(stats.engine, "timer") == 0;
    struct sigaction look = {.sa_handler = note_look, .sa_flags = SA_RESTART};
    sigaction(SIGUSR2, &look, NULL);
    uint64_t process_before = application_cpu_ns();
    uint64_t main_before = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    uint64_t lived = modes[chosen].is_short ? run_short_lived(seconds, threads)
                                            : run_long_lived(seconds, threads);
    spanprof_flush(30 * NS_PER_S);
    uint64_t main_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - main_before;
    atomic_fetch_add(&threads_cpu_ns, main_ns);
    atomic_fetch_add(&threads_looked_ns, main_ns); /* hardly anything: it sleeps */
    uint64_t process_ns = application_cpu_ns() - process_before;
    spanprof_stats_get(&stats);
    spanprof_stop(30 * NS_PER_S);
    print_result(&stats, process_ns, lived);
    return 0;
}
