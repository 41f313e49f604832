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

/* Most types of ours number their fields from 1 without a gap. NULL: TYPE does not have it. */
static inline const ProtobufCFieldDescriptor *sp_wire_field(const ProtobufCMessageDescriptor *type,
                                                            uint32_t number)
{
    if (number - 1 < type->n_fields && type->fields[number - 1].id == number)
        return &type->fields[number - 1];
    return protobuf_c_message_descriptor_get_field(type, number);
}

#endif
