/* SPDX-License-Identifier: Apache-2.0 */
/* jansson parses the text, this file turns its tree into messages. A half-made message is always
 * one that protobuf_c_message_free_unpacked can free: a count grows only after its element is
 * complete, a oneof's case is set only with its member. That is also why everything comes from
 * malloc, which is what protobuf-c frees with. */
#include "tool/read/json_read.h"

#include <float.h>
#include <jansson.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base64.h"
#include "core/env.h"
#include "core/hex.h"
#include "tool/read/json_locate.h"
#include "wire/json.h"

/* path[0 .. path_length) leads to the value that is being read; each message adds a key and at most
 * one index. */
typedef struct json_reader {
    sp_json_step path[2 * SP_OTLP_MAX_DEPTH + 2];
    size_t path_length;
    const char *text;
    size_t length;
    sp_json_error *error;
} json_reader;

static ProtobufCMessage *read_message(json_reader *reader, const ProtobufCMessageDescriptor *type,
                                      const json_t *json, unsigned depth);

/* ---- errors ---- */

/* Note where the reader is and what is wrong there. Always false, for the caller to return. */
__attribute__((format(printf, 2, 3))) static bool fail(json_reader *reader, const char *format, ...)
{
    sp_json_error *error = reader->error;
    size_t used = sp_json_path_print(error->text, sizeof error->text - 120, reader->path,
                                     reader->path_length);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(error->text + used, sizeof error->text - used, format, arguments);
    va_end(arguments);
    error->position =
        sp_json_locate(reader->text, reader->length, reader->path, reader->path_length);
    error->line = sp_json_line(reader->text, error->position);
    return false;
}

static const char *kind_of(const json_t *json)
{
    switch (json_typeof(json)) {
    case JSON_OBJECT:
        return "an object";
    case JSON_ARRAY:
        return "an array";
    case JSON_STRING:
        return "a string";
    case JSON_INTEGER:
    case JSON_REAL:
        return "a number";
    case JSON_TRUE:
    case JSON_FALSE:
        return "true or false";
    case JSON_NULL:
        break;
    }
    return "null";
}

/* ---- numbers ---- */

/* A decimal integer with an optional minus sign as sign and magnitude. */
static bool parse_decimal(const char *text, bool *negative, uint64_t *magnitude)
{
    *negative = *text == '-';
    return sp_parse_u64(text + *negative, magnitude);
}

/* JSON's number or string as sign and magnitude. */
static bool get_integer(const json_t *json, bool *negative, uint64_t *magnitude)
{
    if (json_is_integer(json)) {
        json_int_t value = json_integer_value(json);
        *negative = value < 0;
        *magnitude = *negative ? 0 - (uint64_t)value : (uint64_t)value;
        return true;
    }
    if (json_is_real(json)) {
        /* 1e3, 5.0 and 1.7e18 are integers too. A writer that puts an exponent or a fraction has a
         * double, and above 2^53 a double is an integer: the value here is the one that the writer
         * had. */
        double value = json_real_value(json);
        if (value != floor(value) || fabs(value) >= 18446744073709551616.0)
            return false;
        *negative = value < 0;
        *magnitude = (uint64_t)fabs(value);
        return true;
    }
    return json_is_string(json) && json_string_length(json) == strlen(json_string_value(json)) &&
           parse_decimal(json_string_value(json), negative, magnitude);
}

/* MOST_BELOW is the magnitude of the least value, MOST_ABOVE the greatest value. */
static bool read_integer(json_reader *reader, const json_t *json, uint64_t most_below,
                         uint64_t most_above, uint64_t *out)
{
    bool negative;
    uint64_t magnitude;
    if (!get_integer(json, &negative, &magnitude))
        return fail(reader, "expected an integer, as number or decimal string, found %s%s",
                    kind_of(json), json_is_string(json) ? " that is none" : "");
    if (magnitude > (negative ? most_below : most_above))
        return fail(reader, "the integer is out of range (%s%llu to %llu)", most_below ? "-" : "",
                    (unsigned long long)most_below, (unsigned long long)most_above);
    *out = negative ? 0 - magnitude : magnitude;
    return true;
}

