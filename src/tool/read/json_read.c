/* SPDX-License-Identifier: Apache-2.0 */
/* simdjson parses the text (json_tree.h), and this file makes messages from the tree. When the text
 * is not valid JSON, jansson parses it again to find where the mistake is; simdjson cannot. */
#include "tool/read/json_read.h"

#include <float.h>
#include <jansson.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base64.h"
#include "core/compiler.h"
#include "core/env.h"
#include "core/hex.h"
#include "tool/read/json_locate.h"
#include "tool/read/json_numbers.h"
#include "tool/read/json_tree.h"
#include "wire/json.h"

/* path[0 .. path_length) leads to the value that is being read; each message adds a key and at most
 * one index. */
typedef struct json_reader {
    sp_json_step path[2 * SP_OTLP_MAX_DEPTH + 2];
    size_t path_length;
    sp_arena *memory; /* of the messages */
    const char *text;
    size_t length;
    sp_json_error *error;
} json_reader;

static ProtobufCMessage *read_message(json_reader *reader, const ProtobufCMessageDescriptor *type,
                                      sp_json_value json, unsigned depth);

/* ---- errors ---- */

/* Store in the reader's error where the reader is and what is wrong there. Always returns false,
 * which the caller can return. */
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

static const char *name_of_kind(sp_json_value json)
{
    static const char *const names[] = {
        [SP_JSON_NULL] = "null",        [SP_JSON_BOOL] = "true or false",
        [SP_JSON_INTEGER] = "a number", [SP_JSON_REAL] = "a number",
        [SP_JSON_STRING] = "a string",  [SP_JSON_ARRAY] = "an array",
        [SP_JSON_OBJECT] = "an object",
    };
    return names[sp_json_kind_of(json)];
}

static bool is_kind(sp_json_value json, sp_json_kind kind)
{
    return sp_json_kind_of(json) == kind;
}

/* ---- numbers ---- */

/* Parse a decimal integer with an optional minus sign into its sign and magnitude. */
static bool parse_decimal(const char *text, bool *negative, uint64_t *magnitude)
{
    *negative = *text == '-';
    return sp_parse_u64(text + *negative, magnitude);
}

/* The sign and magnitude of a real number that is an integer, such as 1e3, 5.0 or 1.7e18. A writer
 * that writes an exponent or a fraction has a double. VALUE is the same double, so it is exactly
 * what the writer had, also above 2^53. */
static bool integer_of_real(double value, bool *negative, uint64_t *magnitude)
{
    if (value != floor(value) || fabs(value) >= 18446744073709551616.0)
        return false;
    *negative = value < 0;
    *magnitude = (uint64_t)fabs(value);
    return true;
}

/* The sign and magnitude of JSON, a number or a string. False: it is no integer. */
static bool get_integer(sp_json_value json, bool *negative, uint64_t *magnitude)
{
    switch (sp_json_kind_of(json)) {
    case SP_JSON_INTEGER:
        *magnitude = sp_json_magnitude(json, negative);
        return true;
    case SP_JSON_REAL:
        return integer_of_real(sp_json_real(json), negative, magnitude);
    case SP_JSON_STRING: {
        sp_json_text text = sp_json_text_of(json);
        return text.length == strlen(text.data) && parse_decimal(text.data, negative, magnitude);
    }
    default:
        return false;
    }
}

/* MOST_BELOW is the magnitude of the smallest allowed value, MOST_ABOVE is the largest one. */
static bool read_integer(json_reader *reader, sp_json_value json, uint64_t most_below,
                         uint64_t most_above, uint64_t *out)
{
    bool negative;
    uint64_t magnitude;
    if (!get_integer(json, &negative, &magnitude))
        return fail(reader, "expected an integer, as number or decimal string, found %s%s",
                    name_of_kind(json), is_kind(json, SP_JSON_STRING) ? " that is none" : "");
    if (magnitude > (negative ? most_below : most_above))
        return fail(reader, "the integer is out of range (%s%llu to %llu)", most_below ? "-" : "",
                    (unsigned long long)most_below, (unsigned long long)most_above);
    *out = negative ? 0 - magnitude : magnitude;
    return true;
}

