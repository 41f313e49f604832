/* SPDX-License-Identifier: Apache-2.0 */
/* What the operations of a tracer cost, by spanprof: one of the programs that
 * tests/bench/tracers.py runs side by side.
 *
 * It says "ready", what it is, and which operations it has; then each line "OPERATION MS" is
 * answered with the nanoseconds that one operation takes, the mean over MS milliseconds of them,
 * and the end of the input with how many spans were started. The SDK samples meanwhile and sends
 * spans to the receiver that the environment names. Public API only. */
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <spanprof/spanprof.h>

#define NS_PER_S 1000000000ull

/* BURST stays below the default queue of 2,048 spans. A sustained span is one of GROUP in every
 * GROUP_NS: 100,000 a second. */
enum { BURST = 1500, GROUP = 50, GROUP_NS = 500000, NESTED = 10 };

static char traceparent[] = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00";
static spanprof_context remote; /* not sampled */
static spanprof_span_options unsampled = SPANPROF_SPAN_OPTIONS_INIT;
static spanprof_tracer *tracer;
static spanprof_span kept, other;

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

/* --- operations: each does COUNT -------------------------------------------------------------- */

static void attach(int count)
{
    for (int i = 0; i < count; i++) {
        spanprof_scope scope = spanprof_span_attach(kept);
        spanprof_scope_detach(&scope);
    }
}

/* Below one that is active, which has to be restored. */
static void attach_below(int count)
{
    spanprof_scope below = spanprof_span_attach(other);
    attach(count);
    spanprof_scope_detach(&below);
}

static void attach_at_depth_10(int count)
{
    spanprof_scope below[NESTED];
    for (int i = 0; i < NESTED; i++)
        below[i] = spanprof_span_attach(other);
    attach(count);
    for (int i = NESTED; i-- > 0;)
        spanprof_scope_detach(&below[i]);
}

static void attach_10_nested(int count)
{
    for (int done = 0; done < count; done += NESTED) {
        spanprof_scope scopes[NESTED];
        for (int i = 0; i < NESTED; i++)
            scopes[i] = spanprof_span_attach(i % 2 ? kept : other);
        for (int i = NESTED; i-- > 0;)
            spanprof_scope_detach(&scopes[i]);
    }
}

static void attach_out_of_order(int count)
{
    for (int done = 0; done < count; done += 2) {
        spanprof_scope first = spanprof_span_attach(kept), second = spanprof_span_attach(other);
        spanprof_scope_detach(&first);
        spanprof_scope_detach(&second);
    }
}

static void make_span(int count)
{
    for (int i = 0; i < count; i++) {
        spanprof_span span = spanprof_span_start(tracer, "GET /cart", NULL);
        spanprof_scope scope = spanprof_span_attach(span);
        spanprof_scope_detach(&scope);
        spanprof_span_end(span);
    }
}

static void make_span_2_attributes(int count)
{
    for (int i = 0; i < count; i++) {
        spanprof_span span = spanprof_span_start(tracer, "GET /cart", NULL);
        spanprof_scope scope = spanprof_span_attach(span);
        spanprof_span_set_string(span, "http.request.method", "GET");
        spanprof_span_set_int(span, "http.response.status_code", 200);
        spanprof_scope_detach(&scope);
        spanprof_span_end(span);
    }
}

static void make_span_unsampled(int count)
{
    for (int i = 0; i < count; i++) {
        spanprof_span span = spanprof_span_start(tracer, "GET /cart", &unsampled);
        spanprof_scope scope = spanprof_span_attach(span);
        spanprof_scope_detach(&scope);
        spanprof_span_end(span);
    }
}

static void extract(int count)
{
    for (int i = 0; i < count; i++) {
        spanprof_context context;
        spanprof_context_extract(&context, traceparent, NULL);
        __asm__ volatile("" : : "r"(&context) : "memory");
    }
}

