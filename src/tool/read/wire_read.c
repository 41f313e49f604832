/* SPDX-License-Identifier: Apache-2.0 */
/* A message with lists of messages, texts or bytes is read in two passes: the first counts the
 * elements of each list, the second fills the lists. Other messages, which are most of a recording,
 * are read in one pass. */
#include "tool/read/wire_read.h"

#include <string.h>

#include "tool/read/wire.h"
#include "wire/json.h"

/* No type of ours has more fields. The test golden/wire_read reads messages of all types. */
enum { MOST_FIELDS = 64 };

typedef struct wire_reader {
    sp_arena *memory;
    unsigned depth;      /* of the message that is being read */
    bool allows_unknown; /* accept fields that the type does not know */
    bool always_counts;  /* read all messages in two passes */
    bool needs_counts;   /* found a message that cannot be read in one pass */
    bool is_refused;     /* the bytes are no message of the type, or have unknown fields that
                            allows_unknown does not accept */
} wire_reader;

/* One field of the bytes. */
typedef struct wire_field {
    const ProtobufCFieldDescriptor *field; /* NULL: the type does not know it */
    uint32_t number;
    unsigned wire_type;
    const uint8_t *raw; /* everything after the tag: raw_length bytes */
    size_t raw_length;
    uint64_t value;       /* of a number that is not packed */
    const uint8_t *bytes; /* the content of SP_WIRE_BYTES: LENGTH bytes */
    size_t length;
} wire_field;

/* How many values one message has of each field. */
typedef struct field_counts {
    size_t known[MOST_FIELDS];
    bool is_split[MOST_FIELDS]; /* the field is a single message in several parts */
    size_t unknown;
} field_counts;

/* ---- fields of the bytes ---- */

static uint64_t little_endian(const uint8_t *data, unsigned count)
{
    uint64_t value = 0;
    for (unsigned i = 0; i < count; i++)
        value |= (uint64_t)data[i] << 8 * i;
    return value;
}

static bool take_value(wire_field *out, const uint8_t *data, size_t length, size_t *position)
{
    size_t start = *position, fixed = out->wire_type == SP_WIRE_64 ? 8 : 4;
    if (out->wire_type == SP_WIRE_VARINT || out->wire_type == SP_WIRE_BYTES) {
        if (!sp_wire_varint(data, length, position, &out->value))
            return false;
        fixed = out->wire_type == SP_WIRE_BYTES ? out->value : 0;
    }
    if (fixed > length - *position)
        return false;
    out->bytes = data + *position;
    out->length = fixed;
    if (out->wire_type == SP_WIRE_64 || out->wire_type == SP_WIRE_32)
        out->value = little_endian(out->bytes, (unsigned)fixed);
    *position += fixed;
    out->raw = data + start;
    out->raw_length = *position - start;
    return true;
}

static bool is_wire_type(unsigned type)
{
    return type <= SP_WIRE_BYTES || type == SP_WIRE_32;
}

static bool take_field(const wire_reader *reader, const ProtobufCMessageDescriptor *type,
                       const uint8_t *data, size_t length, size_t *position, wire_field *out)
{
    uint64_t tag;
    if (!sp_wire_varint(data, length, position, &tag) || tag >> 3 == 0 ||
        tag >> 3 > SP_WIRE_LAST_FIELD)
        return false;
    out->number = (uint32_t)(tag >> 3);
    out->wire_type = tag & 7;
    out->field = sp_wire_field(type, out->number);
    bool is_allowed = out->field ? sp_wire_fits(out->field, out->wire_type)
                                 : reader->allows_unknown && is_wire_type(out->wire_type);
    return is_allowed && take_value(out, data, length, position);
}

/* Read the field at *POSITION into OUT and move *POSITION to the next one. Returns false at the
 * end, and when there is no valid field, with is_refused set. */
static inline bool next_field(wire_reader *reader, const ProtobufCMessageDescriptor *type,
                              const uint8_t *data, size_t length, size_t *position, wire_field *out)
{
    if (*position >= length)
        return false;
    if (take_field(reader, type, data, length, position, out))
        return true;
    reader->is_refused = true;
    return false;
}

/* ---- counting ---- */

/* How many bytes a packed value of TYPE has; 0: it is a varint. */
static unsigned packed_width(ProtobufCType type)
{
    switch (type) {
    case PROTOBUF_C_TYPE_SFIXED32:
    case PROTOBUF_C_TYPE_FIXED32:
    case PROTOBUF_C_TYPE_FLOAT:
        return 4;
    case PROTOBUF_C_TYPE_SFIXED64:
    case PROTOBUF_C_TYPE_FIXED64:
    case PROTOBUF_C_TYPE_DOUBLE:
        return 8;
    default:
        return 0;
    }
}

