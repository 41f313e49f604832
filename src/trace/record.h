/* SPDX-License-Identifier: Apache-2.0 */
/* A recording span: a slot with a sp_span_data that is filled while the span lives, and handed over
 * without a copy when it ends.
 *
 *     | head: word, context | data | bookkeeping | inline bytes …            |  512 bytes: the slot
 *                                                   name attributes[4] strings
 *                                                                        └─► then chunks (malloc)
 *
 * Strings and arrays are cut from the inline bytes, then from chunks (span_memory.h).
 *
 * Threads: the one that holds the slot's lock, or the one that starts or has ended the span,
 * because no other thread uses it then. */
#ifndef SP_TRACE_RECORD_H
#define SP_TRACE_RECORD_H

#include "trace/trace_internal.h"
#include "trace/values.h"

enum { SP_RECORD_BYTES = 512, SP_RECORD_HEAD_BYTES = 240 };

typedef struct sp_span_record {
    sp_slot head;
    sp_span_data data;
    sp_session *session;
    uint64_t start_monotonic_ns; /* 0: the application gave the start time */
    sp_span_memory memory;
    _Alignas(8) uint8_t bytes[SP_RECORD_BYTES - SP_RECORD_HEAD_BYTES];
} sp_span_record;

_Static_assert(offsetof(sp_span_record, bytes) == SP_RECORD_HEAD_BYTES &&
                   sizeof(sp_span_record) == SP_RECORD_BYTES,
               "no padding: a live span is 512 bytes");

static inline sp_span_record *sp_record_of_data(sp_span_data *data)
{
    return (sp_span_record *)(void *)((uint8_t *)data - offsetof(sp_span_record, data));
}

static inline sp_span_record *sp_record_of_slot(sp_slot *slot)
{
    return (sp_span_record *)(void *)slot;
}

/* Convert MONOTONIC_NS to nanoseconds since the epoch. They are counted from the start of RECORD's
 * span, so that its times are in order, unless the application gave the start time. */
static inline uint64_t sp_record_time(const sp_span_record *record, uint64_t monotonic_ns)
{
    uint64_t start = record->start_monotonic_ns;
    if (start)
        return record->data.start_time_ns + (sp_max_u64(monotonic_ns, start) - start);
    return monotonic_ns + sp_span_clock_offset(monotonic_ns);
}

/* Make RECORD an empty span named NAME (copied). */
void sp_record_begin(sp_span_record *record, sp_session *session, const char *name);
/* TEXT has LENGTH bytes of ASCII, and is copied. False when memory is short. */
bool sp_record_set_trace_state(sp_span_record *record, const char *text, size_t length);
/* Add or replace an attribute; KEY is copied when it is new. An attribute that does not fit is
 * counted in dropped_attributes_count. */
void sp_record_set(sp_span_record *record, const spanprof_attribute *attribute);
/* The same for an attribute of the SDK itself. Its key is valid UTF-8 and lives as long as the
 * process. No limit drops it. */
void sp_record_set_borrowed_key(sp_span_record *record, const spanprof_attribute *attribute);
void sp_record_set_status(sp_span_record *record, spanprof_span_status status,
                          const char *description);
void sp_record_update_name(sp_span_record *record, const char *name);
void sp_record_add_link(sp_span_record *record, const spanprof_link *link);

/* An event to be added. The attributes in `own` are added first; an attribute of `options` with the
 * same key replaces one of them. */
typedef struct sp_event_request {
    const char *name;
    uint64_t time_ns;
    const spanprof_attribute *own;
    uint32_t own_count;
    const spanprof_event_options *options; /* never NULL */
} sp_event_request;

void sp_record_add_event(sp_span_record *record, const sp_event_request *request);
/* Log, at most once a minute, that this span had more than it may keep. */
void sp_record_warn_of_drops(const sp_span_record *record);
/* Free what the record took from malloc. */
void sp_record_release_memory(sp_span_record *record);

#endif
