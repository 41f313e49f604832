/* SPDX-License-Identifier: Apache-2.0 */
/* A finished span as data: what the tracer hands to its processors and the exporters encode.
 * Everything that it points to, except the scope, lives in its own memory, which
 * sp_span_data_release frees. */
#ifndef SP_TRACE_SPAN_DATA_H
#define SP_TRACE_SPAN_DATA_H

#include <spanprof/processor.h>

/* Lives as long as the process. */
typedef spanprof_instrumentation_scope sp_instrumentation_scope;
typedef spanprof_link_view sp_span_link;
typedef spanprof_event_view sp_span_event;

/* Strings are valid UTF-8 and never NULL. Times are nanoseconds since the epoch, start <= end. */
typedef struct sp_span_data {
    uint8_t trace_id[16];
    uint8_t span_id[8];
    uint8_t parent_span_id[8]; /* zero: a root */
    uint32_t flags; /* as Span.flags of OTLP: trace flags, 0x100 remote is known, 0x200 parent is
                       remote */
    uint8_t kind;   /* spanprof_span_kind */
    uint8_t status; /* spanprof_span_status */
    bool dropped_something; /* one of the counts below is not 0, or one of an event or a link */
    bool unreported; /* started inside a processor's callback: it is not reported to processors */
    uint32_t attribute_count;
    uint32_t dropped_attributes_count;
    uint32_t link_count;
    uint32_t dropped_links_count;
    uint32_t event_count;
    uint32_t dropped_events_count;
    uint64_t start_time_ns;
    uint64_t end_time_ns;
    const char *name;
    const char *trace_state;
    const char *status_message;
    const sp_instrumentation_scope *scope;
    const spanprof_attribute *attributes;
    const sp_span_link *links;
    const sp_span_event *events;
} sp_span_data;

#endif
