/* SPDX-License-Identifier: Apache-2.0 */
/* The workload of the accuracy test of wall time: threads that sleep, wait for a pipe, compute,
 * compete for a lock, or do a bit of each, one span after the other, of durations between 1 ms and
 * MAX_MS, evenly spread on a logarithmic scale. Public API only.
 *
 *   wall_sums_workload SECONDS THREADS MAX_MS FILE [sleep]
 *
 * With `sleep` they all only sleep, so that hundreds of threads need no cores. FILE gets a line a
 * span: span id, kind, begin (monotonic), how long it was active, what its thread used of the CPU
 * meanwhile, and what it waited for a core (schedstat; -1 where the kernel does not tell), in
 * nanoseconds. One JSON line with the SDK's counters is printed. wall_sums_judge.py reads both
 * together with the exported profiles. */
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <spanprof/spanprof.h>

#define NS_PER_S  1000000000ull
#define NS_PER_MS 1000000ull
enum {
    THREADS_MAX = 256,
    GAP_NS = 400000,
    PIECE_NS = 1500000,
    PROBE_NS = 2000000,
    LATE_NS = 100000
};

typedef enum kind { SLEEP, PIPE, COMPUTE, LOCK, MIX, KINDS } kind;
static const char *const kind_names[KINDS] = {"sleep", "pipe", "compute", "lock", "mix"};

typedef struct measured {
    uint64_t monotonic_ns, cpu_ns;
    int64_t runnable_ns;
} measured;

typedef struct worker {
    pthread_t thread, feeder;
    uint64_t random;
    int orders[2], food[2]; /* pipes to the feeder, and back */
    int schedstat;
} worker;

static worker workers[THREADS_MAX];
static int worker_count;
static double max_ms;
static bool only_sleep;
static double late_share;
static pthread_t prober;
static atomic_bool stopping;
static FILE *spans;
static pthread_mutex_t contended = PTHREAD_MUTEX_INITIALIZER;
static volatile uint64_t sink;

