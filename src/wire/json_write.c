/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/json.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base64.h"
#include "core/hex.h"
#include "core/utf8.h"

static void write_message(sp_buffer *out, const ProtobufCMessage *message, unsigned depth);

/* ---- text ---- */

static void write_escape(sp_buffer *out, unsigned char c)
{
    static const char letters[] = "\"\"\\\\\bb\ff\nn\rr\tt"; /* what is escaped, and its letter */
    for (const char *pair = letters; *pair; pair += 2) {
        if ((unsigned char)*pair == c) {
            sp_buffer_add(out, (char[]){'\\', pair[1]}, 2);
            return;
        }
    }
    sp_buffer_printf(out, "\\u%04x", c);
}

static bool is_plain(unsigned char c)
{
    return c >= 0x20 && c < 0x80 && c != '"' && c != '\\';
}

/* How many bytes at the start of TEXT may be copied as they are. */
static size_t plain_length(const char *text, size_t length)
{
    size_t i = 0;
    while (i < length) {
        size_t step = is_plain((unsigned char)text[i]) ? 1 : 0;
        if ((unsigned char)text[i] >= 0x80)
            step = sp_utf8_sequence(text + i, length - i);
        if (step == 0)
            break;
        i += step;
    }
    return i;
}

static void write_string(sp_buffer *out, const char *text)
{
    size_t length = strlen(text);
    sp_buffer_add_char(out, '"');
    while (length > 0) {
        size_t plain = plain_length(text, length);
        sp_buffer_add(out, text, plain);
        text += plain;
        length -= plain;
        if (length == 0)
            break;
        if ((unsigned char)*text >= 0x80)
            sp_buffer_add_string(out, "\xef\xbf\xbd");
        else
            write_escape(out, (unsigned char)*text);
        text++;
        length--;
    }
    sp_buffer_add_char(out, '"');
}

/* ---- bytes ---- */

static void write_hex(sp_buffer *out, const uint8_t *bytes, size_t count)
{
    char text[2 * 16 + 1]; /* room for a whole id */
    for (; count > 0; bytes += 16, count -= count < 16 ? count : 16) {
        size_t now = count < 16 ? count : 16;
        sp_hex_encode(text, bytes, now);
        sp_buffer_add(out, text, 2 * now);
    }
}

bool sp_otlp_json_is_id(const ProtobufCFieldDescriptor *field)
{
    size_t length = strlen(field->name);
    return length > 3 && memcmp(field->name + length - 3, "_id", 3) == 0;
}

static void write_bytes(sp_buffer *out, const ProtobufCFieldDescriptor *field,
                        const ProtobufCBinaryData *bytes)
{
    sp_buffer_add_char(out, '"');
    if (sp_otlp_json_is_id(field))
        write_hex(out, bytes->data, bytes->len);
    else
        sp_base64_add(out, bytes->data, bytes->len);
    sp_buffer_add_char(out, '"');
}

/* ---- numbers ---- */

/* Copy TEXT, which printf made, with its decimal point as ".", because the host may have set a
 * locale with another one, of one byte or several. */
static void write_real_text(sp_buffer *out, const char *text)
{
    bool in_point = false;
    for (; *text; text++) {
        bool number =
            (*text >= '0' && *text <= '9') || *text == '-' || *text == '+' || *text == 'e';
        if (number)
            sp_buffer_add_char(out, *text);
        else if (!in_point)
            sp_buffer_add_char(out, '.');
        in_point = !number;
    }
}

/* Write VALUE with the fewest digits, 15 or more (a float: 6), that read back as VALUE. */
static void write_real(sp_buffer *out, double value, bool is_float)
{
    if (isnan(value)) {
        sp_buffer_add_string(out, "\"NaN\"");
        return;
    }
    if (isinf(value)) {
        sp_buffer_add_string(out, value < 0 ? "\"-Infinity\"" : "\"Infinity\"");
        return;
    }
    char text[48];
    int most = is_float ? 9 : 17;
    for (int digits = is_float ? 6 : 15; digits <= most; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, value);
        double back = strtod(text, NULL);
        if (is_float ? (float)back == (float)value : back == value)
            break;
    }
    write_real_text(out, text);
}

