/* SPDX-License-Identifier: Apache-2.0 */
#include "attach/attach.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <spanprof/spanprof.h>

#include "attach/observer.h"
#include "call/call_sampling.h"
#include "attach/target_resource.h"
#include "core/cells.h"
#include "core/clock.h"
#include "core/compiler.h"
#include "trace/provider.h"

enum { WAIT_MS = 40, WINDOW_S = 10, SPAN_QUEUE = 16, FLUSH_S = 60 };

typedef struct session {
    const sp_attach_options *options;
    sp_attach_outcome *out;
    sp_attach_target target;
    sp_attach_observer observer;
    sp_attach_ticks *ticks;
    sp_resource resource;
    sp_exporter *exporter;
    sp_attach_samples *samples;
    spanprof_span span;
    uint64_t window_ends_ns, visit_due_ns; /* monotonic */
    uint64_t visit_ns;                     /* what the next visits stand for */
    sp_cells cells;                        /* of visits */
    uint64_t random;
    uint64_t cpu_ns; /* of the process, when the open window began */
} session;

static volatile sig_atomic_t is_ending;

static void end_on_signal(int number)
{
    (void)number;
    is_ending = 1;
}

static bool fail(session *s, const char *problem)
{
    snprintf(s->out->problem, sizeof s->out->problem, "%s", problem);
    return false;
}

/* ---- ticks ---- */

static void take_tick(void *user, const sp_attach_tick *tick)
{
    session *s = user;
    sp_attach_observer_tick(&s->observer, tick);
}

static void note_mapped(void *user)
{
    session *s = user;
    s->observer.modules_are_old = true;
}

static void note_lost(void *user, uint64_t count)
{
    session *s = user;
    sp_attach_samples_lose(s->samples, count);
}

static void read_ticks(session *s)
{
    const sp_attach_listener listener = {take_tick, note_mapped, note_lost, s};
    sp_attach_ticks_read(s->ticks, &listener);
}

/* Called while names are looked up, which may take long. */
static void read_meanwhile(void *user)
{
    session *s = user;
    if (s->ticks)
        read_ticks(s);
}

static bool open_ticks(session *s)
{
    uint64_t period_ns = SP_NS_PER_S / s->options->hz;
    s->ticks = sp_attach_ticks_open(s->target.pid, period_ns);
    if (!s->ticks)
        s->ticks = sp_attach_ticks_poll(s->target.pid, period_ns);
    return s->ticks || fail(s, "memory is short");
}

/* ---- what is written ---- */

static bool say_unwritable(session *s, int error)
{
    snprintf(s->out->problem, sizeof s->out->problem,
             "its files cannot be written: %s: name a prefix with -o that can be written to, not "
             "%.200s",
             strerror(error), s->options->prefix);
    return false;
}

/* Called before the exporter starts, which would warn of each file. Existing files may be writable
 * in a folder that is not. */
static bool check_prefix(session *s)
{
    char path[PATH_MAX];
    const char *prefix = s->options->prefix, *slash = strrchr(prefix, '/');
    snprintf(path, sizeof path, "%.*s.", slash ? (int)(slash - prefix) + 1 : 0, prefix);
    if (faccessat(AT_FDCWD, path, W_OK | X_OK, AT_EACCESS) == 0)
        return true;
    int error = errno;
    snprintf(path, sizeof path, "%s.traces.jsonl", prefix);
    return faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) == 0 || say_unwritable(s, error);
}

static bool start_exporter(session *s)
{
    sp_export_config config = {.file_enabled = true,
                               .file_prefix = (char *)(uintptr_t)s->options->prefix,
                               .file_format = SP_OTLP_JSON,
                               .traces_enabled = true};
    char path[PATH_MAX];
    struct stat status;
    spanprof_error error;
    if (!sp_attach_resource_init(&s->resource, &s->target, s->observer.outside,
                                 s->options->service))
        return fail(s, "memory is short");
    s->exporter = sp_exporter_create(&config, &s->resource, &error);
    if (!s->exporter)
        return fail(s, error.message);
    snprintf(path, sizeof path, "%s.traces.jsonl", s->options->prefix);
    return stat(path, &status) == 0 || say_unwritable(s, errno);
}