static uint64_t clock_ns(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

static void sleep_ns(uint64_t ns)
{
    struct timespec pause = {.tv_sec = (time_t)(ns / NS_PER_S), .tv_nsec = (long)(ns % NS_PER_S)};
    nanosleep(&pause, NULL);
}

/* Even, in [0, 1). */
static double draw(worker *self)
{
    self->random ^= self->random << 13;
    self->random ^= self->random >> 7;
    self->random ^= self->random << 17;
    return (double)(self->random >> 11) * 0x1p-53;
}

static uint64_t left_ns(uint64_t end_ns)
{
    uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
    return now_ns < end_ns ? end_ns - now_ns : 0;
}

static void compute(uint64_t ns)
{
    uint64_t end_ns = clock_ns(CLOCK_MONOTONIC) + ns, x = ns;
    do {
        for (int i = 0; i < 200; i++)
            x = x * 6364136223846793005u + 1442695040888963407u;
    } while (left_ns(end_ns));
    sink = x;
}

/* A thread without spans writes a byte after the time that it was asked for. */
static void *feed(void *argument)
{
    worker *self = argument;
    uint64_t ns;
    while (read(self->orders[0], &ns, sizeof ns) == sizeof ns) {
        sleep_ns(ns);
        if (write(self->food[1], "", 1) != 1)
            return NULL;
    }
    return NULL;
}

static void wait_for_pipe(worker *self, uint64_t ns)
{
    char byte;
    if (write(self->orders[1], &ns, sizeof ns) != sizeof ns || read(self->food[0], &byte, 1) != 1)
        abort();
}

/* Whoever has the lock sleeps or computes with it. */
static void compete(worker *self, uint64_t ns)
{
    uint64_t end_ns = clock_ns(CLOCK_MONOTONIC) + ns;
    do {
        pthread_mutex_lock(&contended);
        if (draw(self) < 0.5)
            sleep_ns(PIECE_NS);
        else
            compute(PIECE_NS);
        pthread_mutex_unlock(&contended);
        sleep_ns(PIECE_NS);
    } while (left_ns(end_ns));
}

static void work(worker *self, kind what, uint64_t ns)
{
    uint64_t end_ns = clock_ns(CLOCK_MONOTONIC) + ns;
    switch (what) {
    case SLEEP:
        sleep_ns(ns);
        break;
    case PIPE:
        wait_for_pipe(self, ns);
        break;
    case COMPUTE:
        compute(ns);
        break;
    case LOCK:
        compete(self, ns);
        break;
    default:
        while (left_ns(end_ns) > 0)
            work(self, (kind)(draw(self) * MIX), (uint64_t)(2 * PIECE_NS * draw(self)));
    }
}

static int64_t runnable_ns(worker *self)
{
    char text[96];
    long long used, waited;
    ssize_t length = pread(self->schedstat, text, sizeof text - 1, 0);
    text[length > 0 ? length : 0] = 0;
    return sscanf(text, "%lld %lld", &used, &waited) == 2 ? waited : -1;
}

static void read_clocks(measured *out)
{
    out->monotonic_ns = clock_ns(CLOCK_MONOTONIC);
    out->cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

static void write_span(const spanprof_context *context, kind what, const measured *begin,
                       const measured *end)
{
    char id[17];
    for (int i = 0; i < 8; i++)
        snprintf(id + 2 * i, 3, "%02x", context->span_id[i]);
    int64_t waited = begin->runnable_ns < 0 ? -1 : end->runnable_ns - begin->runnable_ns;
    fprintf(spans, "%s %s %llu %llu %llu %lld\n", id, kind_names[what],
            (unsigned long long)begin->monotonic_ns,
            (unsigned long long)(end->monotonic_ns - begin->monotonic_ns),
            (unsigned long long)(end->cpu_ns - begin->cpu_ns), (long long)waited);
}

/* What is read and written for the record stays out of the span, except for the clocks: 0.5 us. */
static void run_span(worker *self)
{
    kind what = only_sleep ? SLEEP : (kind)(draw(self) * KINDS);
    uint64_t ns = (uint64_t)(exp(draw(self) * log(max_ms)) * (double)NS_PER_MS);
    spanprof_span span = spanprof_span_start(NULL, kind_names[what], NULL);
    spanprof_context context = spanprof_span_context(span);
    measured begin, end;
    begin.runnable_ns = runnable_ns(self);
    spanprof_scope scope = spanprof_span_attach(span);
    read_clocks(&begin);
    work(self, what, ns);
    read_clocks(&end);
    spanprof_scope_detach(&scope);
    end.runnable_ns = runnable_ns(self);
    spanprof_span_end(span);
    write_span(&context, what, &begin, &end);
}

static void *run(void *argument)
{
    worker *self = argument;
    char path[64];
    snprintf(path, sizeof path, "/proc/self/task/%d/schedstat", (int)syscall(SYS_gettid));
    self->schedstat = open(path, O_RDONLY | O_CLOEXEC);
    while (!atomic_load(&stopping)) {
        run_span(self);
        if (draw(self) < 0.5)
            sleep_ns((uint64_t)(GAP_NS * draw(self)));
    }
    close(self->schedstat);
    return NULL;
}

/* How late the machine wakes a thread that asks for a moment, as the profiler does: a thread that
 * is never busy sleeps until random moments. What counts is the time that wake-ups stand for which
 * came too late. */
static void *probe(void *unused)
{
    worker self = {.random = 88172645463325252u};
    uint64_t begin_ns = clock_ns(CLOCK_MONOTONIC), last_ns = begin_ns, late_ns = 0;
    prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
    while (!atomic_load(&stopping)) {
        uint64_t until_ns = last_ns + (uint64_t)(2 * PROBE_NS * draw(&self));
        sleep_ns(left_ns(until_ns));
        uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
        late_ns += now_ns > until_ns + LATE_NS ? now_ns - last_ns : 0;
        last_ns = now_ns;
    }
    late_share = (double)late_ns / (double)(last_ns - begin_ns);
    return unused;
}

static void print_result(const char *engine)
{
    spanprof_stats stats = SPANPROF_STATS_INIT;
    spanprof_stats_get(&stats);
    printf("{\"late_share\":%f,\"engine\":\"%s\",\"running\":%u,\"ticks\":%llu,\"visits\":%llu,"
           "\"unmoved\":%llu,"
           "\"linked\":%llu,"
           "\"none\":%llu,\"unknown\":%llu,\"discarded\":%llu,\"dropped\":%llu,\"failed\":%llu,"
           "\"wall_cpu_ns\":%llu}\n",
           late_share, engine, stats.wall_reason[0] == 0, (unsigned long long)stats.ticks,
           (unsigned long long)stats.visits, (unsigned long long)stats.visits_unmoved,
           (unsigned long long)stats.visits_linked, (unsigned long long)stats.visits_none,
           (unsigned long long)stats.visits_unknown, (unsigned long long)stats.visits_discarded,
           (unsigned long long)stats.dropped_visits, (unsigned long long)stats.failed_visits,
           (unsigned long long)stats.wall_cpu_ns);
}

static void start_threads(void)
{
    if (pthread_create(&prober, NULL, probe, NULL) != 0)
        abort();
    for (int i = 0; i < worker_count; i++) {
        worker *self = &workers[i];
        self->random = 0x9e3779b97f4a7c15u * (uint64_t)(i + 1);
        if (pipe(self->orders) != 0 || pipe(self->food) != 0 ||
            pthread_create(&self->feeder, NULL, feed, self) != 0 ||
            pthread_create(&self->thread, NULL, run, self) != 0)
            abort();
    }
}

static void join_threads(void)
{
    pthread_join(prober, NULL);
    for (int i = 0; i < worker_count; i++)
        pthread_join(workers[i].thread, NULL);
    for (int i = 0; i < worker_count; i++) {
        close(workers[i].orders[1]);
        pthread_join(workers[i].feeder, NULL);
    }
}

int main(int argc, char **argv)
{
    double seconds = argc >= 5 ? atof(argv[1]) : 0;
    worker_count = argc >= 5 ? atoi(argv[2]) : 0;
    max_ms = argc >= 5 ? atof(argv[3]) : 0;
    spans = argc >= 5 ? fopen(argv[4], "we") : NULL;
    if (seconds <= 0 || worker_count < 1 || worker_count > THREADS_MAX || max_ms < 1 || !spans) {
        fprintf(stderr,
                "usage: wall_sums_workload SECONDS THREADS MAX_MS FILE [sleep] (1 to %d threads)\n",
                THREADS_MAX);
        return 2;
    }
    only_sleep = argc > 5;
    spanprof_error error;
    if (spanprof_start(NULL, &error) != SPANPROF_OK) {
        fprintf(stderr, "spanprof_start: %s\n", error.message);
        return 1;
    }
    start_threads();
    sleep_ns((uint64_t)(seconds * (double)NS_PER_S));
    atomic_store(&stopping, true);
    join_threads();
    spanprof_stats running = SPANPROF_STATS_INIT; /* the engine's name, while there is one */
    spanprof_stats_get(&running);
    spanprof_stop(20 * NS_PER_S);
    print_result(running.engine);
    return fclose(spans) == 0 ? 0 : 1;
}