static bool read_i32(json_reader *reader, sp_json_value json, int32_t *out)
{
    uint64_t value = 0;
    if (!read_integer(reader, json, (uint64_t)INT32_MAX + 1, INT32_MAX, &value))
        return false;
    *out = (int32_t)value;
    return true;
}

static bool read_u32(json_reader *reader, sp_json_value json, uint32_t *out)
{
    uint64_t value = 0;
    if (!read_integer(reader, json, 0, UINT32_MAX, &value))
        return false;
    *out = (uint32_t)value;
    return true;
}

static bool read_enum(json_reader *reader, const ProtobufCFieldDescriptor *field,
                      sp_json_value json, int32_t *out)
{
    if (is_kind(json, SP_JSON_STRING)) {
        const ProtobufCEnumValue *value = protobuf_c_enum_descriptor_get_value_by_name(
            field->descriptor, sp_json_text_of(json).data);
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

static bool read_real(json_reader *reader, sp_json_value json, double *out)
{
    bool negative;
    switch (sp_json_kind_of(json)) {
    case SP_JSON_REAL:
        *out = sp_json_real(json);
        return true;
    case SP_JSON_INTEGER:
        *out = (double)sp_json_magnitude(json, &negative);
        *out = negative ? -*out : *out;
        return true;
    case SP_JSON_STRING:
        if (real_of_text(sp_json_text_of(json).data, out))
            return true;
        break;
    default:
        break;
    }
    return fail(reader, "expected a number, found %s", name_of_kind(json));
}

static bool read_float(json_reader *reader, sp_json_value json, float *out)
{
    double value = 0;
    if (!read_real(reader, json, &value))
        return false;
    if (isfinite(value) && fabs(value) > (double)FLT_MAX)
        return fail(reader, "the number is too large for a float");
    *out = (float)value;
    return true;
}

static bool read_bool(json_reader *reader, sp_json_value json, protobuf_c_boolean *out)
{
    if (!is_kind(json, SP_JSON_BOOL))
        return fail(reader, "expected true or false, found %s", name_of_kind(json));
    *out = sp_json_bool(json);
    return true;
}

/* ---- text and bytes ---- */

/* A copy of TEXT with U+FFFD in place of each zero byte. */
static char *copy_without_zeros(sp_arena *memory, sp_json_text text)
{
    char *copy = sp_arena_alloc(memory, 3 * text.length + 1);
    char *end = copy;
    for (size_t i = 0; copy && i < text.length; i++) {
        if (text.data[i]) {
            *end++ = text.data[i];
        } else {
            memcpy(end, "\xef\xbf\xbd", 3);
            end += 3;
        }
    }
    return copy;
}

static bool read_string(json_reader *reader, sp_json_value json, char **out)
{
    if (!is_kind(json, SP_JSON_STRING))
        return fail(reader, "expected a string, found %s", name_of_kind(json));
    sp_json_text text = sp_json_text_of(json);
    char *copy = memchr(text.data, 0, text.length)
                     ? copy_without_zeros(reader->memory, text)
                     : sp_arena_strndup(reader->memory, text.data, text.length);
    if (!copy)
        return fail(reader, "memory is short");
    *out = copy;
    return true;
}

static bool decode_hex(sp_json_text text, ProtobufCBinaryData *out)
{
    out->len = text.length / 2;
    return text.length % 2 == 0 && sp_hex_decode(out->data, text.data, text.length / 2, true);
}

static bool read_bytes(json_reader *reader, const ProtobufCFieldDescriptor *field,
                       sp_json_value json, ProtobufCBinaryData *out)
{
    if (!is_kind(json, SP_JSON_STRING))
        return fail(reader, "expected a string, found %s", name_of_kind(json));
    sp_json_text text = sp_json_text_of(json);
    bool hex = sp_otlp_json_is_id(field);
    ProtobufCBinaryData bytes = {.data = sp_arena_alloc(reader->memory, text.length + 1)};
    if (!bytes.data)
        return fail(reader, "memory is short");
    if (hex ? !decode_hex(text, &bytes)
            : !sp_base64_decode(bytes.data, &bytes.len, text.data, text.length))
        return fail(reader,
                    hex ? "expected an id of hex digits, two for each byte" : "expected base64");
    *out = bytes;
    return true;
}

/* ---- fields ---- */

static bool read_inner(json_reader *reader, const ProtobufCFieldDescriptor *field,
                       sp_json_value json, ProtobufCMessage **out, unsigned depth)
{
    *out = read_message(reader, field->descriptor, json, depth + 1);
    return *out != NULL;
}

/* Read one value of FIELD's type into MEMBER. */
static bool read_value(json_reader *reader, const ProtobufCFieldDescriptor *field,
                       sp_json_value json, void *member, unsigned depth)
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

static bool read_elements(json_reader *reader, const ProtobufCFieldDescriptor *field,
                          sp_json_value json, unsigned char *values, size_t *count, unsigned depth)
{
    size_t size = sp_otlp_json_value_size(field->type);
    sp_json_step *step = &reader->path[reader->path_length++];
    sp_json_walk walk = sp_json_elements(json);
    step->key = NULL;
    for (sp_json_value element; sp_json_next_element(&walk, &element); ++*count) {
        step->index = *count;
        if (!read_value(reader, field, element, values + *count * size, depth))
            return false;
    }
    reader->path_length--;
    return true;
}

static bool read_list(json_reader *reader, const ProtobufCFieldDescriptor *field,
                      sp_json_value json, ProtobufCMessage *message, unsigned depth)
{
    if (!is_kind(json, SP_JSON_ARRAY))
        return fail(reader, "expected an array, found %s", name_of_kind(json));
    size_t length = sp_json_array_size(json);
    if (length == 0)
        return true;
    unsigned char *values =
        sp_arena_array(reader->memory, length, sp_otlp_json_value_size(field->type));
    if (!values)
        return fail(reader, "memory is short");
    *(unsigned char **)member_at(message, field->offset) = values;
    size_t *count = member_at(message, field->quantifier_offset);
    return read_elements(reader, field, json, values, count, depth);
}

static bool read_field(json_reader *reader, const ProtobufCFieldDescriptor *field,
                       sp_json_value json, ProtobufCMessage *message, unsigned depth)
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

/* SEEN has a bit for each field of the type, to find a field that is there twice, also in two
 * spellings. No message of ours has more than 64 fields. */
static bool read_member(json_reader *reader, ProtobufCMessage *message, sp_json_text key,
                        sp_json_value json, uint64_t *seen, unsigned depth)
{
    bool is_name = strlen(key.data) == key.length;
    const ProtobufCFieldDescriptor *field =
        is_name ? field_of_key(message->descriptor, key.data) : NULL;
    if (!field || is_kind(json, SP_JSON_NULL))
        return true;
    reader->path[reader->path_length++].key = key.data;
    uint64_t bit = UINT64_C(1) << ((field - message->descriptor->fields) & 63);
    if (*seen & bit)
        return fail(reader, "the field is there twice");
    *seen |= bit;
    if (!read_field(reader, field, json, message, depth))
        return false;
    reader->path_length--;
    return true;
}

static ProtobufCMessage *new_message(json_reader *reader, const ProtobufCMessageDescriptor *type)
{
    ProtobufCMessage *message = sp_arena_take(reader->memory, type->sizeof_message);
    if (message)
        protobuf_c_message_init(type, message);
    else
        fail(reader, "memory is short");
    return message;
}

static bool read_members(json_reader *reader, ProtobufCMessage *message, sp_json_value json,
                         unsigned depth)
{
    uint64_t seen = 0;
    sp_json_text key;
    sp_json_value value;
    for (sp_json_walk walk = sp_json_members(json); sp_json_next_member(&walk, &key, &value);)
        if (!read_member(reader, message, key, value, &seen, depth))
            return false;
    return true;
}

static ProtobufCMessage *read_message(json_reader *reader, const ProtobufCMessageDescriptor *type,
                                      sp_json_value json, unsigned depth)
{
    if (!is_kind(json, SP_JSON_OBJECT)) {
        fail(reader, "expected an object, found %s", name_of_kind(json));
        return NULL;
    }
    if (depth >= SP_OTLP_MAX_DEPTH) {
        fail(reader, "values are nested deeper than %d", SP_OTLP_MAX_DEPTH);
        return NULL;
    }
    ProtobufCMessage *message = new_message(reader, type);
    return message && read_members(reader, message, json, depth) ? message : NULL;
}

/* Whether jansson refuses the text, too; *MISTAKE says where. jansson refuses integers above
 * 2^63 - 1, but up to 2^64 - 1 they are valid here, so the first attempt reads integers as reals.
 * Only if it finds no mistake, the second attempt finds a huge integer. */
static bool find_mistake(const json_reader *reader, json_error_t *mistake)
{
    static const size_t flags[] = {JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL, JSON_ALLOW_NUL};
    for (size_t i = 0; i < SP_ARRAY_LENGTH(flags); i++) {
        json_t *json = json_loadb(reader->text, reader->length, flags[i], mistake);
        if (!json)
            return true;
        json_decref(json);
    }
    return false;
}

/* Report that simdjson refuses the text for the reason WHY. If jansson refuses the text too, report
 * jansson's reason and place instead. jansson quotes a part of the text. The quote goes to a
 * terminal, so characters that are not printable ASCII are replaced. */
static void report_syntax(const json_reader *reader, const char *why)
{
    sp_json_error *error = reader->error;
    json_error_t mistake;
    bool found = find_mistake(reader, &mistake);
    snprintf(error->text, sizeof error->text, "not valid JSON: %s", found ? mistake.text : why);
    for (char *c = error->text; *c; c++) {
        if (*c < 0x20 || *c > 0x7e)
            *c = '?';
    }
    error->line = found && mistake.line > 0 ? (size_t)mistake.line : 1;
    error->position = found && mistake.position > 0 ? (size_t)mistake.position : 0;
}

/* Read the message without its huge numbers. That is possible when they are only in keys that the
 * type does not know. NULL: there is no huge number, or a field has one, or the text is not valid,
 * or memory is short. */
static ProtobufCMessage *read_without_huge(json_reader *reader,
                                           const ProtobufCMessageDescriptor *type)
{
    sp_buffer text = SP_BUFFER_INIT(4 * reader->length + 64);
    const char *why;
    sp_json_tree *tree = NULL;
    ProtobufCMessage *message = NULL;
    if (sp_json_replace_huge(&text, reader->text, reader->length) && !text.failed)
        tree = sp_json_tree_parse((const char *)text.data, text.length, &why);
    if (tree)
        message = read_message(reader, type, sp_json_tree_root(tree), 0);
    sp_json_tree_free(tree);
    sp_buffer_deinit(&text);
    return message;
}

ProtobufCMessage *sp_otlp_json_read_tree(sp_arena *memory, const ProtobufCMessageDescriptor *type,
                                         const sp_json_tree *tree, const char *text, size_t length,
                                         sp_json_error *error)
{
    json_reader reader = {.memory = memory, .text = text, .length = length, .error = error};
    memset(error, 0, sizeof *error);
    return read_message(&reader, type, sp_json_tree_root(tree), 0);
}

ProtobufCMessage *sp_otlp_json_read(sp_arena *memory, const ProtobufCMessageDescriptor *type,
                                    const char *text, size_t length, sp_json_error *error)
{
    sp_json_error ignored;
    json_reader reader = {
        .memory = memory, .text = text, .length = length, .error = error ? error : &ignored};
    memset(reader.error, 0, sizeof *reader.error);
    const char *why;
    sp_json_tree *tree = sp_json_tree_parse(text, length, &why);
    ProtobufCMessage *message = NULL;
    if (tree)
        message = read_message(&reader, type, sp_json_tree_root(tree), 0);
    else if (why && !(message = read_without_huge(&reader, type)))
        report_syntax(&reader, why);
    else if (message)
        memset(reader.error, 0, sizeof *reader.error);
    else
        fail(&reader, "memory is short");
    sp_json_tree_free(tree);
    return message;
}
