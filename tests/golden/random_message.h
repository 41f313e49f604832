/* SPDX-License-Identifier: Apache-2.0 */
/* Random messages of any type, made from the descriptor as protobuf_c_message_free_unpacked wants
 * them, so that a round trip visits every field of every message. A seed gives the same message
 * always. */
#ifndef RANDOM_MESSAGE_H
#define RANDOM_MESSAGE_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <protobuf-c/protobuf-c.h>

#include "wire/json.h"

typedef struct random_source {
    uint64_t state;
} random_source;

/* xorshift64*, good enough to pick test values. */
static uint64_t random_u64(random_source *random)
{
    random->state ^= random->state >> 12;
    random->state ^= random->state << 25;
    random->state ^= random->state >> 27;
    return random->state * UINT64_C(2685821657736338717);
}

/* Numbers at the edges as often as others. */
static uint64_t random_number(random_source *random)
{
    static const uint64_t edges[] = {1, 127, 128, INT32_MAX, UINT32_MAX, INT64_MAX, UINT64_MAX};
    uint64_t pick = random_u64(random) % 14;
    return pick < 7 ? edges[pick] : random_u64(random) >> (random_u64(random) % 64);
}

static double random_double(random_source *random)
{
    static const double values[] = {0.1, -1.5, 1e300, 5e-324, 3, 1.0 / 3, 9007199254740993.0, 1e22};
    return values[random_u64(random) % 8];
}

static char *random_string(random_source *random)
{
    static const char *const values[] = {"a",
                                         "quote \" backslash \\ slash /",
                                         "tab\tline\n\x01\x1f",
                                         "\xc3\xa9 \xe2\x82\xac \xf0\x9f\x94\xa5",
                                         "\x7f",
                                         ""};
    return strdup(values[random_u64(random) % 6]);
}

static ProtobufCBinaryData random_bytes(random_source *random)
{
    size_t length = random_u64(random) % 20;
    if (length == 0)
        return (ProtobufCBinaryData){0};
    ProtobufCBinaryData bytes = {.len = length, .data = malloc(length)};
    for (size_t i = 0; i < length; i++)
        bytes.data[i] = (uint8_t)random_u64(random);
    return bytes;
}

static ProtobufCMessage *random_message(random_source *random,
                                        const ProtobufCMessageDescriptor *type, unsigned depth);

static void random_value(random_source *random, const ProtobufCFieldDescriptor *field, void *member,
                         unsigned depth)
{
    uint64_t number = random_number(random);
    double real = random_double(random);
    float short_real = (float)(real > 1e30 ? 1e30 : real);
    switch (field->type) {
    case PROTOBUF_C_TYPE_STRING:
        *(char **)member = random_string(random);
        break;
    case PROTOBUF_C_TYPE_BYTES:
        *(ProtobufCBinaryData *)member = random_bytes(random);
        break;
    case PROTOBUF_C_TYPE_MESSAGE:
        *(ProtobufCMessage **)member = random_message(random, field->descriptor, depth + 1);
        break;
    case PROTOBUF_C_TYPE_BOOL:
        *(protobuf_c_boolean *)member = number & 1;
        break;
    case PROTOBUF_C_TYPE_DOUBLE:
        memcpy(member, &real, sizeof real);
        break;
    case PROTOBUF_C_TYPE_FLOAT:
        memcpy(member, &short_real, sizeof short_real);
        break;
    default: /* integers, low bytes first */
        memcpy(member, &number, sp_otlp_json_value_size(field->type));
        break;
    }
}

static void random_field(random_source *random, const ProtobufCFieldDescriptor *field,
                         ProtobufCMessage *message, unsigned depth)
{
    unsigned char *base = (unsigned char *)message;
    if (field->label == PROTOBUF_C_LABEL_REPEATED) {
        size_t count = random_u64(random) % 4;
        size_t size = sp_otlp_json_value_size(field->type);
        unsigned char *values = count ? calloc(count, size) : NULL;
        for (size_t i = 0; i < count; i++)
            random_value(random, field, values + i * size, depth);
        *(void **)(base + field->offset) = values;
        *(size_t *)(base + field->quantifier_offset) = count;
        return;
    }
    if (field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) {
        uint32_t *chosen = (uint32_t *)(base + field->quantifier_offset);
        if (*chosen || random_u64(random) % 3)
            return;
        *chosen = field->id;
    }
    random_value(random, field, base + field->offset, depth);
}

/* Below a few levels only fields that are no messages are set, or AnyValue would never end. */
static ProtobufCMessage *random_message(random_source *random,
                                        const ProtobufCMessageDescriptor *type, unsigned depth)
{
    ProtobufCMessage *message = malloc(type->sizeof_message);
    protobuf_c_message_init(type, message);
    for (unsigned i = 0; i < type->n_fields; i++) {
        if (depth < 8 || type->fields[i].type != PROTOBUF_C_TYPE_MESSAGE)
            random_field(random, &type->fields[i], message, depth);
    }
    return message;
}

#endif
