/* SPDX-License-Identifier: Apache-2.0 */
/* What a span costs its application, in nanoseconds, with nobody sampling: run it on a quiet
 * machine and take the median. Bursts stay below the queue's size and are taken between the
 * measurements, so what is measured is the application's side. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <spanprof/processor.h>
#include "core/clock.h"
#include "core/compiler.h"
#include "trace/provider.h"

enum { QUEUE = 2048, BURST = 1500, ROUNDS = 300 };

typedef void (*operation)(void);

static spanprof_span_options unsampled = SPANPROF_SPAN_OPTIONS_INIT;
static spanprof_span kept;

static void start_end(void)
{
    spanprof_span_end(spanprof_span_start(NULL, "GET /cart", NULL));
}

static void start_attach_detach_end(void)
{
    spanprof_span span = spanprof_span_start(NULL, "GET /cart", NULL);
    spanprof_scope scope = spanprof_span_attach(span);
    spanprof_scope_detach(&scope);
    spanprof_span_end(span);
}

static void with_two_attributes(void)
{
    spanprof_span span = spanprof_span_start(NULL, "GET /cart", NULL);
    spanprof_scope scope = spanprof_span_attach(span);
    spanprof_span_set_string(span, "http.request.method", "GET");
    spanprof_span_set_int(span, "http.response.status_code", 200);
    spanprof_scope_detach(&scope);
    spanprof_span_end(span);
}

static void with_two_attributes_and_an_event(void)
{
    spanprof_span span = spanprof_span_start(NULL, "GET /cart", NULL);
    spanprof_scope scope = spanprof_span_attach(span);
    spanprof_span_set_string(span, "http.request.method", "GET");
    spanprof_span_set_int(span, "http.response.status_code", 200);
    spanprof_span_add_event(span, "cache miss", NULL);
    spanprof_scope_detach(&scope);
    spanprof_span_end(span);
}

static void unsampled_start_end(void)
{
    spanprof_span_end(spanprof_span_start(NULL, "GET /cart", &unsampled));
}

static void unsampled_all(void)
{
    spanprof_span span = spanprof_span_start(NULL, "GET /cart", &unsampled);
    spanprof_scope scope = spanprof_span_attach(span);
    spanprof_scope_detach(&scope);
    spanprof_span_end(span);
}

static void unsampled_all_by_active_parent(void)
{
    spanprof_span span = spanprof_span_start(NULL, "GET /cart", NULL);
    spanprof_scope scope = spanprof_span_attach(span);
    spanprof_scope_detach(&scope);
    spanprof_span_end(span);
}

static void attach_detach(void)
{
    spanprof_scope scope = spanprof_span_attach(kept);
    spanprof_scope_detach(&scope);
}

/* A span within a request: its switches concern CPU time of all spans, but not that of roots. */
static void child_within_request(void)
{
    spanprof_scope request = spanprof_span_attach(kept);
    start_attach_detach_end();
    spanprof_scope_detach(&request);
}

static void extract(void)
{
    spanprof_context context;
    spanprof_context_extract(&context, "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
                             NULL);
    __asm__ volatile("" : : "r"(&context) : "memory");
}

static void inject(void)
{
    char text[56];
    spanprof_context_inject(unsampled.parent, text);
    __asm__ volatile("" : : "r"(text) : "memory");
}

/* What another tracer pays for telling of a span, the child of one that is known. */
static void foreign_start_end(void)
{
    static uint64_t number;
    static const spanprof_context parent = {.trace_id = {1}, .span_id = {1}, .trace_flags = 1};
    spanprof_start_attributes attributes = SPANPROF_START_ATTRIBUTES_INIT;
    spanprof_context context = parent;
    number++;
    memcpy(context.span_id, &number, sizeof context.span_id);
    spanprof_processor_on_start(&context, &parent, "GET /cart", 0, &attributes);
    spanprof_processor_on_end(&context, 0);
}

static void at_start(void *user, spanprof_span span, const spanprof_span_view *view,
                     const spanprof_context *parent)
{
    (void)user, (void)span, (void)view, (void)parent;
}

static void at_end(void *user, const spanprof_span_view *view)
{
    (void)user, (void)view;
}

static void add_processor(void)
{
    spanprof_processor processor = SPANPROF_PROCESSOR_INIT;
    processor.on_start = at_start;
    processor.on_end = at_end;
    if (spanprof_processor_add(&processor) != SPANPROF_OK)
        exit(1);
}

