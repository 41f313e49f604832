/* SPDX-License-Identifier: Apache-2.0 */
/* A recording span: a slot with a sp_span_data that is filled while the span lives, and handed over as it is when it ends.
 *
 *     | head: word, context | data | bookkeeping | inline bytes …            |    512 bytes, the slot
 *                                                   name attributes[4] strings
 *                                                                        └─► then chunks from malloc, freed at release
 *
 * Strings and arrays are cut from the inline bytes, then from chunks, by a cursor that only moves on. What is replaced (a value,
 * the status' description, a grown array) stays where it was; texts keep their capacity and grow by doubling, so that setting
 * one attribute for ever takes a bounded amount.
 *
 * Threads: whoever holds the slot's lock, or knows that nobody else knows the span. */
#ifndef SP_TRACER_RECORD_H
#define SP_TRACER_RECORD_H

#include "tracer/internal.h"

enum {
    SP_RECORD_BYTES = 512,
    SP_RECORD_HEAD_BYTES = 240,
    SP_RECORD_FIRST_ATTRIBUTES = 4,
    SP_LINKS_MAX = 128,
    SP_LINK_ATTRIBUTES_MAX = 128
};

/* A longer key or value is dropped and counted: it could not be sent anyway. */
#define SP_TEXT_MAX ((size_t)16 << 20)

typedef struct sp_record_chunk sp_record_chunk;

typedef struct sp_span_record {
    sp_slot head;
    sp_span_data data;
    sp_session *session;
    uint64_t start_monotonic_ns; /* 0: the start was given, the end is the time of day */
    sp_record_chunk *chunks;
    uint8_t *cursor; /* next free byte, up to `limit` */
    uint8_t *limit;
    uint32_t attribute_capacity;
    uint32_t link_capacity;
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

/* Make RECORD an empty span named NAME (copied). */
void sp_record_begin(sp_span_record *record, sp_session *session, const char *name);
/* TEXT has LENGTH bytes of ASCII, and is copied. False when memory is short. */
bool sp_record_set_trace_state(sp_span_record *record, const char *text, size_t length);
/* Add or replace an attribute; KEY is copied when it is new. What does not fit is counted in dropped_attributes_count. */
void sp_record_set(sp_span_record *record, const spanprof_attribute *attribute);
/* The same with a key that lives for ever and is valid UTF-8. */
void sp_record_set_borrowed_key(sp_span_record *record, const spanprof_attribute *attribute);
void sp_record_set_status(sp_span_record *record, spanprof_span_status status,
                          const char *description);
void sp_record_add_links(sp_span_record *record, const spanprof_link *links, uint32_t count);
/* Free what the record took from malloc. */
void sp_record_release_memory(sp_span_record *record);

#endif