/* Write VALUE in decimal in front of END; returns the place of its first digit. */
static char *put_digits(char *end, uint64_t value)
{
    do {
        *--end = (char)('0' + value % 10);
        value /= 10;
    } while (value);
    return end;
}

static void write_u64(sp_buffer *out, uint64_t value)
{
    char text[24], *end = text + sizeof text, *start = put_digits(end, value);
    sp_buffer_add(out, start, (size_t)(end - start));
}

static void write_i64(sp_buffer *out, int64_t value)
{
    if (value < 0)
        sp_buffer_add_char(out, '-');
    write_u64(out, value < 0 ? 0 - (uint64_t)value : (uint64_t)value);
}

/* ---- fields ---- */

static void write_quoted_u64(sp_buffer *out, uint64_t value)
{
    char text[24], *end = text + sizeof text, *start = end;
    *--start = '"';
    start = put_digits(start, value);
    *--start = '"';
    sp_buffer_add(out, start, (size_t)(end - start));
}

static void write_quoted_i64(sp_buffer *out, int64_t value)
{
    if (value >= 0) {
        write_quoted_u64(out, (uint64_t)value);
        return;
    }
    sp_buffer_add_char(out, '"');
    write_i64(out, value);
    sp_buffer_add_char(out, '"');
}

/* Write the value of FIELD's type at MEMBER. DEPTH is that of the message that contains it. */
static void write_value(sp_buffer *out, const ProtobufCFieldDescriptor *field, const void *member,
                        unsigned depth)
{
    switch (field->type) {
    case PROTOBUF_C_TYPE_INT32:
    case PROTOBUF_C_TYPE_SINT32:
    case PROTOBUF_C_TYPE_SFIXED32:
    case PROTOBUF_C_TYPE_ENUM:
        write_i64(out, *(const int32_t *)member);
        break;
    case PROTOBUF_C_TYPE_UINT32:
    case PROTOBUF_C_TYPE_FIXED32:
        write_u64(out, *(const uint32_t *)member);
        break;
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_SFIXED64:
        write_quoted_i64(out, *(const int64_t *)member);
        break;
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64:
        write_quoted_u64(out, *(const uint64_t *)member);
        break;
    case PROTOBUF_C_TYPE_FLOAT:
        write_real(out, (double)*(const float *)member, true);
        break;
    case PROTOBUF_C_TYPE_DOUBLE:
        write_real(out, *(const double *)member, false);
        break;
    case PROTOBUF_C_TYPE_BOOL:
        sp_buffer_add_string(out, *(const protobuf_c_boolean *)member ? "true" : "false");
        break;
    case PROTOBUF_C_TYPE_STRING: {
        const char *text = *(char *const *)member;
        write_string(out, text ? text : "");
        break;
    }
    case PROTOBUF_C_TYPE_BYTES:
        write_bytes(out, field, member);
        break;
    case PROTOBUF_C_TYPE_MESSAGE:
        write_message(out, *(ProtobufCMessage *const *)member, depth + 1);
        break;
    }
}

size_t sp_otlp_json_value_size(ProtobufCType type)
{
    switch (type) {
    case PROTOBUF_C_TYPE_BOOL:
        return sizeof(protobuf_c_boolean);
    case PROTOBUF_C_TYPE_INT32:
    case PROTOBUF_C_TYPE_SINT32:
    case PROTOBUF_C_TYPE_SFIXED32:
    case PROTOBUF_C_TYPE_UINT32:
    case PROTOBUF_C_TYPE_FIXED32:
    case PROTOBUF_C_TYPE_ENUM:
    case PROTOBUF_C_TYPE_FLOAT:
        return 4;
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_SFIXED64:
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64:
    case PROTOBUF_C_TYPE_DOUBLE:
        return 8;
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_MESSAGE:
        return sizeof(void *);
    case PROTOBUF_C_TYPE_BYTES:
        return sizeof(ProtobufCBinaryData);
    }
    return 0;
}

