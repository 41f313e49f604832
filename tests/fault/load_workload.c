/* SPDX-License-Identifier: Apache-2.0 */
/* Many threads make spans while an exporter sends them; what was counted is printed as one line of
 * JSON for load_judge.py. Public API only.
 *
 *   load_workload THREADS SPANS_A_SECOND SECONDS [patient|stuck]
 *
 * SPANS_A_SECOND x SECONDS spans are made, a burst each millisecond; a burst that came late is made
 * up for, but after twice SECONDS it is over. "patient": as fast as it goes, but a burst waits
 * until at most PATIENT_SPANS are on their way, so that none has to be dropped however slow the
 * receiver is. "stuck": no flush is waited for. Each thread has one more span that lives until the
 * counters have been read. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <spanprof/spanprof.h>

#define NS_PER_S  1000000000ull
#define NS_PER_MS 1000000ull
enum { THREADS_MAX = 64, BURST_MAX = 256, PATIENT_SPANS = 32768 };

static struct {
    uint64_t rate, spans, start_ns, end_ns; /* of each thread; times of all */
    bool patient;
} plan;

static pthread_barrier_t all_made, all_read;
static _Atomic uint64_t made, cpu_ns;

static uint64_t clock_ns(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

static spanprof_stats stats_now(void)
{
    spanprof_stats stats = SPANPROF_STATS_INIT;
    spanprof_stats_get(&stats);
    return stats;
}

static void nap(void)
{
    struct timespec pause = {.tv_nsec = (long)NS_PER_MS};
    nanosleep(&pause, NULL);
}

static void make_spans(uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        spanprof_span span = spanprof_span_start(NULL, "GET /cart", NULL);
        spanprof_scope scope = spanprof_span_attach(span);
        spanprof_scope_detach(&scope);
        spanprof_span_end(span);
    }
}

/* How many spans a thread that has made DONE should make now. */
static uint64_t due(uint64_t done, uint64_t now_ns)
{
    if (!plan.patient) {
        uint64_t until_now = (now_ns - plan.start_ns) / NS_PER_MS * plan.rate / 1000;
        return until_now > done ? until_now - done : 0;
    }
    spanprof_stats stats = stats_now();
    return stats.spans_ended - stats.exported_spans < PATIENT_SPANS ? BURST_MAX : 0;
}

static void *run(void *unused)
{
    (void)unused;
    spanprof_span kept = spanprof_span_start(NULL, "kept", NULL);
    uint64_t done = 0, took = 0, now;
    while (done < plan.spans && (now = clock_ns(CLOCK_MONOTONIC)) < plan.end_ns) {
        uint64_t count = due(done, now);
        count = count < plan.spans - done ? count : plan.spans - done;
        uint64_t begin = clock_ns(CLOCK_THREAD_CPUTIME_ID);
        make_spans(count);
        took += clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin;
        done += count;
        if (!plan.patient || !count)
            nap();
    }
    atomic_fetch_add(&made, done);
    atomic_fetch_add(&cpu_ns, took);
    pthread_barrier_wait(&all_made);
    pthread_barrier_wait(&all_read);
    spanprof_span_end(kept);
    return NULL;
}

/* NAME of /proc/self/status, in KiB. */
static unsigned long status_kib(const char *name)
{
    char line[256];
    unsigned long kib = 0;
    FILE *file = fopen("/proc/self/status", "r");
    while (file && fgets(line, sizeof line, file))
        if (strncmp(line, name, strlen(name)) == 0)
            kib = strtoul(line + strlen(name) + 1, NULL, 10);
    if (file)
        fclose(file);
    return kib;
}

static void tell(unsigned threads, unsigned long kib_before, double seconds)
{
    spanprof_stats s = stats_now();
    double count = (double)atomic_load(&made);
    printf("{\"made\":%.0f,\"seconds\":%.2f,\"rate\":%.0f,\"ns_a_span\":%.1f,\"live\":%u,"
           "\"started\":%llu,"
           "\"ended\":%llu,\"exported\":%llu,\"dropped_queue_full\":%llu,\"dropped_memory\":%llu,"
           "\"requests\":%llu,\"dropped_requests\":%llu,\"kib_before\":%lu,\"kib_peak\":%lu,",
           count, seconds, count / seconds, (double)atomic_load(&cpu_ns) / count, threads,
           (unsigned long long)s.spans_started, (unsigned long long)s.spans_ended,
           (unsigned long long)s.exported_spans, (unsigned long long)s.dropped_spans_queue_full,
           (unsigned long long)s.dropped_spans_memory, (unsigned long long)s.exported_requests,
           (unsigned long long)(s.dropped_exports_queue_full + s.dropped_exports_refused +
                                s.dropped_exports_unreachable),
           kib_before, status_kib("VmHWM"));
}

int main(int argc, char **argv)
{
    unsigned threads = argc > 3 ? (unsigned)atoi(argv[1]) : 0;
    uint64_t rate = argc > 3 ? strtoull(argv[2], NULL, 10) : 0;
    uint64_t seconds = argc > 3 ? strtoull(argv[3], NULL, 10) : 0;
    pthread_t ids[THREADS_MAX];
    spanprof_error error;
    if (!threads || threads > THREADS_MAX || rate < 1000 || !seconds)
        return fprintf(stderr, "usage: load_workload THREADS RATE SECONDS [patient|stuck]\n"), 2;
    if (spanprof_start(NULL, &error) != SPANPROF_OK)
        return fprintf(stderr, "spanprof_start: %s\n", error.message), 1;
    plan.patient = argc > 4 && strcmp(argv[4], "patient") == 0;
    plan.rate = rate / threads;
    plan.spans = plan.rate * seconds;
    plan.start_ns = clock_ns(CLOCK_MONOTONIC);
    plan.end_ns = plan.patient ? UINT64_MAX : plan.start_ns + 2 * seconds * NS_PER_S;
    unsigned long kib_before = status_kib("VmRSS");
    pthread_barrier_init(&all_made, NULL, threads + 1);
    pthread_barrier_init(&all_read, NULL, threads + 1);
    for (unsigned i = 0; i < threads; i++)
        pthread_create(&ids[i], NULL, run, NULL);
    pthread_barrier_wait(&all_made);
    double took = (double)(clock_ns(CLOCK_MONOTONIC) - plan.start_ns) / (double)NS_PER_S;
    bool stuck = argc > 4 && strcmp(argv[4], "stuck") == 0;
    bool flushed = spanprof_flush(stuck ? 0 : 30 * NS_PER_S) == SPANPROF_OK;
    tell(threads, kib_before, took);
    pthread_barrier_wait(&all_read);
    for (unsigned i = 0; i < threads; i++)
        pthread_join(ids[i], NULL);
    uint64_t begin = clock_ns(CLOCK_MONOTONIC);
    spanprof_stop(5 * NS_PER_S);
    printf("\"flushed\":%s,\"stop_seconds\":%.2f}\n", flushed ? "true" : "false",
           (double)(clock_ns(CLOCK_MONOTONIC) - begin) / (double)NS_PER_S);
    return 0;
}