static void inject(int count)
{
    for (int i = 0; i < count; i++) {
        char text[56];
        spanprof_context_inject(&remote, text);
        __asm__ volatile("" : : "r"(text) : "memory");
    }
}

/* --- measuring -------------------------------------------------------------------------------- */

static uint64_t spans_made;

/* Bursts; between them the queue is emptied. */
static double in_bursts(void (*run)(int), uint64_t span_ns, bool records)
{
    uint64_t took = 0, count = 0;
    for (; took < span_ns; count += BURST) {
        uint64_t begin = now_ns();
        run(BURST);
        took += now_ns() - begin;
        if (records)
            spanprof_flush(30 * NS_PER_S);
    }
    spans_made += records ? count : 0;
    return (double)took / (double)count;
}

/* Groups at a constant rate, nothing waited for. */
static double sustained(void (*run)(int), uint64_t span_ns)
{
    uint64_t took = 0, count = 0, due = now_ns();
    for (; took < span_ns; count += GROUP) {
        uint64_t begin;
        while ((begin = now_ns()) < due)
            ;
        due += GROUP_NS;
        run(GROUP);
        took += now_ns() - begin;
    }
    spans_made += count;
    return (double)took / (double)count;
}

enum kind { PLAIN, RECORDED, SUSTAINED };

static const struct {
    const char *name;
    void (*run)(int);
    enum kind kind;
} operations[] = {
    {"attach", attach, PLAIN},
    {"attach_below", attach_below, PLAIN},
    {"attach_at_depth_10", attach_at_depth_10, PLAIN},
    {"attach_10_nested", attach_10_nested, PLAIN},
    {"attach_out_of_order", attach_out_of_order, PLAIN},
    {"span", make_span, RECORDED},
    {"span_sustained", make_span, SUSTAINED},
    {"span_2_attributes", make_span_2_attributes, RECORDED},
    {"span_2_attributes_sustained", make_span_2_attributes, SUSTAINED},
    {"span_unsampled", make_span_unsampled, PLAIN},
    {"extract", extract, PLAIN},
    {"inject", inject, PLAIN},
};
enum { OPERATIONS = sizeof operations / sizeof operations[0] };

static double measure(const char *name, uint64_t span_ns)
{
    for (int i = 0; i < OPERATIONS; i++) {
        if (strcmp(operations[i].name, name) != 0)
            continue;
        if (operations[i].kind == SUSTAINED)
            return sustained(operations[i].run, span_ns);
        return in_bursts(operations[i].run, span_ns, operations[i].kind == RECORDED);
    }
    return 0;
}

/* The calling thread only: the SDK's own have been started, and go where there is room. */
static void pin(const char *core)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((size_t)atoi(core), &set);
    pthread_setaffinity_np(pthread_self(), sizeof set, &set);
}

int main(int argc, char **argv)
{
    spanprof_error error;
    if (argc != 2 || spanprof_start(NULL, &error) != SPANPROF_OK ||
        !spanprof_context_extract(&remote, traceparent, NULL))
        return fprintf(stderr, "usage: tracer_spanprof CORE, and an environment\n"), 2;
    unsampled.parent = &remote;
    tracer = spanprof_tracer_get("bench", "1");
    kept = spanprof_span_start(tracer, "kept", NULL);
    other = spanprof_span_start(tracer, "other", NULL);
    pin(argv[1]);
    printf("ready %s", spanprof_version());
    for (int i = 0; i < OPERATIONS; i++)
        printf(" %s", operations[i].name);
    putchar('\n');
    char line[128], name[64];
    unsigned ms;
    while (fflush(stdout), fgets(line, sizeof line, stdin))
        if (sscanf(line, "%63s %u", name, &ms) == 2)
            printf("%.2f\n", measure(name, ms * 1000000ull));
    spanprof_span_end(kept);
    spanprof_span_end(other);
    spanprof_stop(30 * NS_PER_S);
    printf("%llu\n", (unsigned long long)spans_made + 2);
    return 0;
}