static bool read_i32(json_reader *reader, const json_t *json, int32_t *out)
{
    uint64_t value = 0;
    if (!read_integer(reader, json, (uint64_t)INT32_MAX + 1, INT32_MAX, &value))
        return false;
    *out = (int32_t)value;
    return true;
}

static bool read_u32(json_reader *reader, const json_t *json, uint32_t *out)
{
    uint64_t value = 0;
    if (!read_integer(reader, json, 0, UINT32_MAX, &value))
        return false;
    *out = (uint32_t)value;
    return true;
}

static bool read_enum(json_reader *reader, const ProtobufCFieldDescriptor *field,
                      const json_t *json, int32_t *out)
{
    if (json_is_string(json)) {
        const ProtobufCEnumValue *value = protobuf_c_enum_descriptor_get_value_by_name(
            field->descriptor, json_string_value(json));
        if (value) {
            *out = value->value;
            return true;
        }
    }
    return read_i32(reader, json, out);
}

/* "NaN", "Infinity", "-Infinity", or a number in a string. */
static bool real_of_text(const char *text, double *out)
{
    if (strcmp(text, "NaN") == 0)
        *out = (double)NAN;
    else if (strcmp(text, "Infinity") == 0 || strcmp(text, "-Infinity") == 0)
        *out = *text == '-' ? -(double)INFINITY : (double)INFINITY;
    else if (*text && strspn(text, "0123456789+-.eE") == strlen(text)) {
        char *end;
        *out = strtod(text, &end);
        return *end == 0;
    } else
        return false;
    return true;
}

static bool read_real(json_reader *reader, const json_t *json, double *out)
{
    if (json_is_number(json)) {
        *out = json_number_value(json);
        return true;
    }
    if (json_is_string(json) && real_of_text(json_string_value(json), out))
        return true;
    return fail(reader, "expected a number, found %s", kind_of(json));
}

static bool read_float(json_reader *reader, const json_t *json, float *out)
{
    double value = 0;
    if (!read_real(reader, json, &value))
        return false;
    if (isfinite(value) && fabs(value) > (double)FLT_MAX)
        return fail(reader, "the number is too large for a float");
    *out = (float)value;
    return true;
}

static bool read_bool(json_reader *reader, const json_t *json, protobuf_c_boolean *out)
{
    if (!json_is_boolean(json))
        return fail(reader, "expected true or false, found %s", kind_of(json));
    *out = json_is_true(json);
    return true;
}

/* ---- text and bytes ---- */

static bool read_string(json_reader *reader, const json_t *json, char **out)
{
    if (!json_is_string(json))
        return fail(reader, "expected a string, found %s", kind_of(json));
    const char *text = json_string_value(json);
    size_t length = json_string_length(json);
    char *copy = malloc(3 * length + 1);
    if (!copy)
        return fail(reader, "memory is short");
    char *end = copy;
    for (size_t i = 0; i < length; i++) {
        if (text[i]) {
            *end++ = text[i];
        } else {
            memcpy(end, "\xef\xbf\xbd", 3);
            end += 3;
        }
    }
    *end = 0;
    *out = copy;
    return true;
}

static bool decode_hex(const char *text, size_t length, ProtobufCBinaryData *out)
{
    out->len = length / 2;
    return length % 2 == 0 && sp_hex_decode(out->data, text, length / 2, true);
}

static bool read_bytes(json_reader *reader, const ProtobufCFieldDescriptor *field,
                       const json_t *json, ProtobufCBinaryData *out)
{
    if (!json_is_string(json))
        return fail(reader, "expected a string, found %s", kind_of(json));
    size_t length = json_string_length(json);
    bool hex = sp_otlp_json_is_id(field);
    ProtobufCBinaryData bytes = {.data = malloc(length + 1)};
    if (!bytes.data)
        return fail(reader, "memory is short");
    const char *text = json_string_value(json);
    if (hex ? decode_hex(text, length, &bytes)
            : sp_base64_decode(bytes.data, &bytes.len, text, length)) {
        *out = bytes;
        return true;
    }
    free(bytes.data);
    return fail(reader,
                hex ? "expected an id of hex digits, two for each byte" : "expected base64");
}

/* ---- fields ---- */

