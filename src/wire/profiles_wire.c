/* SPDX-License-Identifier: Apache-2.0 */
/* Writes profile data as protobuf without trees, because a window has tens of thousands of samples.
 * The bytes are those that protobuf-c makes of the trees of profiles.c. Parts of which a request
 * has few (resource, scope, values of attributes) are trees here, too. */
#include "core/compiler.h"
#include "wire/profiles.h"

#include <spanprof/version.h>
#include "wire/wire_buffer.h"
#include "proto/profiles.pb-c.h"

/* A request while it is encoded. Trees are in `arena`. */
typedef struct encoder {
    sp_wire wire;
    sp_arena arena;
    const sp_profile_data *data;
} encoder;

/* The fields of proto/profiles.proto, by message. */
enum { REQUEST_RESOURCE_PROFILES = 1, REQUEST_DICTIONARY };
enum { RESOURCE_PROFILES_RESOURCE = 1, RESOURCE_PROFILES_SCOPES, RESOURCE_PROFILES_SCHEMA_URL };
enum { SCOPE_PROFILES_SCOPE = 1, SCOPE_PROFILES_PROFILES };
enum {
    DICTIONARY_MAPPINGS = 1,
    DICTIONARY_LOCATIONS,
    DICTIONARY_FUNCTIONS,
    DICTIONARY_LINKS,
    DICTIONARY_STRINGS,
    DICTIONARY_ATTRIBUTES,
    DICTIONARY_STACKS
};
enum {
    PROFILE_SAMPLE_TYPE = 1,
    PROFILE_SAMPLES,
    PROFILE_TIME,
    PROFILE_DURATION,
    PROFILE_PERIOD_TYPE,
    PROFILE_PERIOD,
    PROFILE_ID,
    PROFILE_ATTRIBUTES = 11
};
enum { VALUE_TYPE_TYPE = 1, VALUE_TYPE_UNIT };
enum { SAMPLE_STACK = 1, SAMPLE_ATTRIBUTES, SAMPLE_LINK, SAMPLE_VALUES, SAMPLE_TIMESTAMPS };
enum { MAPPING_START = 1, MAPPING_LIMIT, MAPPING_OFFSET, MAPPING_FILENAME, MAPPING_ATTRIBUTES };
enum { STACK_LOCATIONS = 1 };
enum { LOCATION_MAPPING = 1, LOCATION_ADDRESS, LOCATION_LINES, LOCATION_ATTRIBUTES };
enum { LINE_FUNCTION = 1, LINE_LINE, LINE_COLUMN };
enum { FUNCTION_NAME = 1, FUNCTION_SYSTEM_NAME, FUNCTION_FILENAME, FUNCTION_START_LINE };
enum { LINK_TRACE_ID = 1, LINK_SPAN_ID };
enum { ATTRIBUTE_KEY = 1, ATTRIBUTE_VALUE, ATTRIBUTE_UNIT };

/* The most bytes of a list of indices. */
static size_t list_bytes(sp_index_list list)
{
    return 2 * SP_WIRE_FIELD_MAX + (size_t)list.count * SP_WIRE_VARINT_MAX;
}

static uint8_t *put_list(uint8_t *p, unsigned field, const sp_profile_data *data,
                         sp_index_list list)
{
    return sp_wire_indices(p, field, data->indices + list.offset, list.count);
}

/* ---- dictionary, one entry each ---- */

static void put_mapping(encoder *e, const sp_profile_mapping *from)
{
    uint8_t *p = sp_wire_room(&e->wire, 5 * SP_WIRE_FIELD_MAX + list_bytes(from->attributes));
    uint8_t *end = p;
    if (!p)
        return;
    p = put_list(p, MAPPING_ATTRIBUTES, e->data, from->attributes);
    p = sp_wire_index(p, MAPPING_FILENAME, from->filename_strindex);
    p = sp_wire_u64(p, MAPPING_OFFSET, from->file_offset);
    p = sp_wire_u64(p, MAPPING_LIMIT, from->memory_limit);
    p = sp_wire_u64(p, MAPPING_START, from->memory_start);
    sp_wire_set(&e->wire, sp_wire_head(p, DICTIONARY_MAPPINGS, end));
}