/* The process is one span, for as long as it is sampled; TRACEPARENT names its parent. */
static bool start_span(session *s)
{
    const sp_tracer_config config = {
        .queue_spans = SPAN_QUEUE, .limits = SP_SPAN_LIMITS_INIT, .record = true};
    if (sp_tracer_start(&config) != SPANPROF_OK)
        return fail(s, "memory is short");
    spanprof_context parent, context;
    spanprof_attribute pid = {
        .key = "process.pid", .type = SPANPROF_ATTRIBUTE_INT, .value.int_value = s->target.pid};
    spanprof_span_options options = SPANPROF_SPAN_OPTIONS_INIT;
    options.attributes = &pid;
    options.attribute_count = 1;
    options.parent = &parent;
    spanprof_context_extract(&parent, getenv("TRACEPARENT"), getenv("TRACESTATE"));
    s->span = spanprof_span_start(spanprof_tracer_get("spanprof run --attach", SPANPROF_VERSION),
                                  s->target.name, &options);
    context = spanprof_span_context(s->span);
    sp_join_default *whole = &s->observer.of_process;
    whole->result =
        context.trace_flags & SPANPROF_TRACE_FLAG_SAMPLED ? SP_JOIN_LINKED : SP_JOIN_NONE;
    if (whole->result == SP_JOIN_LINKED) {
        memcpy(whole->link.trace_id, context.trace_id, sizeof whole->link.trace_id);
        memcpy(whole->link.span_id, context.span_id, sizeof whole->link.span_id);
    }
    return true;
}

static bool start_samples(session *s)
{
    const sp_attach_samples_config config = {
        .pid = s->target.pid,
        .period_ns = SP_NS_PER_S / s->options->hz,
        .wall_period_ns = s->options->wall_hz ? SP_NS_PER_S / s->options->wall_hz : 0,
        .exporter = s->exporter,
        .resource = &s->resource,
        .meanwhile = {read_meanwhile, s}};
    s->samples = s->observer.samples = sp_attach_samples_create(&config);
    return s->samples || fail(s, "memory is short");
}

static void end_window(session *s)
{
    uint64_t cpu_ns = sp_attach_target_cpu_ns(&s->target);
    uint64_t used_ns = cpu_ns > s->cpu_ns ? cpu_ns - s->cpu_ns : 0;
    s->cpu_ns = cpu_ns ? cpu_ns : s->cpu_ns;
    s->window_ends_ns = sp_clock_monotonic_ns() + WINDOW_S * SP_NS_PER_S;
    sp_attach_samples_end_window(s->samples, sp_attach_ticks_name(s->ticks), used_ns);
}

/* ---- the session ---- */

static void report_start(const session *s)
{
    char text[SP_ATTACH_PROBLEM];
    bool has_perf = strcmp(sp_attach_ticks_name(s->ticks), "perf") == 0;
    snprintf(text, sizeof text, "process %d (%s) is sampled %s%s; %s ends it", (int)s->target.pid,
             s->target.name,
             !has_perf
                 ? "by short stops, for perf events are not permitted (kernel.perf_event_paranoid)"
             : sp_attach_observer_has_records(&s->observer)
                 ? "by perf events, and by short stops, for it publishes spans"
                 : "by perf events, without a stop",
             sp_attach_ticks_count_kernel(s->ticks)
                 ? ""
                 : "; time in the kernel is not seen (kernel.perf_event_paranoid 1, or sudo)",
             s->options->duration_ns ? "--duration, or Ctrl-C," : "Ctrl-C, or its end,");
    if (s->options->started)
        s->options->started(s->options->user, text);
}

/* Visits are due at random moments, so they are not in step with the threads. */
static void plan_visit(session *s)
{
    s->visit_due_ns = UINT64_MAX;
    if (!s->options->wall_hz)
        return;
    uint64_t period_ns = SP_NS_PER_S / s->options->wall_hz;
    double drawn = (double)(sp_random_next(&s->random) >> 11) * 0x1p-53;
    sp_cells_moment moment = sp_cells_choose(&s->cells, sp_clock_monotonic_ns(), period_ns, drawn);
    s->visit_due_ns = moment.ns;
    s->visit_ns = moment.cells * period_ns;
}