static bool read_inner(json_reader *reader, const ProtobufCFieldDescriptor *field,
                       const json_t *json, ProtobufCMessage **out, unsigned depth)
{
    *out = read_message(reader, field->descriptor, json, depth + 1);
    return *out != NULL;
}

/* One value of FIELD's type into MEMBER, which stays as it is on failure. */
static bool read_value(json_reader *reader, const ProtobufCFieldDescriptor *field,
                       const json_t *json, void *member, unsigned depth)
{
    switch (field->type) {
    case PROTOBUF_C_TYPE_INT32:
    case PROTOBUF_C_TYPE_SINT32:
    case PROTOBUF_C_TYPE_SFIXED32:
        return read_i32(reader, json, member);
    case PROTOBUF_C_TYPE_UINT32:
    case PROTOBUF_C_TYPE_FIXED32:
        return read_u32(reader, json, member);
    case PROTOBUF_C_TYPE_ENUM:
        return read_enum(reader, field, json, member);
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_SFIXED64:
        return read_integer(reader, json, (uint64_t)INT64_MAX + 1, INT64_MAX, member);
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64:
        return read_integer(reader, json, 0, UINT64_MAX, member);
    case PROTOBUF_C_TYPE_FLOAT:
        return read_float(reader, json, member);
    case PROTOBUF_C_TYPE_DOUBLE:
        return read_real(reader, json, member);
    case PROTOBUF_C_TYPE_BOOL:
        return read_bool(reader, json, member);
    case PROTOBUF_C_TYPE_STRING:
        return read_string(reader, json, member);
    case PROTOBUF_C_TYPE_BYTES:
        return read_bytes(reader, field, json, member);
    case PROTOBUF_C_TYPE_MESSAGE:
        return read_inner(reader, field, json, member, depth);
    }
    return fail(reader, "the field has a type that this reader does not know");
}

static void *member_at(ProtobufCMessage *message, unsigned offset)
{
    return (unsigned char *)message + offset;
}

static bool read_list(json_reader *reader, const ProtobufCFieldDescriptor *field,
                      const json_t *json, ProtobufCMessage *message, unsigned depth)
{
    if (!json_is_array(json))
        return fail(reader, "expected an array, found %s", kind_of(json));
    size_t length = json_array_size(json);
    size_t size = sp_otlp_json_value_size(field->type);
    if (length == 0)
        return true;
    unsigned char *values = calloc(length, size);
    if (!values)
        return fail(reader, "memory is short");
    *(unsigned char **)member_at(message, field->offset) = values;
    size_t *count = member_at(message, field->quantifier_offset);
    sp_json_step *step = &reader->path[reader->path_length++];
    step->key = NULL;
    for (; *count < length; ++*count) {
        step->index = *count;
        if (!read_value(reader, field, json_array_get(json, *count), values + *count * size, depth))
            return false;
    }
    reader->path_length--;
    return true;
}

static bool read_field(json_reader *reader, const ProtobufCFieldDescriptor *field,
                       const json_t *json, ProtobufCMessage *message, unsigned depth)
{
    if (field->label == PROTOBUF_C_LABEL_REPEATED)
        return read_list(reader, field, json, message, depth);
    void *member = member_at(message, field->offset);
    if (!(field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF))
        return read_value(reader, field, json, member, depth);
    uint32_t *chosen = member_at(message, field->quantifier_offset);
    if (*chosen)
        return fail(reader, "only one of the fields that exclude each other may be set");
    if (!read_value(reader, field, json, member, depth))
        return false;
    *chosen = field->id;
    return true;
}

/* Whether KEY is NAME, which is in snake_case, or its lowerCamelCase. */
static bool is_key_of(const char *key, const char *name)
{
    if (strcmp(key, name) == 0)
        return true;
    for (; *name; name++, key++) {
        char c = *name;
        if (c == '_' && name[1]) {
            c = *++name;
            if (c >= 'a' && c <= 'z')
                c = (char)(c - 'a' + 'A');
        }
        if (*key != c)
            return false;
    }
    return *key == 0;
}