static uint8_t *put_line(uint8_t *p, const sp_profile_line *from)
{
    uint8_t *end = p;
    p = sp_wire_u64(p, LINE_COLUMN, (uint64_t)from->column);
    p = sp_wire_u64(p, LINE_LINE, (uint64_t)from->line);
    p = sp_wire_index(p, LINE_FUNCTION, from->function_index);
    return sp_wire_head(p, LOCATION_LINES, end);
}

static void put_location(encoder *e, const sp_profile_location *from)
{
    size_t lines_bytes = (size_t)from->line_count * 4 * SP_WIRE_FIELD_MAX;
    uint8_t *p =
        sp_wire_room(&e->wire, 3 * SP_WIRE_FIELD_MAX + list_bytes(from->attributes) + lines_bytes);
    uint8_t *end = p;
    if (!p)
        return;
    p = put_list(p, LOCATION_ATTRIBUTES, e->data, from->attributes);
    for (uint32_t i = from->line_count; i-- > 0;)
        p = put_line(p, &e->data->lines[from->first_line + i]);
    p = sp_wire_u64(p, LOCATION_ADDRESS, from->address);
    p = sp_wire_index(p, LOCATION_MAPPING, from->mapping_index);
    sp_wire_set(&e->wire, sp_wire_head(p, DICTIONARY_LOCATIONS, end));
}

static void put_function(encoder *e, const sp_profile_function *from)
{
    uint8_t *p = sp_wire_room(&e->wire, 5 * SP_WIRE_FIELD_MAX), *end = p;
    if (!p)
        return;
    p = sp_wire_u64(p, FUNCTION_START_LINE, (uint64_t)from->start_line);
    p = sp_wire_index(p, FUNCTION_FILENAME, from->filename_strindex);
    p = sp_wire_index(p, FUNCTION_SYSTEM_NAME, from->system_name_strindex);
    p = sp_wire_index(p, FUNCTION_NAME, from->name_strindex);
    sp_wire_set(&e->wire, sp_wire_head(p, DICTIONARY_FUNCTIONS, end));
}

/* An id of zero is left out, see sp_otlp_id. */
static uint8_t *put_id(uint8_t *p, unsigned field, const uint8_t *id, size_t count)
{
    ProtobufCBinaryData bytes = sp_otlp_id(id, count);
    return bytes.len ? sp_wire_bytes(p, field, bytes.data, bytes.len) : p;
}

static void put_link(encoder *e, const sp_profile_link *from)
{
    uint8_t *p = sp_wire_room(&e->wire, sizeof *from + 3 * SP_WIRE_FIELD_MAX), *end = p;
    if (!p)
        return;
    p = put_id(p, LINK_SPAN_ID, from->span_id, sizeof from->span_id);
    p = put_id(p, LINK_TRACE_ID, from->trace_id, sizeof from->trace_id);
    sp_wire_set(&e->wire, sp_wire_head(p, DICTIONARY_LINKS, end));
}

static void put_stack(encoder *e, sp_index_list from)
{
    uint8_t *p = sp_wire_room(&e->wire, list_bytes(from)), *end = p;
    if (p)
        sp_wire_set(&e->wire, sp_wire_head(put_list(p, STACK_LOCATIONS, e->data, from),
                                           DICTIONARY_STACKS, end));
}

