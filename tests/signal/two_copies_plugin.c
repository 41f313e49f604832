/* SPDX-License-Identifier: Apache-2.0 */
/* The second copy of the SDK in test_two_copies.c: this library links libspanprof.so, the program
 * the static one. */
#include <spanprof/spanprof.h>
#include "cpu_work.h"

int plugin_start(const char *file);
int plugin_work(double seconds);
int plugin_stop(spanprof_stats *stats);

int plugin_start(const char *file)
{
    spanprof_options options = SPANPROF_OPTIONS_INIT;
    options.exporter = "file";
    options.file = file;
    options.service_name = "plugin";
    return spanprof_start(&options, NULL);
}

int plugin_work(double seconds)
{
    SPANPROF_SPAN("plugin work")
        burn(seconds);
    return 0;
}

int plugin_stop(spanprof_stats *stats)
{
    int status = spanprof_stop(UINT64_C(60000000000));
    stats->struct_size = sizeof *stats;
    spanprof_stats_get(stats);
    return status;
}
