/* SPDX-License-Identifier: Apache-2.0 */
/* Every macro and initialiser of the headers in plain C11; compiled, never run. */
#include <spanprof/spanprof.h>

_Static_assert(sizeof(spanprof_context) == 64, "the contract says 64 bytes");
_Static_assert(sizeof(spanprof_span) == 16, "the contract says 16 bytes");

int use(int early);

int use(int early)
{
    spanprof_options options = SPANPROF_OPTIONS_INIT;
    spanprof_span_options span_options = SPANPROF_SPAN_OPTIONS_INIT;
    spanprof_tracer_options tracer_options = SPANPROF_TRACER_OPTIONS_INIT;
    spanprof_event_options event_options = SPANPROF_EVENT_OPTIONS_INIT;
    spanprof_processor processor = SPANPROF_PROCESSOR_INIT;
    spanprof_start_attributes attributes = SPANPROF_START_ATTRIBUTES_INIT;
    spanprof_sampler sampler = SPANPROF_SAMPLER_INIT;
    spanprof_stats stats = SPANPROF_STATS_INIT;
    spanprof_error error;
    options.sampler = &sampler;
    if (spanprof_start(&options, &error) != SPANPROF_OK)
        return error.status;
    spanprof_processor_add(&processor);
    spanprof_processor_on_start(NULL, NULL, "foreign", 0, &attributes);
    spanprof_span span =
        spanprof_span_start(spanprof_tracer_get_with(&tracer_options), "explicit", &span_options);
    spanprof_span_add_event(span, "event", &event_options);
    spanprof_span_end(span);
    SPANPROF_SPAN("outer") {
        SPANPROF_SPAN("inner") {
            if (early)
                break;
        }
        if (early)
            return 1;
    }
    spanprof_stats_get(&stats);
    return spanprof_stop(0);
}