/* Entry 0 has no value, not the value "". */
static void put_attribute(encoder *e, uint32_t number)
{
    const sp_profile_attribute *from = &e->data->attributes[number];
    size_t written = sp_wire_written(&e->wire);
    uint8_t *p = number ? sp_wire_room(&e->wire, SP_WIRE_FIELD_MAX) : NULL;
    if (p) {
        sp_wire_set(&e->wire, sp_wire_index(p, ATTRIBUTE_UNIT, from->unit_strindex));
        Sp__Common__AnyValue value = SP__COMMON__ANY_VALUE__INIT;
        bool is_set = sp_otlp_profile_value(&e->arena, &value, from);
        sp_otlp_put_tree(&e->wire, ATTRIBUTE_VALUE, is_set ? &value.base : NULL);
        p = sp_wire_room(&e->wire, SP_WIRE_FIELD_MAX);
    }
    if (p)
        sp_wire_set(&e->wire, sp_wire_index(p, ATTRIBUTE_KEY, from->key_strindex));
    sp_wire_close(&e->wire, DICTIONARY_ATTRIBUTES, written);
}

static void put_dictionary(encoder *e)
{
    const sp_profile_data *data = e->data;
    size_t written = sp_wire_written(&e->wire);
    for (uint32_t i = data->stack_count; i-- > 0;)
        put_stack(e, data->stacks[i]);
    for (uint32_t i = data->attribute_count; i-- > 0;)
        put_attribute(e, i);
    for (uint32_t i = data->string_count; i-- > 0;)
        sp_wire_text(&e->wire, DICTIONARY_STRINGS, data->strings[i]);
    for (uint32_t i = data->link_count; i-- > 0;)
        put_link(e, &data->links[i]);
    for (uint32_t i = data->function_count; i-- > 0;)
        put_function(e, &data->functions[i]);
    for (uint32_t i = data->location_count; i-- > 0;)
        put_location(e, &data->locations[i]);
    for (uint32_t i = data->mapping_count; i-- > 0;)
        put_mapping(e, &data->mappings[i]);
    sp_wire_close(&e->wire, REQUEST_DICTIONARY, written);
}

/* ---- profiles ---- */

/* Write either the value, or the time of each event; receivers count both the same. */
static uint8_t *put_events(uint8_t *p, const sp_profile_data *data, const sp_profile_sample *from)
{
    uint8_t *end = p;
    if (!from->timestamps.count)
        return sp_wire_head(sp_wire_varint(p, (uint64_t)from->value), SAMPLE_VALUES, end);
    for (uint32_t i = from->timestamps.count; i-- > 0;)
        p = sp_wire_fixed64_value(p, data->timestamps[from->timestamps.offset + i]);
    return sp_wire_head(p, SAMPLE_TIMESTAMPS, end);
}

static void put_sample(encoder *e, const sp_profile_sample *from)
{
    size_t times_bytes = (size_t)from->timestamps.count * sizeof(uint64_t);
    uint8_t *p =
        sp_wire_room(&e->wire, 5 * SP_WIRE_FIELD_MAX + list_bytes(from->attributes) + times_bytes);
    uint8_t *end = p;
    if (!p)
        return;
    p = put_events(p, e->data, from);
    p = sp_wire_index(p, SAMPLE_LINK, from->link_index);
    p = put_list(p, SAMPLE_ATTRIBUTES, e->data, from->attributes);
    p = sp_wire_index(p, SAMPLE_STACK, from->stack_index);
    sp_wire_set(&e->wire, sp_wire_head(p, PROFILE_SAMPLES, end));
}

static uint8_t *put_type(uint8_t *p, unsigned field, uint32_t type, uint32_t unit)
{
    uint8_t *end = p;
    p = sp_wire_index(p, VALUE_TYPE_UNIT, unit);
    p = sp_wire_index(p, VALUE_TYPE_TYPE, type);
    return sp_wire_head(p, field, end);
}

