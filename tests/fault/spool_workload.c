/* SPDX-License-Identifier: Apache-2.0 */
/* Spans with names of their own, for spool_kill_test.py. Public API only.
 *
 *   spool_workload NAME        says that it has started; spans NAME-0, NAME-1, … until it is killed
 *   spool_workload NAME busy   the same with CPU time in each span, so that there are profiles,
 *                              one every 20 ms, or as fast as they can be made
 *   spool_workload             no spans: what is in the spool is delivered; then the counters, as
 *                              name=value */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <spanprof/spanprof.h>

#include "cpu_work.h"

static const uint64_t SOON_NS = 1000000;
enum { SPANS_A_WINDOW = 20 };

static void say_started(void)
{
    puts("started");
    fflush(stdout);
}

static spanprof_span start_span(const char *name, unsigned number)
{
    char text[64];
    snprintf(text, sizeof text, "%s-%u;", name, number);
    return spanprof_span_start(NULL, text, NULL);
}

static void make_spans(const char *name)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    say_started();
    for (unsigned i = 0;; i++) {
        spanprof_span_end(start_span(name, i));
        nanosleep(&pause, NULL);
    }
}

/* A flush ends the window, and does not wait long for what becomes of it. */
static void make_profiles(const char *name)
{
    say_started();
    for (unsigned i = 1;; i++) {
        spanprof_span span = start_span(name, i);
        spanprof_scope scope = spanprof_span_attach(span);
        burn(0.001);
        spanprof_scope_detach(&scope);
        spanprof_span_end(span);
        if (i % SPANS_A_WINDOW == 0)
            spanprof_flush(SOON_NS);
    }
}

int main(int argc, char **argv)
{
    spanprof_error error = {0};
    if (spanprof_start(NULL, &error) != SPANPROF_OK) {
        fprintf(stderr, "start: %s\n", error.message);
        return 1;
    }
    if (argc > 2)
        make_profiles(argv[1]);
    if (argc > 1)
        make_spans(argv[1]);
    spanprof_flush(UINT64_MAX);
    spanprof_stop(UINT64_MAX);
    spanprof_stats stats = SPANPROF_STATS_INIT;
    spanprof_stats_get(&stats);
    printf("taken_over=%llu\nrequests=%llu\nspooled=%llu\ndropped=%llu\n",
           (unsigned long long)stats.taken_over_exports,
           (unsigned long long)stats.exported_requests, (unsigned long long)stats.spooled_exports,
           (unsigned long long)(stats.dropped_exports_queue_full + stats.dropped_exports_refused +
                                stats.dropped_exports_unreachable + stats.dropped_exports_spool));
    return 0;
}
