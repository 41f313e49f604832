/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/process_context_message.h"

#include <string.h>

#include "core/compiler.h"
#include "proto/process_context.pb-c.h"
#include "wire/message_tree.h"

/* The most bytes of tags and lengths: of both fields of the message, and of a list inside an
 * attribute's value. */
enum { FRAMES = 64 };

static bool is_identity(const char *key)
{
    static const char *const identity[] = {
        "service.name",           "service.instance.id",         "service.namespace",
        "service.version",        "deployment.environment.name", "telemetry.sdk.name",
        "telemetry.sdk.language", "telemetry.sdk.version",
    };
    for (size_t i = 0; i < SP_ARRAY_LENGTH(identity); i++)
        if (strcmp(key, identity[i]) == 0)
            return true;
    return false;
}

/* Bytes that MESSAGE takes as an element of a repeated field: a length up to the maximum has three
 * bytes. */
static size_t element_bytes(const ProtobufCMessage *message)
{
    return protobuf_c_message_get_packed_size(message) + 1 + 3;
}

static bool fits(size_t *used_bytes, const ProtobufCMessage *message)
{
    size_t bytes = element_bytes(message);
    if (*used_bytes + bytes > SP_PROCESS_CONTEXT_BYTES)
        return false;
    *used_bytes += bytes;
    return true;
}

/* Keep the attributes that fit beside USED_BYTES, in their order. Those that identify the service
 * get their room first. Returns how many are left out. */
static uint32_t cut_resource(sp_arena *arena, Sp__Resource__Resource *resource, size_t used_bytes)
{
    size_t count = resource->n_attributes, kept = 0;
    bool *keeps = sp_arena_array(arena, count, sizeof *keeps);
    if (!keeps)
        return 0;
    for (int identity = 1; identity >= 0; identity--)
        for (size_t i = 0; i < count; i++)
            if (is_identity(resource->attributes[i]->key) == identity)
                keeps[i] = fits(&used_bytes, &resource->attributes[i]->base);
    for (size_t i = 0; i < count; i++)
        if (keeps[i])
            resource->attributes[kept++] = resource->attributes[i];
    resource->n_attributes = kept;
    return (uint32_t)(count - kept);
}

/* Keep the names that fit. They have precedence, because a record's attributes mean nothing without
 * them, but they leave half of the room to the resource. Returns how many are left out. */
static uint32_t cut_keys(Sp__Common__ArrayValue *list, size_t *used_bytes)
{
    size_t count = list->n_values, kept = 0, bytes = 0;
    while (kept < count && kept < SP_THREADLOCAL_KEYS &&
           (bytes += element_bytes(&list->values[kept]->base)) <= SP_PROCESS_CONTEXT_BYTES / 2) {
        *used_bytes += element_bytes(&list->values[kept]->base);
        kept++;
    }
    list->n_values = kept;
    return (uint32_t)(count - kept);
}

static Sp__Common__KeyValue **thread_local_attributes(sp_arena *arena, const char *const *keys,
                                                      uint32_t key_count)
{
    spanprof_attribute attributes[] = {
        {.key = "threadlocal.schema_version",
         .type = SPANPROF_ATTRIBUTE_STRING,
         .value.string_value = SP_THREADLOCAL_SCHEMA_VERSION},
        {.key = "threadlocal.attribute_key_map",
         .type = SPANPROF_ATTRIBUTE_STRING_ARRAY,
         .count = key_count,
         .value.string_array = keys},
    };
    return sp_otlp_attributes(arena, attributes, SP_ARRAY_LENGTH(attributes));
}

static bool append(sp_arena *arena, sp_buffer *out, const sp_resource *resource,
                   const char *const *keys, uint32_t key_count, uint32_t *left_out)
{
    Sp__ProcessContext__ProcessContext message = SP__PROCESS_CONTEXT__PROCESS_CONTEXT__INIT;
    message.resource = sp_otlp_resource(arena, resource);
    message.attributes = thread_local_attributes(arena, keys, key_count);
    if (!message.resource || !message.attributes)
        return false;
    message.n_attributes = 2;
    size_t used_bytes =
        FRAMES + element_bytes(&message.attributes[0]->base) + strlen(message.attributes[1]->key);
    *left_out = cut_keys(message.attributes[1]->value->array_value, &used_bytes);
    *left_out += cut_resource(arena, message.resource, used_bytes);
    return !arena->failed && sp_otlp_append(out, SP_OTLP_PROTOBUF, &message.base);
}

bool sp_otlp_encode_process_context(sp_buffer *out, const sp_resource *resource,
                                    const char *const *keys, uint32_t key_count, uint32_t *left_out)
{
    sp_arena arena = {0};
    bool done = append(&arena, out, resource, keys, key_count, left_out);
    sp_arena_deinit(&arena);
    return done;
}