static const ProtobufCFieldDescriptor *field_of_key(const ProtobufCMessageDescriptor *type,
                                                    const char *key)
{
    for (unsigned i = 0; i < type->n_fields; i++) {
        if (is_key_of(key, type->fields[i].name))
            return &type->fields[i];
    }
    return NULL;
}

/* SEEN has a bit for each field of the type, for a field may come in both spellings. No message of
 * ours has more than 64. */
static bool read_member(json_reader *reader, ProtobufCMessage *message, const char *key,
                        const json_t *json, uint64_t *seen, unsigned depth)
{
    const ProtobufCFieldDescriptor *field = field_of_key(message->descriptor, key);
    if (!field || json_is_null(json))
        return true;
    reader->path[reader->path_length++].key = key;
    uint64_t bit = UINT64_C(1) << ((field - message->descriptor->fields) & 63);
    if (*seen & bit)
        return fail(reader, "the field is there twice");
    *seen |= bit;
    if (!read_field(reader, field, json, message, depth))
        return false;
    reader->path_length--;
    return true;
}

static ProtobufCMessage *new_message(const ProtobufCMessageDescriptor *type)
{
    ProtobufCMessage *message = malloc(type->sizeof_message);
    if (message)
        protobuf_c_message_init(type, message);
    return message;
}

static ProtobufCMessage *read_message(json_reader *reader, const ProtobufCMessageDescriptor *type,
                                      const json_t *json, unsigned depth)
{
    if (!json_is_object(json)) {
        fail(reader, "expected an object, found %s", kind_of(json));
        return NULL;
    }
    if (depth >= SP_OTLP_MAX_DEPTH) {
        fail(reader, "values are nested deeper than %d", SP_OTLP_MAX_DEPTH);
        return NULL;
    }
    ProtobufCMessage *message = new_message(type);
    if (!message) {
        fail(reader, "memory is short");
        return NULL;
    }
    uint64_t seen = 0;
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)json, key, value)
    {
        if (!read_member(reader, message, key, value, &seen, depth)) {
            protobuf_c_message_free_unpacked(message, NULL);
            return NULL;
        }
    }
    return message;
}

/* jansson quotes what it stumbled over. That goes to somebody's terminal, so only plain characters
 * of it do. */
static void report_syntax(sp_json_error *error, const json_error_t *syntax)
{
    snprintf(error->text, sizeof error->text, "not valid JSON: %s", syntax->text);
    for (char *c = error->text; *c; c++) {
        if (*c < 0x20 || *c > 0x7e)
            *c = '?';
    }
    error->line = syntax->line > 0 ? (size_t)syntax->line : 1;
    error->position = syntax->position > 0 ? (size_t)syntax->position : 0;
}

/* jansson's tree of the text; NULL when it is not valid, which is reported. jansson refuses
 * integers above 2^63 - 1, which addresses of the kernel are: they are read again as strings, which
 * OTLP/JSON allows for integers of 64 bits. */
static json_t *load(json_reader *reader)
{
    json_error_t syntax;
    json_t *json = json_loadb(reader->text, reader->length, JSON_ALLOW_NUL, &syntax);
    if (json)
        return json;
    sp_buffer quoted = SP_BUFFER_INIT(2 * reader->length);
    bool again = json_error_code(&syntax) == json_error_numeric_overflow &&
                 sp_json_quote_large(&quoted, reader->text, reader->length);
    if (again)
        json = json_loadb((char *)quoted.data, quoted.length, JSON_ALLOW_NUL, &syntax);
    if (!json)
        report_syntax(reader->error, &syntax);
    if (!json && again)
        reader->error->position = sp_json_unquoted_position(reader->text, reader->length, &quoted,
                                                            reader->error->position);
    sp_buffer_deinit(&quoted);
    return json;
}

ProtobufCMessage *sp_otlp_json_read(const ProtobufCMessageDescriptor *type, const char *text,
                                    size_t length, sp_json_error *error)
{
    sp_json_error ignored;
    json_reader reader = {.text = text, .length = length, .error = error ? error : &ignored};
    memset(reader.error, 0, sizeof *reader.error);
    json_t *json = load(&reader);
    if (!json)
        return NULL;
    ProtobufCMessage *message = read_message(&reader, type, json, 0);
    json_decref(json);
    return message;
}
