/* SPDX-License-Identifier: Apache-2.0 */
/* sends COUNT [all]: makes COUNT requests of one span each, and profiles of what it did under them,
 * one after the other. Then it says how that went: a line NAME=NUMBER for each; `all` prints the
 * whole statistics behind these, as they are in memory. With SENDS_REQUEST_BYTES all profiles are
 * of one window, and no request of profiles is as long as that. */
#include <stdio.h>
#include <stdlib.h>

#include <spanprof/spanprof.h>

#include "cpu_work.h"

static const uint64_t PATIENCE_NS = UINT64_C(60000000000);

int main(int argc, char **argv)
{
    int count = argc > 1 ? atoi(argv[1]) : 1;
    const char *bytes = getenv("SENDS_REQUEST_BYTES");
    spanprof_options options = SPANPROF_OPTIONS_INIT;
    spanprof_error error = {0};
    options.request_maximum_bytes = bytes ? (uint32_t)atoi(bytes) : 0;
    if (spanprof_start(&options, &error) != SPANPROF_OK) {
        printf("%s\n", error.message);
        return 1;
    }
    for (int i = 0; i < count; i++) {
        SPANPROF_SPAN("request")
            burn(0.05);
        if (!bytes)
            spanprof_flush(PATIENCE_NS);
    }
    spanprof_status stopped = spanprof_stop(PATIENCE_NS);
    spanprof_stats stats = {.struct_size = sizeof stats};
    spanprof_stats_get(&stats);
    printf(
        "stopped=%d\nspans=%llu\nrequests=%llu\nrefused=%llu\nunreachable=%llu\nqueue_full=%llu\n",
        stopped, (unsigned long long)stats.exported_spans,
        (unsigned long long)stats.exported_requests,
        (unsigned long long)stats.dropped_exports_refused,
        (unsigned long long)stats.dropped_exports_unreachable,
        (unsigned long long)stats.dropped_exports_queue_full);
    if (argc > 2)
        fwrite(&stats, sizeof stats, 1, stdout);
    return 0;
}