/* Without a period type there is no such message, see profiles.c. */
static uint8_t *put_facts(uint8_t *p, const sp_profile_data *data, const sp_profile *from)
{
    uint32_t type = from->period_type_strindex, unit = from->period_unit_strindex;
    p = put_list(p, PROFILE_ATTRIBUTES, data, from->attributes);
    p = put_id(p, PROFILE_ID, from->profile_id, sizeof from->profile_id);
    p = sp_wire_u64(p, PROFILE_PERIOD, (uint64_t)from->period);
    if (type || unit)
        p = put_type(p, PROFILE_PERIOD_TYPE, type, unit);
    p = sp_wire_u64(p, PROFILE_DURATION, from->duration_nano);
    return sp_wire_fixed64(p, PROFILE_TIME, from->time_unix_nano);
}

static void put_profile(encoder *e, const sp_profile *from)
{
    size_t written = sp_wire_written(&e->wire);
    uint8_t *p = sp_wire_room(&e->wire, 10 * SP_WIRE_FIELD_MAX + sizeof from->profile_id +
                                            list_bytes(from->attributes));
    if (p)
        sp_wire_set(&e->wire, put_facts(p, e->data, from));
    for (uint32_t i = from->sample_count; i-- > 0;)
        put_sample(e, &from->samples[i]);
    p = sp_wire_room(&e->wire, 3 * SP_WIRE_FIELD_MAX);
    if (p)
        sp_wire_set(&e->wire, put_type(p, PROFILE_SAMPLE_TYPE, from->sample_type_strindex,
                                       from->sample_unit_strindex));
    sp_wire_close(&e->wire, SCOPE_PROFILES_PROFILES, written);
}

static void put_scope_profiles(encoder *e)
{
    size_t written = sp_wire_written(&e->wire);
    for (uint32_t i = e->data->profile_count; i-- > 0;)
        put_profile(e, &e->data->profiles[i]);
    Sp__Common__InstrumentationScope *scope = sp_otlp_scope(&e->arena, &sp_otlp_profiles_scope);
    sp_otlp_put_tree(&e->wire, SCOPE_PROFILES_SCOPE, scope ? &scope->base : NULL);
    sp_wire_close(&e->wire, RESOURCE_PROFILES_SCOPES, written);
}

static void put_resource_profiles(encoder *e, const sp_resource *from)
{
    size_t written = sp_wire_written(&e->wire);
    sp_wire_text(&e->wire, RESOURCE_PROFILES_SCHEMA_URL, SP_OTLP_SCHEMA_URL);
    put_scope_profiles(e);
    Sp__Resource__Resource *resource = sp_otlp_resource(&e->arena, from);
    sp_otlp_put_tree(&e->wire, RESOURCE_PROFILES_RESOURCE, resource ? &resource->base : NULL);
    sp_wire_close(&e->wire, REQUEST_RESOURCE_PROFILES, written);
}

/* The bytes that most requests need, so that memory seldom has to grow. */
static size_t usual_bytes(const sp_profile_data *data)
{
    size_t bytes = 4096 + 32 * ((size_t)data->string_count + data->location_count +
                                data->function_count + data->link_count + data->attribute_count);
    for (uint32_t i = 0; i < data->stack_count; i++)
        bytes += 8 + 2 * (size_t)data->stacks[i].count;
    for (uint32_t i = 0; i < data->profile_count; i++) {
        const sp_profile *profile = &data->profiles[i];
        bool has_times = profile->sample_count && profile->samples[0].timestamps.count;
        bytes += (size_t)profile->sample_count * (has_times ? 24 : 16);
    }
    return bytes;
}

bool sp_otlp_write_profiles(sp_buffer *out, const sp_resource *resource,
                            const sp_profile_data *data)
{
    encoder e = {.wire.maximum = out->maximum, .data = data};
    size_t first = sp_min_u64(usual_bytes(data), out->maximum);
    if (data->profile_count && sp_wire_room(&e.wire, first)) {
        put_dictionary(&e);
        put_resource_profiles(&e, resource);
    }
    bool done = sp_wire_finish(&e.wire, out);
    sp_wire_deinit(&e.wire);
    sp_arena_deinit(&e.arena);
    return done;
}
