/* SPDX-License-Identifier: Apache-2.0 */
/* What a tick costs the interrupted thread: a real signal whose handler takes a tick, beside one whose handler does nothing, in turn, in
 * one run. The stack has 26 frames of code compiled without frame pointers. Prints also the bytes that a sample takes in the ring, and
 * the memory that the SDK holds with 100 threads. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <spanprof/spanprof.h>
#include "core/clock.h"
#include "sampler/sampler.h"
#include "sdk/synthetic.h"

enum { ROUNDS = 40, SIGNALS = 400, FRAMES = 26, THREADS = 100 };

static sp_thread *self;
static uint64_t ring_bytes, frames;

static void handle_nothing(int signal, siginfo_t *info, void *ucontext)
{
    (void)signal;
    (void)info;
    (void)ucontext;
}

static void handle_tick(int signal, siginfo_t *info, void *ucontext)
{
    (void)signal;
    (void)info;
    sp_tick(self, 1, ucontext);
}

static uint64_t measure(void (*handler)(int, siginfo_t *, void *))
{
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_RESTART};
    sigaction(SIGUSR2, &action, NULL);
    spanprof_context context = {.trace_flags = 1};
    memset(context.trace_id, 1, 24);
    uint64_t total = 0;
    for (int i = 0; i < SIGNALS; i++) {
        spanprof_scope scope =
            spanprof_context_attach(&context); /* each tick finds a new interval */
        uint64_t start = sp_clock_monotonic_ns();
        raise(SIGUSR2);
        total += sp_clock_monotonic_ns() - start;
        spanprof_scope_detach(&scope);
        ring_bytes = sp_load_relaxed(&self->ring.head) - sp_load_relaxed(&self->ring.tail);
        if (handler == handle_tick) {
            const sp_record *interval =
                sp_ring_peek(&self->ring, sp_load_relaxed(&self->ring.head));
            const sp_sample_record *sample =
                (const void *)((const char *)interval + interval->size);
            if (interval->kind == SP_RECORD_INTERVAL)
                frames = sample->count;
        }
        sp_store_relaxed(&self->ring.tail, sp_load_relaxed(&self->ring.head));
    }
    return total / SIGNALS;
}

static int compare(const void *a, const void *b)
{
    return *(const double *)a < *(const double *)b ? -1 : 1;
}

static void compare_handlers(void)
{
    double empty[ROUNDS], tick[ROUNDS], ratio[ROUNDS];
    for (int round = 0; round < ROUNDS; round++) {
        empty[round] = (double)measure(handle_nothing);
        tick[round] = (double)measure(handle_tick);
        ratio[round] = tick[round] / empty[round];
    }
    qsort(empty, ROUNDS, sizeof empty[0], compare);
    qsort(tick, ROUNDS, sizeof tick[0], compare);
    qsort(ratio, ROUNDS, sizeof ratio[0], compare);
    printf("empty handler %.0f ns, handler with a tick of %llu frames %.0f ns: ratio %.2f (medians "
           "of %d rounds)\n",
           empty[ROUNDS / 2], (unsigned long long)frames, tick[ROUNDS / 2], ratio[ROUNDS / 2],
           ROUNDS);
    printf("interval and sample in the ring: %llu bytes\n", (unsigned long long)ring_bytes);
}

__attribute__((noinline, optimize("omit-frame-pointer", "no-optimize-sibling-calls"))) static void
descend(int depth)
{
    if (depth > 0)
        descend(depth - 1);
    else
        compare_handlers();
    __asm__ volatile("" ::: "memory");
}

static uint64_t resident_kib(const char *what)
{
    uint64_t value = 0;
    char line[256], format[64];
    snprintf(format, sizeof format, "%s: %%lu", what);
    FILE *file = fopen("/proc/self/status", "r");
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, format, &value) == 1)
            break;
    if (file)
        fclose(file);
    return value;
}

static pthread_barrier_t ready, done;

static void *wait_inside_a_scope(void *unused)
{
    (void)unused;
    spanprof_context context = {.trace_flags = 1};
    memset(context.trace_id, 1, 24);
    pthread_barrier_wait(&ready);
    spanprof_scope scope = spanprof_context_attach(&context);
    pthread_barrier_wait(&ready);
    pthread_barrier_wait(&done);
    spanprof_scope_detach(&scope);
    return NULL;
}

static void measure_memory(const spanprof_options *options)
{
    pthread_t threads[THREADS];
    pthread_barrier_init(&ready, NULL, THREADS + 1);
    pthread_barrier_init(&done, NULL, THREADS + 1);
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, wait_inside_a_scope, NULL);
    uint64_t all = resident_kib("VmRSS"), anonymous = resident_kib("RssAnon");
    spanprof_start(options, NULL);
    pthread_barrier_wait(&ready);
    pthread_barrier_wait(&ready);
    uint64_t burn_until = sp_clock_monotonic_ns() + 2 * SP_NS_PER_S;
    while (sp_clock_monotonic_ns() < burn_until)
        ;
    spanprof_flush(UINT64_MAX);
    printf("resident memory of the SDK with %d threads after a window: %.1f MiB, %.1f MiB of it "
           "its own (not pages of files)\n",
           THREADS, (double)(resident_kib("VmRSS") - all) / 1024,
           (double)(resident_kib("RssAnon") - anonymous) / 1024);
    pthread_barrier_wait(&done);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    spanprof_stop(UINT64_MAX);
}

int main(void)
{
    spanprof_options options = SPANPROF_OPTIONS_INIT;
    options.exporter = "file";
    options.file = "/tmp/spanprof-bench";
    measure_memory(&options);
    sp_sdk_use_synthetic_ticks();
    options.window_ms = 10000;
    spanprof_start(&options, NULL);
    spanprof_scope scope = spanprof_context_attach(NULL);
    self = sp_thread_by_slot(scope.thread - 1);
    descend(FRAMES - 8);
    spanprof_stop(UINT64_MAX);
    remove("/tmp/spanprof-bench.traces.jsonl");
    remove("/tmp/spanprof-bench.profiles.jsonl");
    return 0;
}
