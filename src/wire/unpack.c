/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/unpack.h"

#include "wire/json.h"

/* A place in the bytes of one message. */
typedef struct wire_reader {
    const uint8_t *next;
    const uint8_t *end;
} wire_reader;

enum { WIRE_VARINT = 0, WIRE_64 = 1, WIRE_BYTES = 2, WIRE_32 = 5 };

static bool read_varint(wire_reader *reader, uint64_t *out)
{
    *out = 0;
    for (unsigned shift = 0; shift < 64 && reader->next < reader->end; shift += 7) {
        uint8_t byte = *reader->next++;
        *out |= (uint64_t)(byte & 127) << shift;
        if (byte < 128)
            return true;
    }
    return false;
}

static bool skip(wire_reader *reader, uint64_t bytes)
{
    if (bytes > (uint64_t)(reader->end - reader->next))
        return false;
    reader->next += bytes;
    return true;
}

static const ProtobufCMessageDescriptor *message_type(const ProtobufCMessageDescriptor *type,
                                                      uint64_t number)
{
    if (number > UINT32_MAX)
        return NULL;
    const ProtobufCFieldDescriptor *field =
        protobuf_c_message_descriptor_get_field(type, (unsigned)number);
    return field && field->type == PROTOBUF_C_TYPE_MESSAGE ? field->descriptor : NULL;
}

static bool nesting_is_fine(const ProtobufCMessageDescriptor *type, wire_reader reader,
                            unsigned depth);

/* Check the value after a tag of WIRE_BYTES, and its content when the field is a message. */
static bool check_bytes(const ProtobufCMessageDescriptor *type, wire_reader *reader,
                        uint64_t number, unsigned depth)
{
    uint64_t length;
    if (!read_varint(reader, &length))
        return false;
    wire_reader inner = {.next = reader->next};
    if (!skip(reader, length))
        return false;
    inner.end = reader->next;
    const ProtobufCMessageDescriptor *inner_type = message_type(type, number);
    return !inner_type || nesting_is_fine(inner_type, inner, depth + 1);
}

/* False also for bytes that are no message at all, which protobuf-c would refuse as well. */
static bool nesting_is_fine(const ProtobufCMessageDescriptor *type, wire_reader reader,
                            unsigned depth)
{
    if (depth >= SP_OTLP_MAX_DEPTH)
        return false;
    while (reader.next < reader.end) {
        uint64_t tag, ignored;
        if (!read_varint(&reader, &tag) || tag >> 3 == 0) /* no field has the number 0 */
            return false;
        bool fine = false;
        switch (tag & 7) {
        case WIRE_VARINT:
            fine = read_varint(&reader, &ignored);
            break;
        case WIRE_64:
            fine = skip(&reader, 8);
            break;
        case WIRE_BYTES:
            fine = check_bytes(type, &reader, tag >> 3, depth);
            break;
        case WIRE_32:
            fine = skip(&reader, 4);
            break;
        }
        if (!fine)
            return false;
    }
    return true;
}

ProtobufCMessage *sp_otlp_unpack(const ProtobufCMessageDescriptor *type, const void *data,
                                 size_t length)
{
    const uint8_t *begin = length ? data : (const uint8_t *)""; /* DATA may be NULL then */
    wire_reader reader = {.next = begin, .end = begin + length};
    if (!nesting_is_fine(type, reader, 0))
        return NULL;
    return protobuf_c_message_unpack(type, NULL, length, data);
}
