/* SPDX-License-Identifier: Apache-2.0 */
/* Looking at protobuf bytes without unpacking them: whether they are a message of some type, and if
 * not, where they stop being one. protobuf-c's own unpack only fails. */
#ifndef SP_TOOL_READ_WIRE_H
#define SP_TOOL_READ_WIRE_H

#include <stdbool.h>
#include <protobuf-c/protobuf-c.h>

typedef enum sp_wire_result {
    SP_WIRE_FINE = 0,
    SP_WIRE_CUT = 1, /* good as far as it goes, but the data ends before the message does */
    SP_WIRE_BAD = 2,
} sp_wire_result;

typedef struct sp_wire_report {
    sp_wire_result result;
    size_t position;        /* where it became cut or bad */
    const char *problem;    /* what is bad; static */
    uint64_t fields;        /* known ones seen */
    uint64_t unknown;       /* unknown ones seen, on any level */
    uint32_t top_level_set; /* bit n: field number n (up to 31) is there, known or not; bit 0: any
                               above 31 */
    bool in_parts;          /* a single message of the top level comes several times */
    uint64_t memory_bytes;  /* about what the unpacked message will take */
} sp_wire_report;

/* The end of a message whose own length nothing tells. */
#define SP_WIRE_TO_THE_END UINT64_MAX

/* Look at bytes [START, END) of DATA, of which only those below LENGTH exist (END may lie beyond),
 * as a message of TYPE. */
sp_wire_report sp_wire_look(const ProtobufCMessageDescriptor *type, const uint8_t *data,
                            size_t start, uint64_t end, size_t length);

/* The varint at DATA[*POSITION], and *POSITION behind it. False when it is cut (*POSITION is LENGTH
 * then) or longer than 10 bytes. */
bool sp_wire_varint_long(const uint8_t *data, size_t length, size_t *position, uint64_t *out);

/* Most varints are of one byte. */
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
/* The largest number that a field may have. */
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

/* Most types of ours number their fields from 1 without a gap. NULL: TYPE does not have it. */
static inline const ProtobufCFieldDescriptor *sp_wire_field(const ProtobufCMessageDescriptor *type,
                                                            uint32_t number)
{
    if (number - 1 < type->n_fields && type->fields[number - 1].id == number)
        return &type->fields[number - 1];
    return protobuf_c_message_descriptor_get_field(type, number);
}

#endif