static bool is_block(ProtobufCType type)
{
    return type == PROTOBUF_C_TYPE_STRING || type == PROTOBUF_C_TYPE_BYTES ||
           type == PROTOBUF_C_TYPE_MESSAGE;
}

static bool is_packed(const wire_field *at)
{
    return at->wire_type == SP_WIRE_BYTES && !is_block(at->field->type);
}

/* How many values AT holds. */
static size_t value_count(const wire_field *at)
{
    if (!is_packed(at))
        return 1;
    unsigned width = packed_width(at->field->type);
    if (width)
        return at->length / width;
    size_t count = 0;
    for (size_t i = 0; i < at->length; i++)
        count += at->bytes[i] < 128;
    return count;
}

static void count_fields(wire_reader *reader, const ProtobufCMessageDescriptor *type,
                         const uint8_t *data, size_t length, field_counts *counts)
{
    wire_field at;
    memset(counts->known, 0, type->n_fields * sizeof *counts->known);
    memset(counts->is_split, 0, type->n_fields * sizeof *counts->is_split);
    counts->unknown = 0;
    for (size_t position = 0; next_field(reader, type, data, length, &position, &at);) {
        if (at.field)
            counts->known[at.field - type->fields] += value_count(&at);
        else
            counts->unknown++;
    }
}

/* ---- values ---- */

static void *member_at(ProtobufCMessage *message, unsigned offset)
{
    return (unsigned char *)message + offset;
}

static int64_t without_zigzag(uint64_t value)
{
    return (int64_t)(value >> 1) ^ -(int64_t)(value & 1);
}

static void put_number(ProtobufCType type, uint64_t value, void *member)
{
    switch (type) {
    case PROTOBUF_C_TYPE_SINT32:
        *(int32_t *)member = (int32_t)without_zigzag((uint32_t)value);
        break;
    case PROTOBUF_C_TYPE_SINT64:
        *(int64_t *)member = without_zigzag(value);
        break;
    case PROTOBUF_C_TYPE_BOOL:
        *(protobuf_c_boolean *)member = value != 0;
        break;
    default:
        if (sp_otlp_json_value_size(type) == 4)
            memcpy(member, &(uint32_t){(uint32_t)value}, 4);
        else
            memcpy(member, &value, 8);
    }
}

static bool put_string(sp_arena *memory, const wire_field *at, char **member)
{
    *member = sp_arena_strndup(memory, (const char *)at->bytes, at->length);
    return *member != NULL;
}

static bool put_bytes(sp_arena *memory, const wire_field *at, ProtobufCBinaryData *member)
{
    member->len = at->length;
    member->data = at->length ? sp_arena_memdup(memory, at->bytes, at->length) : NULL;
    return member->data || !at->length;
}

static ProtobufCMessage *read_message(wire_reader *reader, const ProtobufCMessageDescriptor *type,
                                      const uint8_t *data, size_t length);

static bool put_value(wire_reader *reader, const wire_field *at, void *member)
{
    switch (at->field->type) {
    case PROTOBUF_C_TYPE_STRING:
        return put_string(reader->memory, at, member);
    case PROTOBUF_C_TYPE_BYTES:
        return put_bytes(reader->memory, at, member);
    case PROTOBUF_C_TYPE_MESSAGE:
        *(ProtobufCMessage **)member =
            read_message(reader, at->field->descriptor, at->bytes, at->length);
        return *(ProtobufCMessage **)member != NULL;
    default:
        put_number(at->field->type, at->value, member);
        return true;
    }
}

static void put_packed(const wire_field *at, unsigned char *values, size_t *count)
{
    size_t size = sp_otlp_json_value_size(at->field->type);
    unsigned width = packed_width(at->field->type);
    for (size_t position = 0; position + width <= at->length && position < at->length; ++*count) {
        uint64_t value = width ? little_endian(at->bytes + position, width) : 0;
        position += width;
        if (!width && !sp_wire_varint(at->bytes, at->length, &position, &value))
            return;
        put_number(at->field->type, value, values + *count * size);
    }
}

/* ---- messages ---- */

/* Append what AT holds, one value or packed values, to its list. The list has room. */
static bool put_element(wire_reader *reader, const wire_field *at, ProtobufCMessage *message)
{
    unsigned char *values = *(unsigned char **)member_at(message, at->field->offset);
    size_t *count = member_at(message, at->field->quantifier_offset);
    if (is_packed(at)) {
        put_packed(at, values, count);
        return true;
    }
    return put_value(reader, at, values + (*count)++ * sp_otlp_json_value_size(at->field->type));
}