static const void *member_at(const ProtobufCMessage *message, unsigned offset)
{
    return (const unsigned char *)message + offset;
}

/* Whether a value is its type's zero. A double compares as a number, so that -0.0 is zero here as
 * it is to protobuf-c. */
static bool is_zero(const ProtobufCFieldDescriptor *field, const void *member)
{
    static const unsigned char zero[8];
    switch (field->type) {
    case PROTOBUF_C_TYPE_STRING: {
        const char *text = *(char *const *)member;
        return !text || !*text;
    }
    case PROTOBUF_C_TYPE_BYTES:
        return ((const ProtobufCBinaryData *)member)->len == 0;
    case PROTOBUF_C_TYPE_MESSAGE:
        return *(ProtobufCMessage *const *)member == NULL;
    case PROTOBUF_C_TYPE_FLOAT:
        return *(const float *)member == 0;
    case PROTOBUF_C_TYPE_DOUBLE:
        return *(const double *)member == 0;
    default:
        return memcmp(member, zero, sp_otlp_json_value_size(field->type)) == 0;
    }
}

/* Whether FIELD is written: a oneof member when it is the one that is set, others when they are not
 * zero. */
static bool is_present(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field)
{
    const void *member = member_at(message, field->offset);
    if (field->label == PROTOBUF_C_LABEL_REPEATED)
        return *(const size_t *)member_at(message, field->quantifier_offset) > 0;
    if (field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) {
        bool chosen = *(const uint32_t *)member_at(message, field->quantifier_offset) == field->id;
        return chosen && (field->type != PROTOBUF_C_TYPE_MESSAGE || !is_zero(field, member));
    }
    return !is_zero(field, member);
}

/* Write NAME as a key in lowerCamelCase: "service_name" as "serviceName". */
static void write_key(sp_buffer *out, const char *name)
{
    char *end = (char *)sp_buffer_reserve(out, strlen(name) + 3);
    if (!end)
        return;
    char *start = end;
    *end++ = '"';
    for (; *name; name++) {
        char c = *name;
        if (c == '_' && name[1]) {
            c = *++name;
            if (c >= 'a' && c <= 'z')
                c = (char)(c - 'a' + 'A');
        }
        *end++ = c;
    }
    *end++ = '"';
    *end++ = ':';
    *end = 0;
    out->length += (size_t)(end - start);
}

static void write_list(sp_buffer *out, const ProtobufCMessage *message,
                       const ProtobufCFieldDescriptor *field, unsigned depth)
{
    size_t count = *(const size_t *)member_at(message, field->quantifier_offset);
    const unsigned char *value = *(unsigned char *const *)member_at(message, field->offset);
    size_t size = sp_otlp_json_value_size(field->type);
    sp_buffer_add_char(out, '[');
    for (size_t i = 0; i < count && !out->failed; i++) {
        if (i > 0)
            sp_buffer_add_char(out, ',');
        write_value(out, field, value + i * size, depth);
    }
    sp_buffer_add_char(out, ']');
}

static void write_message(sp_buffer *out, const ProtobufCMessage *message, unsigned depth)
{
    if (depth >= SP_OTLP_MAX_DEPTH) {
        out->failed = true;
        return;
    }
    char before = '{';
    for (unsigned i = 0; i < message->descriptor->n_fields && !out->failed; i++) {
        const ProtobufCFieldDescriptor *field = &message->descriptor->fields[i];
        if (!is_present(message, field))
            continue;
        sp_buffer_add_char(out, before);
        before = ',';
        write_key(out, field->name);
        if (field->label == PROTOBUF_C_LABEL_REPEATED)
            write_list(out, message, field, depth);
        else
            write_value(out, field, member_at(message, field->offset), depth);
    }
    sp_buffer_add_string(out, before == '{' ? "{}" : "}");
}

bool sp_otlp_json_write(sp_buffer *out, const ProtobufCMessage *message)
{
    if (out->failed)
        return false;
    size_t before = out->length;
    write_message(out, message, 0);
    if (!out->failed)
        return true;
    out->length = before;
    if (out->data)
        out->data[before] = 0;
    return false;
}
