/* SPDX-License-Identifier: Apache-2.0 */
/* Writes finished spans as protobuf without trees. The bytes are those that protobuf-c makes of the
 * trees of traces.c. Resource and scope, of which a request has few, are trees here, too. */
#include "core/compiler.h"
#include "wire/traces.h"

/* A request while it is encoded. Trees and groups are in `arena`. */
typedef struct encoder {
    sp_wire wire;
    sp_arena arena;
    sp_span_data *const *spans;
    size_t count;
} encoder;

/* The fields of proto/trace.proto and proto/common.proto, by message. */
enum { REQUEST_RESOURCE_SPANS = 1 };
enum { RESOURCE_SPANS_RESOURCE = 1, RESOURCE_SPANS_SCOPES, RESOURCE_SPANS_SCHEMA_URL };
enum { SCOPE_SPANS_SCOPE = 1, SCOPE_SPANS_SPANS, SCOPE_SPANS_SCHEMA_URL };
enum {
    SPAN_TRACE_ID = 1,
    SPAN_SPAN_ID,
    SPAN_TRACE_STATE,
    SPAN_PARENT_SPAN_ID,
    SPAN_NAME,
    SPAN_KIND,
    SPAN_START_TIME,
    SPAN_END_TIME,
    SPAN_ATTRIBUTES,
    SPAN_DROPPED_ATTRIBUTES,
    SPAN_EVENTS,
    SPAN_DROPPED_EVENTS,
    SPAN_LINKS,
    SPAN_DROPPED_LINKS,
    SPAN_STATUS,
    SPAN_FLAGS
};
enum { EVENT_TIME = 1, EVENT_NAME, EVENT_ATTRIBUTES, EVENT_DROPPED_ATTRIBUTES };
enum {
    LINK_TRACE_ID = 1,
    LINK_SPAN_ID,
    LINK_TRACE_STATE,
    LINK_ATTRIBUTES,
    LINK_DROPPED_ATTRIBUTES,
    LINK_FLAGS
};
enum { STATUS_MESSAGE = 2, STATUS_CODE };
enum { ATTRIBUTE_KEY = 1, ATTRIBUTE_VALUE };
enum { VALUE_STRING = 1, VALUE_BOOL, VALUE_INT, VALUE_DOUBLE, VALUE_ARRAY };
enum { ARRAY_VALUES = 1 };

enum { USUAL_SPAN_BYTES = 256, ID_HEAD_BYTES = 2 };

/* Write TEXT, unless it is NULL or empty. */
static void put_string(encoder *e, unsigned field, const char *text)
{
    if (text && text[0])
        sp_wire_text(&e->wire, field, text);
}

/* An id of zeros is invalid in OTLP, and left out. */
static uint8_t *put_id(uint8_t *p, unsigned field, const uint8_t *id, size_t count)
{
    return sp_otlp_id(id, count).len ? sp_wire_bytes(p, field, id, count) : p;
}

/* Trace and span id, of a span or of a link. */
static void put_ids(encoder *e, unsigned trace_field, const uint8_t trace_id[16],
                    unsigned span_field, const uint8_t span_id[8])
{
    uint8_t *p = sp_wire_room(&e->wire, 16 + 8 + 2 * ID_HEAD_BYTES);
    if (!p)
        return;
    p = put_id(p, span_field, span_id, 8);
    sp_wire_set(&e->wire, put_id(p, trace_field, trace_id, 16));
}

/* Write FLAGS. The tag is written as a varint, because tags of fields from 16 to 2047 have two
 * bytes. */
static uint8_t *put_flags(uint8_t *p, unsigned field, uint32_t flags)
{
    unsigned tag = field << 3 | SP_WIRE_FIXED32;
    if (!flags)
        return p;
    for (int shift = 24; shift >= 0; shift -= 8)
        *--p = (uint8_t)(flags >> shift);
    return sp_wire_varint(p, tag);
}

/* ---- attributes ---- */

/* The members of a oneof are written even when they are zero. */
static void put_number(encoder *e, unsigned field, uint64_t number)
{
    uint8_t *p = sp_wire_room(&e->wire, SP_WIRE_FIELD_MAX);
    if (p)
        sp_wire_set(&e->wire, sp_wire_tag(sp_wire_varint(p, number), field, SP_WIRE_VARINT));
}

static void put_double(encoder *e, double number)
{
    uint64_t bits;
    memcpy(&bits, &number, sizeof bits);
    uint8_t *p = sp_wire_room(&e->wire, SP_WIRE_FIELD_MAX);
    if (p)
        sp_wire_set(&e->wire,
                    sp_wire_tag(sp_wire_fixed64_value(p, bits), VALUE_DOUBLE, SP_WIRE_FIXED64));
}

