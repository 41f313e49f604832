/* SPDX-License-Identifier: Apache-2.0 */
/* The CPU time of the SDK's own threads, that is of everything but the signal handler and the calls
 * of the application: two threads that compute, 99 samples of each a second, 500 spans a second on
 * each, windows of 10 s, sent by HTTP to a receiver of this process, which does not count. gzip's
 * level is 1, which is the SDK's, and then 6. bench_share [SECONDS] */
#include <dirent.h>
#include <pthread.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include <spanprof/spanprof.h>
#include "core/clock.h"
#include "fault/scripted_server.h"

enum { THREADS = 2, SPAN_EVERY_NS = 2000000, PATIENCE_S = 30 };

static _Atomic bool ends;
static int gzip_level;

/* The linker sends the exporter here (CMakeLists.txt). */
int __real_deflateInit2_(z_stream *stream, int level, int method, int window, int memory,
                         int strategy, const char *version, int size);
int __wrap_deflateInit2_(z_stream *stream, int level, int method, int window, int memory,
                         int strategy, const char *version, int size);

int __wrap_deflateInit2_(z_stream *stream, int level, int method, int window, int memory,
                         int strategy, const char *version, int size)
{
    (void)level;
    return __real_deflateInit2_(stream, gzip_level, method, window, memory, strategy, version,
                                size);
}

static __attribute__((noinline)) void compute(uint64_t ns)
{
    uint64_t end_ns = sp_clock_own_cpu_ns() + ns;
    while (sp_clock_own_cpu_ns() < end_ns)
        for (volatile int i = 0; i < 2000; i++)
            ;
}

static void *serve_requests(void *unused)
{
    (void)unused;
    while (!atomic_load(&ends)) {
        spanprof_span span = spanprof_span_start(NULL, "GET /cart", NULL);
        spanprof_span_set_int(span, "http.response.status_code", 200);
        spanprof_span_set_string(span, "url.path", "/cart");
        spanprof_scope scope = spanprof_span_attach(span);
        compute(SPAN_EVERY_NS);
        spanprof_scope_detach(&scope);
        spanprof_span_end(span);
    }
    return NULL;
}

/* CPU time of thread TID, if its name begins with PREFIX. */
static uint64_t cpu_of(const char *tid, const char *prefix, char name[64])
{
    char path[300];
    unsigned long long ns = 0;
    snprintf(path, sizeof path, "/proc/self/task/%s/comm", tid);
    FILE *file = fopen(path, "r");
    bool found = file && fgets(name, 64, file) && strncmp(name, prefix, strlen(prefix)) == 0;
    if (file)
        fclose(file);
    snprintf(path, sizeof path, "/proc/self/task/%s/schedstat", tid);
    file = found ? fopen(path, "r") : NULL;
    if (file && fscanf(file, "%llu", &ns) != 1)
        ns = 0;
    if (file)
        fclose(file);
    return ns;
}

/* Of the SDK's threads so far; SHOWN: each is printed. */
static uint64_t own_cpu_ns(bool shown)
{
    uint64_t sum = 0;
    DIR *tasks = opendir("/proc/self/task");
    for (struct dirent *task; (task = readdir(tasks));) {
        char name[64] = "";
        uint64_t ns = cpu_of(task->d_name, "spanprof", name);
        sum += ns;
        if (ns && shown)
            printf("  %-16.*s %8.1f ms since the start\n", (int)strcspn(name, "\n"), name,
                   (double)ns / 1e6);
    }
    closedir(tasks);
    return sum;
}

static spanprof_stats stats_now(void)
{
    spanprof_stats stats = SPANPROF_STATS_INIT;
    spanprof_stats_get(&stats);
    return stats;
}

/* After a first window, in which names are looked up. */
static void measure(unsigned seconds)
{
    sleep(12);
    spanprof_stats before = stats_now();
    uint64_t begin_ns = sp_clock_monotonic_ns(), cpu_ns = own_cpu_ns(false);
    sleep(seconds);
    cpu_ns = own_cpu_ns(true) - cpu_ns;
    double taken_s = (double)(sp_clock_monotonic_ns() - begin_ns) / 1e9;
    spanprof_stats after = stats_now();
    printf(
        "gzip %d: %.3f %% of one core (%.1f ms in %.0f s), %.0f spans and %.0f periods a second, "
        "%llu bytes sent\n",
        gzip_level, (double)cpu_ns / taken_s / 1e7, (double)cpu_ns / 1e6, taken_s,
        (double)(after.exported_spans - before.exported_spans) / taken_s,
        (double)(after.weights - before.weights) / taken_s,
        (unsigned long long)(after.exported_bytes - before.exported_bytes));
}

static void run(unsigned port, unsigned seconds)
{
    char endpoint[64];
    pthread_t threads[THREADS];
    spanprof_options options = SPANPROF_OPTIONS_INIT;
    spanprof_error error = {0};
    snprintf(endpoint, sizeof endpoint, "http://127.0.0.1:%u", port);
    options.exporter = "otlp";
    options.endpoint = endpoint;
    atomic_store(&ends, false);
    if (spanprof_start(&options, &error) != SPANPROF_OK) {
        fprintf(stderr, "%s\n", error.message);
        exit(1);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, serve_requests, NULL);
    measure(seconds);
    atomic_store(&ends, true);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    spanprof_stop(PATIENCE_S * SP_NS_PER_S);
}

int main(int argc, char **argv)
{
    unsigned seconds = argc > 1 ? (unsigned)atoi(argv[1]) : 30;
    for (gzip_level = 1; gzip_level <= 6; gzip_level += 5) {
        scripted_server *server = server_start();
        run(server_port(server), seconds);
        server_stop(server);
    }
    return 0;
}