static bool excludes(const ProtobufCFieldDescriptor *a, const ProtobufCFieldDescriptor *b)
{
    return a && b && a != b && (a->flags & b->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) &&
           a->quantifier_offset == b->quantifier_offset;
}

/* Let AT hold all parts of its message, joined: by protobuf's rules a message that comes in several
 * parts is the concatenation of their bytes. For a member of a oneof, only the parts after the last
 * other member of the oneof count. */
static bool join_parts(wire_reader *reader, const ProtobufCMessageDescriptor *type,
                       const uint8_t *data, size_t length, wire_field *at)
{
    uint8_t *joined = sp_arena_take(reader->memory, length);
    wire_field part;
    at->length = 0;
    at->bytes = joined;
    for (size_t position = 0; joined && next_field(reader, type, data, length, &position, &part);) {
        if (excludes(part.field, at->field))
            at->length = 0;
        if (part.field != at->field)
            continue;
        memcpy(joined + at->length, part.bytes, part.length);
        at->length += part.length;
    }
    return joined != NULL;
}

static bool put_single(wire_reader *reader, const wire_field *at, ProtobufCMessage *message)
{
    bool done = put_value(reader, at, member_at(message, at->field->offset));
    if (at->field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF)
        *(uint32_t *)member_at(message, at->field->quantifier_offset) = at->field->id;
    return done;
}

static bool put_unknown(wire_reader *reader, const wire_field *at, ProtobufCMessage *message)
{
    ProtobufCMessageUnknownField *unknown = &message->unknown_fields[message->n_unknown_fields++];
    unknown->tag = at->number;
    unknown->wire_type = (ProtobufCWireType)at->wire_type;
    unknown->len = at->raw_length;
    unknown->data = sp_arena_memdup(reader->memory, at->raw, at->raw_length);
    return unknown->data != NULL;
}

static bool make_lists(wire_reader *reader, ProtobufCMessage *message, const field_counts *counts)
{
    const ProtobufCMessageDescriptor *type = message->descriptor;
    for (unsigned i = 0; i < type->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &type->fields[i];
        if (field->label != PROTOBUF_C_LABEL_REPEATED || !counts->known[i])
            continue;
        void *values =
            sp_arena_array(reader->memory, counts->known[i], sp_otlp_json_value_size(field->type));
        if (!values)
            return false;
        *(void **)member_at(message, field->offset) = values;
    }
    if (counts->unknown)
        message->unknown_fields =
            sp_arena_array(reader->memory, counts->unknown, sizeof *message->unknown_fields);
    return message->unknown_fields || !counts->unknown;
}

static bool put_field(wire_reader *reader, const wire_field *at, ProtobufCMessage *message)
{
    if (!at->field)
        return put_unknown(reader, at, message);
    return at->field->label == PROTOBUF_C_LABEL_REPEATED ? put_element(reader, at, message)
                                                         : put_single(reader, at, message);
}

/* A single message that comes in several parts is read at its last part. *IS_PART: AT is an earlier
 * part, to be skipped. Subtracts AT from the parts that COUNTS has left. */
static bool take_part(wire_reader *reader, const ProtobufCMessageDescriptor *type,
                      const uint8_t *data, size_t length, field_counts *counts, wire_field *at,
                      bool *is_part)
{
    *is_part = false;
    if (!at->field || at->field->type != PROTOBUF_C_TYPE_MESSAGE ||
        at->field->label == PROTOBUF_C_LABEL_REPEATED)
        return true;
    size_t *left = &counts->known[at->field - type->fields];
    bool *is_split = &counts->is_split[at->field - type->fields];
    *is_split = *is_split || *left > 1;
    *is_part = --*left > 0;
    return *is_part || !*is_split || join_parts(reader, type, data, length, at);
}

static bool fill(wire_reader *reader, ProtobufCMessage *message, const uint8_t *data, size_t length,
                 field_counts *counts)
{
    const ProtobufCMessageDescriptor *type = message->descriptor;
    wire_field at;
    for (size_t position = 0; next_field(reader, type, data, length, &position, &at);) {
        bool is_part;
        if (!take_part(reader, type, data, length, counts, &at, &is_part))
            return false;
        if (!is_part && !put_field(reader, &at, message))
            return false;
    }
    return true;
}

static ProtobufCMessage *new_message(wire_reader *reader, const ProtobufCMessageDescriptor *type)
{
    ProtobufCMessage *message = sp_arena_take(reader->memory, type->sizeof_message);
    if (message)
        protobuf_c_message_init(type, message);
    return message;
}

/* Read a message in two passes. */
static ProtobufCMessage *read_counted(wire_reader *reader, const ProtobufCMessageDescriptor *type,
                                      const uint8_t *data, size_t length)
{
    field_counts counts;
    count_fields(reader, type, data, length, &counts);
    ProtobufCMessage *message = reader->is_refused ? NULL : new_message(reader, type);
    bool done = message && make_lists(reader, message, &counts) &&
                fill(reader, message, data, length, &counts);
    return done ? message : NULL;
}