static void put_element(encoder *e, const spanprof_attribute *array, uint32_t i)
{
    size_t written = sp_wire_written(&e->wire);
    switch (array->type) {
    case SPANPROF_ATTRIBUTE_STRING_ARRAY:
        sp_wire_text(&e->wire, VALUE_STRING,
                     array->value.string_array[i] ? array->value.string_array[i] : "");
        break;
    case SPANPROF_ATTRIBUTE_INT_ARRAY:
        put_number(e, VALUE_INT, (uint64_t)array->value.int_array[i]);
        break;
    case SPANPROF_ATTRIBUTE_DOUBLE_ARRAY:
        put_double(e, array->value.double_array[i]);
        break;
    case SPANPROF_ATTRIBUTE_BOOL_ARRAY:
        put_number(e, VALUE_BOOL, array->value.bool_array[i]);
        break;
    default:
        break; /* no array */
    }
    sp_wire_close(&e->wire, ARRAY_VALUES, written);
}

static void put_array(encoder *e, const spanprof_attribute *array)
{
    size_t written = sp_wire_written(&e->wire);
    for (uint32_t i = array->count; i-- > 0;)
        put_element(e, array, i);
    sp_wire_close(&e->wire, VALUE_ARRAY, written);
}

static void put_value(encoder *e, const spanprof_attribute *from)
{
    size_t written = sp_wire_written(&e->wire);
    switch (from->type) {
    case SPANPROF_ATTRIBUTE_STRING:
        sp_wire_text(&e->wire, VALUE_STRING,
                     from->value.string_value ? from->value.string_value : "");
        break;
    case SPANPROF_ATTRIBUTE_INT:
        put_number(e, VALUE_INT, (uint64_t)from->value.int_value);
        break;
    case SPANPROF_ATTRIBUTE_DOUBLE:
        put_double(e, from->value.double_value);
        break;
    case SPANPROF_ATTRIBUTE_BOOL:
        put_number(e, VALUE_BOOL, from->value.bool_value);
        break;
    default:
        put_array(e, from);
    }
    sp_wire_close(&e->wire, ATTRIBUTE_VALUE, written);
}

static void put_attributes(encoder *e, unsigned field, const spanprof_attribute *attributes,
                           uint32_t count)
{
    for (uint32_t i = count; i-- > 0;) {
        size_t written = sp_wire_written(&e->wire);
        put_value(e, &attributes[i]);
        put_string(e, ATTRIBUTE_KEY, attributes[i].key);
        sp_wire_close(&e->wire, field, written);
    }
}

/* ---- spans ---- */

static void put_u64(encoder *e, unsigned field, uint64_t value)
{
    uint8_t *p = sp_wire_room(&e->wire, SP_WIRE_FIELD_MAX);
    if (p)
        sp_wire_set(&e->wire, sp_wire_u64(p, field, value));
}

static void put_event(encoder *e, const sp_span_event *from)
{
    size_t written = sp_wire_written(&e->wire);
    put_u64(e, EVENT_DROPPED_ATTRIBUTES, from->dropped_attributes_count);
    put_attributes(e, EVENT_ATTRIBUTES, from->attributes, from->attribute_count);
    put_string(e, EVENT_NAME, from->name);
    uint8_t *p = sp_wire_room(&e->wire, SP_WIRE_FIELD_MAX);
    if (p)
        sp_wire_set(&e->wire, sp_wire_fixed64(p, EVENT_TIME, from->time_ns));
    sp_wire_close(&e->wire, SPAN_EVENTS, written);
}

static void put_link(encoder *e, const sp_span_link *from)
{
    size_t written = sp_wire_written(&e->wire);
    uint8_t *p = sp_wire_room(&e->wire, 2 * SP_WIRE_FIELD_MAX);
    if (!p)
        return;
    p = put_flags(p, LINK_FLAGS, from->flags);
    sp_wire_set(&e->wire, sp_wire_u64(p, LINK_DROPPED_ATTRIBUTES, from->dropped_attributes_count));
    put_attributes(e, LINK_ATTRIBUTES, from->attributes, from->attribute_count);
    put_string(e, LINK_TRACE_STATE, from->trace_state);
    put_ids(e, LINK_TRACE_ID, from->trace_id, LINK_SPAN_ID, from->span_id);
    sp_wire_close(&e->wire, SPAN_LINKS, written);
}

/* A missing Status means unset, so an unset status is left out. */
static void put_status(encoder *e, const sp_span_data *from)
{
    size_t written = sp_wire_written(&e->wire);
    if (from->status == SPANPROF_SPAN_STATUS_UNSET)
        return;
    put_u64(e, STATUS_CODE, from->status);
    put_string(e, STATUS_MESSAGE, from->status_message);
    sp_wire_close(&e->wire, SPAN_STATUS, written);
}

