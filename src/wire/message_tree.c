/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/message_tree.h"

#include "wire/json.h"

void *sp_otlp_message(sp_arena *arena, const ProtobufCMessageDescriptor *type)
{
    ProtobufCMessage *message = sp_arena_alloc(arena, type->sizeof_message);
    if (message)
        protobuf_c_message_init(type, message);
    return message;
}

void *sp_otlp_list(sp_arena *arena, const ProtobufCMessageDescriptor *type, size_t count)
{
    ProtobufCMessage **list = sp_arena_array(arena, count, sizeof *list);
    unsigned char *messages = sp_arena_array(arena, count, type->sizeof_message);
    if (!list || !messages)
        return NULL;
    for (size_t i = 0; i < count; i++) {
        list[i] = (ProtobufCMessage *)(messages + i * type->sizeof_message);
        protobuf_c_message_init(type, list[i]);
    }
    return list;
}

static void set_string(Sp__Common__AnyValue *value, const char *text)
{
    value->value_case = SP__COMMON__ANY_VALUE__VALUE_STRING_VALUE;
    value->string_value = (char *)(text ? text : "");
}

static void set_int(Sp__Common__AnyValue *value, int64_t number)
{
    value->value_case = SP__COMMON__ANY_VALUE__VALUE_INT_VALUE;
    value->int_value = number;
}

static void set_double(Sp__Common__AnyValue *value, double number)
{
    value->value_case = SP__COMMON__ANY_VALUE__VALUE_DOUBLE_VALUE;
    value->double_value = number;
}

static void set_bool(Sp__Common__AnyValue *value, bool truth)
{
    value->value_case = SP__COMMON__ANY_VALUE__VALUE_BOOL_VALUE;
    value->bool_value = truth;
}

static void set_element(Sp__Common__AnyValue *value, const spanprof_attribute *array, uint32_t i)
{
    switch (array->type) {
    case SPANPROF_ATTRIBUTE_STRING_ARRAY:
        set_string(value, array->value.string_array[i]);
        break;
    case SPANPROF_ATTRIBUTE_INT_ARRAY:
        set_int(value, array->value.int_array[i]);
        break;
    case SPANPROF_ATTRIBUTE_DOUBLE_ARRAY:
        set_double(value, array->value.double_array[i]);
        break;
    case SPANPROF_ATTRIBUTE_BOOL_ARRAY:
        set_bool(value, array->value.bool_array[i]);
        break;
    default:
        break; /* no array */
    }
}

static bool set_array(sp_arena *arena, Sp__Common__AnyValue *value, const spanprof_attribute *array)
{
    Sp__Common__ArrayValue *list = sp_otlp_message(arena, &sp__common__array_value__descriptor);
    if (!list)
        return false;
    list->values = sp_otlp_list(arena, &sp__common__any_value__descriptor, array->count);
    if (!list->values)
        return false;
    list->n_values = array->count;
    for (uint32_t i = 0; i < array->count; i++)
        set_element(list->values[i], array, i);
    value->value_case = SP__COMMON__ANY_VALUE__VALUE_ARRAY_VALUE;
    value->array_value = list;
    return true;
}

bool sp_otlp_value_set(sp_arena *arena, Sp__Common__AnyValue *value,
                       const spanprof_attribute *attribute)
{
    switch (attribute->type) {
    case SPANPROF_ATTRIBUTE_STRING:
        set_string(value, attribute->value.string_value);
        return true;
    case SPANPROF_ATTRIBUTE_INT:
        set_int(value, attribute->value.int_value);
        return true;
    case SPANPROF_ATTRIBUTE_DOUBLE:
        set_double(value, attribute->value.double_value);
        return true;
    case SPANPROF_ATTRIBUTE_BOOL:
        set_bool(value, attribute->value.bool_value);
        return true;
    default:
        return set_array(arena, value, attribute);
    }
}

Sp__Common__KeyValue **sp_otlp_attributes(sp_arena *arena, const spanprof_attribute *attributes,
                                          size_t count)
{
    Sp__Common__KeyValue **list = sp_otlp_list(arena, &sp__common__key_value__descriptor, count);
    Sp__Common__AnyValue **values = sp_otlp_list(arena, &sp__common__any_value__descriptor, count);
    if (!list || !values)
        return NULL;
    for (size_t i = 0; i < count; i++) {
        list[i]->key = (char *)attributes[i].key;
        list[i]->value = values[i];
        if (!sp_otlp_value_set(arena, values[i], &attributes[i]))
            return NULL;
    }
    return list;
}

Sp__Resource__Resource *sp_otlp_resource(sp_arena *arena, const sp_resource *resource)
{
    Sp__Resource__Resource *message = sp_otlp_message(arena, &sp__resource__resource__descriptor);
    if (!message)
        return NULL;
    message->n_attributes = resource->attribute_count;
    message->attributes =
        sp_otlp_attributes(arena, resource->attributes, resource->attribute_count);
    return message->attributes ? message : NULL;
}

Sp__Common__InstrumentationScope *sp_otlp_scope(sp_arena *arena,
                                                const sp_instrumentation_scope *scope)
{
    Sp__Common__InstrumentationScope *message =
        sp_otlp_message(arena, &sp__common__instrumentation_scope__descriptor);
    if (!message)
        return NULL;
    message->name = (char *)scope->name;
    message->version = (char *)scope->version;
    message->dropped_attributes_count = scope->dropped_attributes_count;
    message->n_attributes = scope->attribute_count;
    message->attributes = sp_otlp_attributes(arena, scope->attributes, scope->attribute_count);
    return message->attributes ? message : NULL;
}

ProtobufCBinaryData sp_otlp_id(const uint8_t *id, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (id[i])
            return (ProtobufCBinaryData){.data = (uint8_t *)id, .len = count};
    }
    return (ProtobufCBinaryData){0};
}

void sp_otlp_put_tree(sp_wire *wire, unsigned field, const ProtobufCMessage *message)
{
    size_t bytes = message ? protobuf_c_message_get_packed_size(message) : 0;
    uint8_t *end = message ? sp_wire_room(wire, bytes + SP_WIRE_FIELD_MAX) : NULL;
    if (!message)
        wire->failed = true;
    if (!end)
        return;
    protobuf_c_message_pack(message, end - bytes);
    sp_wire_set(wire, sp_wire_head(end - bytes, field, end));
}

static bool append_protobuf(sp_buffer *out, const ProtobufCMessage *message)
{
    size_t bytes = protobuf_c_message_get_packed_size(message);
    uint8_t *end = sp_buffer_reserve(out, bytes);
    if (!end)
        return false;
    protobuf_c_message_pack(message, end);
    end[bytes] = 0;
    out->length += bytes;
    return true;
}

bool sp_otlp_append(sp_buffer *out, sp_otlp_format format, const ProtobufCMessage *message)
{
    return format == SP_OTLP_PROTOBUF ? append_protobuf(out, message)
                                      : sp_otlp_json_write(out, message);
}
