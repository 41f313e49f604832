/* SPDX-License-Identifier: Apache-2.0 */
/* forgotten_detach PREFIX: three requests, whose scopes are never detached, with files at PREFIX.
 * Each works for ten seconds, as synthetic ticks have it. */
#include <spanprof/spanprof.h>
#include "cpu/cpu_engine.h"
#include "sdk/synthetic.h"

enum { REQUESTS = 3, HZ = 100, SECONDS = 10 };

static void serve(void)
{
    spanprof_span span = spanprof_span_start(NULL, "request", NULL);
    spanprof_span_attach(span);
    sp_engine_tick_here(HZ * SECONDS);
    spanprof_span_end(span);
}

int main(int argc, char **argv)
{
    spanprof_options options = SPANPROF_OPTIONS_INIT;
    options.exporter = "file";
    options.file = argc > 1 ? argv[1] : "";
    options.cpu_hz = HZ;
    options.log_level = SPANPROF_LOG_WARN;
    sp_sdk_use_synthetic_ticks();
    if (spanprof_start(&options, NULL) != SPANPROF_OK)
        return 1;
    for (int i = 0; i < REQUESTS; i++)
        serve();
    return spanprof_stop(UINT64_MAX) == SPANPROF_OK ? 0 : 1;
}
