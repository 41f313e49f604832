/* SPDX-License-Identifier: Apache-2.0 */
#include "otlp/internal.h"

#include "otlp/json.h"

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

void sp_otlp_value_set(Sp__Common__AnyValue *value, const spanprof_attribute *attribute)
{
    switch (attribute->type) {
    case SPANPROF_ATTRIBUTE_STRING:
        value->value_case = SP__COMMON__ANY_VALUE__VALUE_STRING_VALUE;
        value->string_value =
            (char *)(attribute->value.string_value ? attribute->value.string_value : "");
        break;
    case SPANPROF_ATTRIBUTE_INT:
        value->value_case = SP__COMMON__ANY_VALUE__VALUE_INT_VALUE;
        value->int_value = attribute->value.int_value;
        break;
    case SPANPROF_ATTRIBUTE_DOUBLE:
        value->value_case = SP__COMMON__ANY_VALUE__VALUE_DOUBLE_VALUE;
        value->double_value = attribute->value.double_value;
        break;
    case SPANPROF_ATTRIBUTE_BOOL:
        value->value_case = SP__COMMON__ANY_VALUE__VALUE_BOOL_VALUE;
        value->bool_value = attribute->value.bool_value;
        break;
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
        sp_otlp_value_set(values[i], &attributes[i]);
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

Sp__Common__InstrumentationScope *sp_otlp_scope(sp_arena *arena, const char *name,
                                                const char *version)
{
    Sp__Common__InstrumentationScope *scope =
        sp_otlp_message(arena, &sp__common__instrumentation_scope__descriptor);
    if (!scope)
        return NULL;
    scope->name = (char *)name;
    scope->version = (char *)version;
    return scope;
}

ProtobufCBinaryData sp_otlp_id(const uint8_t *id, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (id[i])
            return (ProtobufCBinaryData){.data = (uint8_t *)id, .len = count};
    }
    return (ProtobufCBinaryData){0};
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
    if (format == SP_OTLP_PROTOBUF)
        return append_protobuf(out, message);
    return sp_otlp_json_write(out, message);
}