/* ---- messages without lists of messages or texts ---- */

static bool is_plain(const ProtobufCMessageDescriptor *type)
{
    for (unsigned i = 0; i < type->n_fields; i++)
        if (type->fields[i].label == PROTOBUF_C_LABEL_REPEATED && is_block(type->fields[i].type))
            return false;
    return true;
}

/* Whether AT is a further part of a single message that MESSAGE already has a part of. */
static bool is_second_part(const wire_field *at, ProtobufCMessage *message)
{
    if (at->field->type != PROTOBUF_C_TYPE_MESSAGE)
        return false;
    if (at->field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF)
        return *(uint32_t *)member_at(message, at->field->quantifier_offset) == at->field->id;
    return *(ProtobufCMessage **)member_at(message, at->field->offset) != NULL;
}

/* Store a list whose values are all packed in AT. */
static bool put_whole_list(wire_reader *reader, const wire_field *at, ProtobufCMessage *message)
{
    void **list = member_at(message, at->field->offset);
    size_t *count = member_at(message, at->field->quantifier_offset);
    size_t values = value_count(at);
    if (values == 0)
        return true;
    *list = sp_arena_take(reader->memory, values * sp_otlp_json_value_size(at->field->type));
    if (*list)
        put_packed(at, *list, count);
    return *list != NULL;
}

/* Whether MESSAGE needs two passes because of AT: the field is unknown, a list's values are not
 * packed in one field, or a message comes in several parts. */
static bool needs_two_passes(const wire_field *at, ProtobufCMessage *message)
{
    if (!at->field)
        return true;
    if (at->field->label == PROTOBUF_C_LABEL_REPEATED)
        return !is_packed(at) || *(void **)member_at(message, at->field->offset);
    return is_second_part(at, message);
}

static bool put_plain(wire_reader *reader, const wire_field *at, ProtobufCMessage *message)
{
    if (needs_two_passes(at, message)) {
        reader->needs_counts = true;
        return false;
    }
    return at->field->label == PROTOBUF_C_LABEL_REPEATED ? put_whole_list(reader, at, message)
                                                         : put_single(reader, at, message);
}

static ProtobufCMessage *read_plain(wire_reader *reader, const ProtobufCMessageDescriptor *type,
                                    const uint8_t *data, size_t length)
{
    ProtobufCMessage *message = new_message(reader, type);
    wire_field at;
    for (size_t position = 0; message && next_field(reader, type, data, length, &position, &at);)
        if (!put_plain(reader, &at, message))
            return NULL;
    return reader->is_refused ? NULL : message;
}

static ProtobufCMessage *read_message(wire_reader *reader, const ProtobufCMessageDescriptor *type,
                                      const uint8_t *data, size_t length)
{
    reader->is_refused = reader->is_refused || reader->depth >= SP_OTLP_MAX_DEPTH;
    if (reader->is_refused || type->n_fields > MOST_FIELDS)
        return NULL;
    reader->depth++;
    ProtobufCMessage *message = !reader->always_counts && is_plain(type)
                                    ? read_plain(reader, type, data, length)
                                    : read_counted(reader, type, data, length);
    reader->depth--;
    return message;
}

/* When one message needs two passes, everything is read again in two passes. If each such message
 * were read again by itself, messages in several parts on each level would be read 2^depth times.
 */
static ProtobufCMessage *read_all(wire_reader *reader, const ProtobufCMessageDescriptor *type,
                                  const uint8_t *data, size_t length)
{
    sp_arena_mark mark = sp_arena_get_mark(reader->memory);
    ProtobufCMessage *message = read_message(reader, type, data, length);
    if (!reader->needs_counts)
        return message;
    sp_arena_go_back(reader->memory, mark);
    *reader = (wire_reader){
        .memory = reader->memory, .allows_unknown = reader->allows_unknown, .always_counts = true};
    return read_message(reader, type, data, length);
}

ProtobufCMessage *sp_wire_read(sp_arena *memory, const ProtobufCMessageDescriptor *type,
                               const uint8_t *data, size_t length)
{
    wire_reader reader = {.memory = memory, .allows_unknown = true};
    return read_all(&reader, type, data, length);
}

bool sp_wire_try_read(sp_arena *memory, const ProtobufCMessageDescriptor *type, const uint8_t *data,
                      size_t length, ProtobufCMessage **out)
{
    wire_reader reader = {.memory = memory};
    *out = read_all(&reader, type, data, length);
    return !reader.is_refused;
}
