/* SPDX-License-Identifier: Apache-2.0 */
/* What it costs to read and write the headers of a request, in nanoseconds. The headers lie in
 * memory that the compiler knows nothing of, as they do in a server; each result is checked once.
 * Run it on a quiet machine and take the median. */
#include <stdio.h>
#include <string.h>

#include <spanprof/propagation.h>
#include <spanprof/tracer.h>
#include "bench/figures.h"
#include "trace/provider.h"

enum { CALLS = 20000, ROUNDS = 200 };

#define TRACEPARENT "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

static char traceparent[] = TRACEPARENT;
static spanprof_context context;

/* From here on the compiler assumes that anything may have changed, and that everything is needed.
 */
#define forget() __asm__ volatile("" ::: "memory")

static void extract(void)
{
    spanprof_context read;
    spanprof_context_extract(&read, traceparent, NULL);
    __asm__ volatile("" : : "r"(&read) : "memory");
}

static void extract_empty_tracestate(void)
{
    spanprof_context read;
    spanprof_context_extract(&read, traceparent, "");
    __asm__ volatile("" : : "r"(&read) : "memory");
}

static void inject(void)
{
    char text[56];
    spanprof_context_inject(&context, text);
    __asm__ volatile("" : : "r"(text) : "memory");
}

#define TRACESTATE "rojo=00f067aa0ba902b7,congo=t61rcWkgMzE"

static char tracestate[] = TRACESTATE;
static char changing[] = "rojo=00f067aa0ba902b7,congo=0000000000000000";
static spanprof_context carrying;
static spanprof_span_options child = SPANPROF_SPAN_OPTIONS_INIT;

static void extract_same_tracestate(void)
{
    spanprof_context read;
    spanprof_context_extract(&read, traceparent, tracestate);
    __asm__ volatile("" : : "r"(&read) : "memory");
}

/* As requests are: no two are alike, so the table turns over. */
static void extract_other_tracestate(void)
{
    static uint64_t number;
    snprintf(strrchr(changing, '=') + 1, 17, "%016llx", (unsigned long long)number++);
    spanprof_context read;
    spanprof_context_extract(&read, traceparent, changing);
    __asm__ volatile("" : : "r"(&read) : "memory");
}

static void write_number(void)
{
    static uint64_t number;
    snprintf(strrchr(changing, '=') + 1, 17, "%016llx", (unsigned long long)number++);
}

static void take_header(void *user, const char *name, const char *value)
{
    (void)user;
    __asm__ volatile("" : : "r"(name), "r"(value) : "memory");
}

static void inject_all(void)
{
    spanprof_propagation_inject(&carrying, take_header, NULL);
}

static void set_baggage(void)
{
    spanprof_context out;
    spanprof_baggage_set(&out, &context, "user", "alice", NULL);
    __asm__ volatile("" : : "r"(&out) : "memory");
}

static void get_baggage(void)
{
    char value[16];
    size_t size = sizeof value;
    spanprof_baggage_get(&carrying, "user", value, &size);
    __asm__ volatile("" : : "r"(value) : "memory");
}

/* Unsampled, so that no queue fills: the difference is the pin and its end. */
static void start_end(void)
{
    spanprof_span_end(spanprof_span_start(NULL, "GET /cart", &child));
}

static void nothing(void)
{
}

static void measure(const char *what, void (*run)(void))
{
    static double ns[ROUNDS];
    for (int round = -10; round < ROUNDS; round++) {
        uint64_t begin = sp_clock_monotonic_ns();
        for (int i = 0; i < CALLS; i++) {
            run();
            forget();
        }
        uint64_t end = sp_clock_monotonic_ns();
        if (round >= 0)
            ns[round] = (double)(end - begin) / CALLS;
    }
    double median = figures_quantile(ns, ROUNDS, 0.5);
    printf("%-52s median %7.1f  best %7.1f ns\n", what, median, ns[0]);
}

int main(void)
{
    char text[56];
    if (!spanprof_context_extract(&context, traceparent, NULL) ||
        spanprof_context_inject(&context, text) != 55 || strcmp(text, TRACEPARENT) != 0)
        return fprintf(stderr, "bench_propagation: the round trip is broken\n"), 1;
    measure("the loop and the call", nothing);
    measure("traceparent extract", extract);
    measure("traceparent extract, tracestate \"\"", extract_empty_tracestate);
    measure("traceparent inject", inject);
    measure("extract, tracestate that was seen before", extract_same_tracestate);
    measure("extract, tracestate that is new", extract_other_tracestate);
    measure("  of which making it", write_number);
    measure("baggage set, seen before", set_baggage);
    if (!spanprof_context_extract(&carrying, traceparent, tracestate) ||
        spanprof_baggage_set(&carrying, &carrying, "user", "alice", NULL) != SPANPROF_OK)
        return 1;
    measure("inject traceparent, tracestate, baggage", inject_all);
    measure("baggage get", get_baggage);
    sp_tracer_config config = {.queue_spans = 16, .limits = SP_SPAN_LIMITS_INIT, .record = false};
    if (sp_tracer_start(&config) != SPANPROF_OK)
        return 1;
    child.parent = &context;
    measure("unsampled span under a context without a carrier", start_end);
    child.parent = &carrying;
    measure("unsampled span under a context with one", start_end);
    sp_tracer_stop();
    return 0;
}