static size_t take_all(void)
{
    static sp_span_data *spans[QUEUE];
    size_t count = sp_tracer_take(spans, QUEUE);
    for (size_t i = 0; i < count; i++)
        sp_span_data_release(spans[i]);
    return count;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The median over ROUNDS bursts. RECORDED: each operation must leave one span in the queue. */
static void measure(const char *what, operation run, bool recorded)
{
    static double ns[ROUNDS];
    for (int round = -10; round < ROUNDS; round++) {
        uint64_t begin = sp_clock_monotonic_ns();
        for (int i = 0; i < BURST; i++)
            run();
        uint64_t end = sp_clock_monotonic_ns();
        if (round >= 0)
            ns[round] = (double)(end - begin) / BURST;
        if (take_all() != (recorded ? BURST : 0))
            exit((fprintf(stderr, "bench_span: %s: spans were lost or invented\n", what), 1));
    }
    qsort(ns, ROUNDS, sizeof ns[0], compare);
    printf("%-56s median %7.1f  best %7.1f ns\n", what, ns[ROUNDS / 2], ns[0]);
}

static spanprof_sampling_decision drop(const spanprof_sampling_request *request,
                                       spanprof_sampling_result *result, void *user)
{
    (void)request, (void)result, (void)user;
    return SPANPROF_SAMPLING_DROP;
}

/* Roots that a sampler leaves out. */
static void measure_samplers(sp_tracer_config config)
{
    static const spanprof_sampler samplers[] = {
        {.struct_size = sizeof *samplers, .kind = SPANPROF_SAMPLER_TRACE_ID_RATIO},
        {.struct_size = sizeof *samplers, .kind = SPANPROF_SAMPLER_CALLBACK, .function = drop}};
    static const char *const names[] = {"root left out by its ratio: start, attach, detach, end",
                                        "by a callback"};
    for (size_t i = 0; i < SP_ARRAY_LENGTH(samplers); i++) {
        config.sampler = &samplers[i];
        if (sp_tracer_start(&config) != SPANPROF_OK)
            exit(1);
        measure(names[i], start_attach_detach_end, false);
        sp_tracer_stop();
    }
}

/* What exact CPU time costs (docs/design/cpu-time.md). */
static void measure_cpu_time(sp_tracer_config config)
{
    static const char *const modes[] = {"none", "root", "all"};
    for (int mode = SP_CPU_TIME_NONE; mode <= SP_CPU_TIME_ALL; mode++) {
        config.cpu_time = (sp_cpu_time)mode;
        if (sp_tracer_start(&config) != SPANPROF_OK)
            exit(1);
        printf("SPANPROF_CPU_TIME=%s:\n", modes[mode]);
        measure("start, attach, detach, end", start_attach_detach_end, true);
        kept = spanprof_span_start(NULL, "kept", NULL);
        measure("attach, detach", attach_detach, false);
        measure("attach, (start, attach, detach, end), detach", child_within_request, true);
        spanprof_span_end(kept);
        take_all();
        sp_tracer_stop();
    }
}

int main(void)
{
    spanprof_context parent;
    spanprof_context_extract(&parent, "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00",
                             NULL);
    unsampled.parent = &parent;
    sp_tracer_config config = {.queue_spans = QUEUE, .limits = SP_SPAN_LIMITS_INIT, .record = true};
    for (int marked = 0; marked < 2; marked++) {
        config.mark_roots = marked;
        if (sp_tracer_start(&config) != SPANPROF_OK)
            return 1;
        printf("%s\n",
               marked ? "local roots marked with pyroscope.profile.id:" : "nothing marked:");
        measure("start, end", start_end, true);
        measure("start, attach, detach, end", start_attach_detach_end, true);
        measure("start, attach, 2 attributes, detach, end", with_two_attributes, true);
        measure("start, attach, 2 attributes, event, detach, end", with_two_attributes_and_an_event,
                true);
        sp_tracer_stop();
    }
    measure_cpu_time(config);
    if (sp_tracer_start(&config) != SPANPROF_OK)
        return 1;
    printf("others:\n");
    measure("unsampled start, end", unsampled_start_end, false);
    measure("unsampled start, attach, detach, end (options->parent)", unsampled_all, false);
    spanprof_scope scope = spanprof_context_attach(&parent);
    measure("unsampled start, attach, detach, end (active parent)", unsampled_all_by_active_parent,
            false);
    spanprof_scope_detach(&scope);
    kept = spanprof_span_start(NULL, "kept", NULL);
    measure("attach, detach", attach_detach, false);
    spanprof_span_end(kept);
    take_all();
    measure("another tracer's start, end", foreign_start_end, false);
    sp_registered_open();
    for (int count = 1; count <= 2; count++) {
        char what[64];
        add_processor();
        snprintf(what, sizeof what, "start, end with processors of yours: %d", count);
        measure(what, start_end, true);
    }
    sp_registered_close(UINT64_MAX);
    measure("traceparent extract", extract, false);
    measure("traceparent inject", inject, false);
    sp_tracer_stop();
    measure_samplers(config);
    return 0;
}
