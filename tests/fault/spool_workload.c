/* SPDX-License-Identifier: Apache-2.0 */
/* Spans with names of their own, for spool_kill_test.py. Public API only.
 *
 *   spool_workload NAME    says that it has started; spans NAME-0, NAME-1, … until it is killed
 *   spool_workload         no spans: what is in the spool is delivered; then the counters, as
 * name=value */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <spanprof/spanprof.h>

static void make_spans(const char *name)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    for (unsigned i = 0;; i++) {
        char text[64];
        snprintf(text, sizeof text, "%s-%u;", name, i);
        spanprof_span_end(spanprof_span_start(NULL, text, NULL));
        nanosleep(&pause, NULL);
    }
}

int main(int argc, char **argv)
{
    spanprof_error error = {0};
    if (spanprof_start(NULL, &error) != SPANPROF_OK) {
        fprintf(stderr, "start: %s\n", error.message);
        return 1;
    }
    if (argc > 1) {
        puts("started");
        fflush(stdout);
        make_spans(argv[1]);
    }
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
