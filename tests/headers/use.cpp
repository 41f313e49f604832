/* SPDX-License-Identifier: Apache-2.0 */
/* The headers as C++17 sees them; compiled, never run. */
#include <spanprof/spanprof.h>

static_assert(sizeof(spanprof_context) == 64, "the contract says 64 bytes");
static_assert(sizeof(spanprof_span) == 16, "the contract says 16 bytes");

int use(int early);

int use(int early)
{
    const spanprof_span_options span_options = SPANPROF_SPAN_OPTIONS_INIT;
    const spanprof_tracer_options tracer_options = SPANPROF_TRACER_OPTIONS_INIT;
    const spanprof_event_options event_options = SPANPROF_EVENT_OPTIONS_INIT;
    const spanprof_processor processor = SPANPROF_PROCESSOR_INIT;
    spanprof_start_attributes attributes = SPANPROF_START_ATTRIBUTES_INIT;
    spanprof_sampler sampler = SPANPROF_SAMPLER_INIT;
    spanprof_stats stats = SPANPROF_STATS_INIT;
    spanprof_options options = SPANPROF_OPTIONS_INIT;
    options.sampler = &sampler;
    if (spanprof_start(&options, nullptr) != SPANPROF_OK)
        return 1;
    spanprof_processor_add(&processor);
    spanprof_processor_on_start(nullptr, nullptr, "foreign", 0, &attributes);
    spanprof_stats_get(&stats);
    spanprof_span span =
        spanprof_span_start(spanprof_tracer_get_with(&tracer_options), "explicit", &span_options);
    spanprof_span_add_event(span, "event", &event_options);
    spanprof_span_end(span);
    SPANPROF_SPAN("outer") {
        SPANPROF_SPAN("inner") {
            if (early)
                throw early;
        }
    }
    return spanprof_stop(0);
}