/* Write times and kind. */
static uint8_t *put_facts(uint8_t *p, const sp_span_data *from)
{
    p = sp_wire_fixed64(p, SPAN_END_TIME, from->end_time_ns);
    p = sp_wire_fixed64(p, SPAN_START_TIME, from->start_time_ns);
    return sp_wire_u64(p, SPAN_KIND, from->kind + 1U);
}

static void put_lists(encoder *e, const sp_span_data *from)
{
    put_u64(e, SPAN_DROPPED_LINKS, from->dropped_links_count);
    for (uint32_t i = from->link_count; i-- > 0;)
        put_link(e, &from->links[i]);
    put_u64(e, SPAN_DROPPED_EVENTS, from->dropped_events_count);
    for (uint32_t i = from->event_count; i-- > 0;)
        put_event(e, &from->events[i]);
    put_u64(e, SPAN_DROPPED_ATTRIBUTES, from->dropped_attributes_count);
    put_attributes(e, SPAN_ATTRIBUTES, from->attributes, from->attribute_count);
}

/* Write ids and trace state. */
static void put_identity(encoder *e, const sp_span_data *from)
{
    uint8_t *p = sp_wire_room(&e->wire, sizeof from->parent_span_id + ID_HEAD_BYTES);
    if (p)
        sp_wire_set(&e->wire, put_id(p, SPAN_PARENT_SPAN_ID, from->parent_span_id,
                                     sizeof from->parent_span_id));
    put_string(e, SPAN_TRACE_STATE, from->trace_state);
    put_ids(e, SPAN_TRACE_ID, from->trace_id, SPAN_SPAN_ID, from->span_id);
}

static void put_span(encoder *e, const sp_span_data *from)
{
    size_t written = sp_wire_written(&e->wire);
    uint8_t *p = sp_wire_room(&e->wire, SP_WIRE_FIELD_MAX);
    if (p)
        sp_wire_set(&e->wire, put_flags(p, SPAN_FLAGS, from->flags));
    put_status(e, from);
    put_lists(e, from);
    p = sp_wire_room(&e->wire, 3 * SP_WIRE_FIELD_MAX);
    if (p)
        sp_wire_set(&e->wire, put_facts(p, from));
    put_string(e, SPAN_NAME, from->name);
    put_identity(e, from);
    sp_wire_close(&e->wire, SCOPE_SPANS_SPANS, written);
}

/* ---- the request ---- */

static void put_scope(encoder *e, const sp_instrumentation_scope *from)
{
    Sp__Common__InstrumentationScope *scope = sp_otlp_scope(&e->arena, from);
    sp_otlp_put_tree(&e->wire, SCOPE_SPANS_SCOPE, scope ? &scope->base : NULL);
}

static void put_scope_spans(encoder *e, const sp_span_grouping *grouping, uint32_t number)
{
    const sp_instrumentation_scope *scope = grouping->groups[number].scope;
    size_t written = sp_wire_written(&e->wire);
    if (scope)
        put_string(e, SCOPE_SPANS_SCHEMA_URL, scope->schema_url);
    for (size_t i = e->count; i-- > 0;)
        if (grouping->number_of[i] == number)
            put_span(e, e->spans[i]);
    if (scope)
        put_scope(e, scope);
    sp_wire_close(&e->wire, RESOURCE_SPANS_SCOPES, written);
}

static void put_resource_spans(encoder *e, const sp_span_grouping *grouping,
                               const sp_resource *from)
{
    size_t written = sp_wire_written(&e->wire);
    sp_wire_text(&e->wire, RESOURCE_SPANS_SCHEMA_URL, SP_OTLP_SCHEMA_URL);
    for (uint32_t i = grouping->group_count; i-- > 0;)
        put_scope_spans(e, grouping, i);
    Sp__Resource__Resource *resource = sp_otlp_resource(&e->arena, from);
    sp_otlp_put_tree(&e->wire, RESOURCE_SPANS_RESOURCE, resource ? &resource->base : NULL);
    sp_wire_close(&e->wire, REQUEST_RESOURCE_SPANS, written);
}

bool sp_otlp_write_traces(sp_buffer *out, const sp_resource *resource, sp_span_data *const *spans,
                          size_t count)
{
    encoder e = {.wire.maximum = out->maximum, .spans = spans, .count = count};
    sp_span_grouping grouping = {0};
    size_t first = sp_min_u64((count + 4) * USUAL_SPAN_BYTES, out->maximum);
    if (count && !sp_otlp_group_spans(&e.arena, &grouping, spans, count))
        e.wire.failed = true;
    else if (count && sp_wire_room(&e.wire, first))
        put_resource_spans(&e, &grouping, resource);
    bool done = sp_wire_finish(&e.wire, out);
    sp_wire_deinit(&e.wire);
    sp_arena_deinit(&e.arena);
    return done;
}