/* Visits have their own schedule. At a tick its thread is on a core, so visits at ticks would
 * hardly ever find that thread waiting. */
static void visit_if_due(session *s)
{
    if (sp_clock_monotonic_ns() < s->visit_due_ns)
        return;
    sp_attach_observer_visit(&s->observer, s->visit_ns);
    plan_visit(s);
}

/* How long to wait for ENDS_NS or the next visit, at most WAIT_MS; rounded up. */
static int wait_ms(const session *s, uint64_t ends_ns)
{
    uint64_t now_ns = sp_clock_monotonic_ns();
    uint64_t first_ns = ends_ns < s->visit_due_ns ? ends_ns : s->visit_due_ns;
    uint64_t left_ms = first_ns > now_ns ? (first_ns - now_ns) / SP_NS_PER_MS + 1 : 0;
    return (int)sp_min_u64(WAIT_MS, left_ms);
}

static void sample_until_end(session *s)
{
    uint64_t begin_ns = sp_clock_monotonic_ns(), ends_ns = UINT64_MAX;
    if (s->options->duration_ns)
        ends_ns = sp_deadline_after(begin_ns, s->options->duration_ns);
    while (!is_ending && !s->out->has_ended && sp_clock_monotonic_ns() < ends_ns) {
        sp_attach_ticks_wait(s->ticks, s->target.pidfd, wait_ms(s, ends_ns));
        s->out->has_ended = sp_attach_target_has_ended(&s->target);
        visit_if_due(s);
        read_ticks(s);
        sp_attach_observer_refresh(&s->observer);
        if (sp_clock_monotonic_ns() >= s->window_ends_ns)
            end_window(s);
    }
    s->out->sampled_ns = sp_clock_monotonic_ns() - begin_ns;
}

static void finish(session *s)
{
    spanprof_span_end(s->span); /* first, because looking up names takes time */
    end_window(s);
    sp_exporter_flush(s->exporter, sp_clock_monotonic_ns() + FLUSH_S * SP_NS_PER_S);
    s->out->samples = sp_attach_samples_total(s->samples);
    s->out->stops = s->observer.stops;
    s->out->stop_ns = s->observer.stop_ns;
    s->out->longest_stop_ns = s->observer.longest_stop_ns;
    s->out->needs_stops = sp_attach_observer_has_records(&s->observer);
}

static bool start(session *s)
{
    if (!sp_attach_target_open(&s->target, s->options->pid, s->out->problem) || !check_prefix(s))
        return false;
    if (!sp_attach_observer_init(&s->observer, &s->target))
        return fail(s, "the process ended while it was looked at, or memory is short");
    if (!open_ticks(s) || !start_exporter(s) || !start_span(s) || !start_samples(s))
        return false;
    s->random = sp_random_seed();
    s->cells.begin_ns = sp_clock_monotonic_ns();
    plan_visit(s);
    s->window_ends_ns = s->cells.begin_ns + WINDOW_S * SP_NS_PER_S;
    s->cpu_ns = sp_attach_target_cpu_ns(&s->target);
    return true;
}

static void deinit(session *s)
{
    sp_exporter_destroy(s->exporter, sp_clock_monotonic_ns() + FLUSH_S * SP_NS_PER_S, NULL);
    sp_attach_ticks_close(s->ticks);
    sp_attach_samples_destroy(s->samples);
    if (s->observer.target)
        sp_attach_observer_deinit(&s->observer);
    sp_resource_deinit(&s->resource);
    sp_attach_target_close(&s->target);
}

bool sp_attach(const sp_attach_options *options, sp_attach_outcome *out)
{
    *out = (sp_attach_outcome){.samples = 0};
    session s = {.options = options, .out = out, .target = {.pidfd = -1}};
    struct sigaction end = {.sa_handler = end_on_signal}, before[2];
    is_ending = 0;
    sigaction(SIGINT, &end, &before[0]);
    sigaction(SIGTERM, &end, &before[1]);
    bool started = start(&s);
    if (started) {
        report_start(&s);
        sample_until_end(&s);
    }
    sigaction(SIGINT, &before[0], NULL);
    sigaction(SIGTERM, &before[1], NULL);
    if (started)
        finish(&s);
    deinit(&s);
    return started;
}
