/* SPDX-License-Identifier: Apache-2.0 */
/* Checks protobuf bytes without unpacking them: are they a message of a given type, and if not,
 * where is the mistake? protobuf-c's own unpack only fails. */
#ifndef SP_TOOL_READ_WIRE_H
#define SP_TOOL_READ_WIRE_H

#include <stdbool.h>
#include <protobuf-c/protobuf-c.h>

typedef enum sp_wire_result {
    SP_WIRE_FINE = 0,
    SP_WIRE_CUT = 1, /* no mistake, but the data ends before the end of the message */
    SP_WIRE_BAD = 2,
} sp_wire_result;

typedef struct sp_wire_report {
    sp_wire_result result;
    size_t position;        /* of the first mistake, or where the data is cut */
    const char *problem;    /* what is bad; static */
    uint64_t fields;        /* how many known fields there are, on all levels */
    uint64_t unknown;       /* how many unknown fields there are, on all levels */
    uint32_t top_level_set; /* bit n: field number n (1 to 31) is there, known or not; bit 0: a
                               field number above 31 is there */
    bool in_parts;          /* a top-level field that holds one message is there several times */
    uint64_t memory_bytes;  /* an estimate of what the unpacked message takes */
} sp_wire_report;

/* The END of a message that has no length: it ends where the data ends. */
#define SP_WIRE_TO_THE_END UINT64_MAX

/* Check bytes [START, END) of DATA as a message of TYPE. DATA has LENGTH bytes; if END is larger,
 * the message is cut. */
sp_wire_report sp_wire_check(const ProtobufCMessageDescriptor *type, const uint8_t *data,
                             size_t start, uint64_t end, size_t length);

/* Read the varint at DATA[*POSITION] into *OUT and move *POSITION to the byte after it. Returns
 * false when the varint is cut (then *POSITION is LENGTH) or longer than 10 bytes. */
bool sp_wire_varint_long(const uint8_t *data, size_t length, size_t *position, uint64_t *out);

/* The same, fast for a varint of one byte, as most are. */
static inline bool sp_wire_varint(const uint8_t *data, size_t length, size_t *position,
                                  uint64_t *out)
{
    if (*position >= length || data[*position] >= 128)
        return sp_wire_varint_long(data, length, position, out);
    *out = data[(*position)++];
    return true;
}

/* Wire types. */
enum { SP_WIRE_VARINT = 0, SP_WIRE_64 = 1, SP_WIRE_BYTES = 2, SP_WIRE_32 = 5 };
/* The largest field number of protobuf. */
#define SP_WIRE_LAST_FIELD 536870911

/* The wire type of a value of TYPE that is not packed. */
static inline unsigned sp_wire_type_of(ProtobufCType type)
{
    static const uint8_t types[] = {
        [PROTOBUF_C_TYPE_INT32] = SP_WIRE_VARINT,  [PROTOBUF_C_TYPE_SINT32] = SP_WIRE_VARINT,
        [PROTOBUF_C_TYPE_SFIXED32] = SP_WIRE_32,   [PROTOBUF_C_TYPE_INT64] = SP_WIRE_VARINT,
        [PROTOBUF_C_TYPE_SINT64] = SP_WIRE_VARINT, [PROTOBUF_C_TYPE_SFIXED64] = SP_WIRE_64,
        [PROTOBUF_C_TYPE_UINT32] = SP_WIRE_VARINT, [PROTOBUF_C_TYPE_FIXED32] = SP_WIRE_32,
        [PROTOBUF_C_TYPE_UINT64] = SP_WIRE_VARINT, [PROTOBUF_C_TYPE_FIXED64] = SP_WIRE_64,
        [PROTOBUF_C_TYPE_FLOAT] = SP_WIRE_32,      [PROTOBUF_C_TYPE_DOUBLE] = SP_WIRE_64,
        [PROTOBUF_C_TYPE_BOOL] = SP_WIRE_VARINT,   [PROTOBUF_C_TYPE_ENUM] = SP_WIRE_VARINT,
        [PROTOBUF_C_TYPE_STRING] = SP_WIRE_BYTES,  [PROTOBUF_C_TYPE_BYTES] = SP_WIRE_BYTES,
        [PROTOBUF_C_TYPE_MESSAGE] = SP_WIRE_BYTES,
    };
    return types[type];
}

/* Whether FIELD may be written with WIRE_TYPE: repeated numbers may be packed. */
static inline bool sp_wire_fits(const ProtobufCFieldDescriptor *field, unsigned wire_type)
{
    unsigned own = sp_wire_type_of(field->type);
    return own == wire_type || (wire_type == SP_WIRE_BYTES && own != SP_WIRE_BYTES &&
                                field->label == PROTOBUF_C_LABEL_REPEATED);
}

/* The field NUMBER of TYPE; NULL: there is none. Most of our types number their fields from 1
 * without a gap, so the field is first looked for at that index. */
static inline const ProtobufCFieldDescriptor *sp_wire_field(const ProtobufCMessageDescriptor *type,
                                                            uint32_t number)
{
    if (number - 1 < type->n_fields && type->fields[number - 1].id == number)
        return &type->fields[number - 1];
    return protobuf_c_message_descriptor_get_field(type, number);
}

#endif
