/* SPDX-License-Identifier: Apache-2.0 */
/* A program outside the tree: is the library that it was linked with the one of its headers, and
 * does that work? */
#include <spanprof/spanprof.h>

#include <stdio.h>
#include <string.h>

int main(void)
{
    spanprof_options options = SPANPROF_OPTIONS_INIT;
    options.exporter = "none";
    spanprof_stats stats = SPANPROF_STATS_INIT;
    if (strcmp(spanprof_version(), SPANPROF_VERSION) != 0)
        return 1;
    spanprof_status started = spanprof_start(&options, NULL);
    SPANPROF_SPAN("work") {
        spanprof_stats_get(&stats);
    }
    spanprof_status stopped = spanprof_stop(UINT64_C(5000000000));
    printf("start: %s, stop: %s, spans: %llu\n", spanprof_status_name(started),
           spanprof_status_name(stopped), (unsigned long long)stats.spans_started);
    return started == SPANPROF_OK && stopped == SPANPROF_OK && stats.spans_started == 1 ? 0 : 1;
}
