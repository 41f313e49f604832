/* SPDX-License-Identifier: Apache-2.0 */
/* One member of a JSON text, for the answers of receivers. We read only three texts and a number of
 * them, so no JSON library is loaded into the host's process. Nothing is stored, and no function
 * calls itself: a value is skipped by counting brackets. */
#include <string.h>

#include "core/hex.h"
#include "export/export_internal.h"

static sp_text_range after_space(sp_text_range text)
{
    while (text.begin < text.end && *text.begin && strchr(" \t\r\n", *text.begin))
        text.begin++;
    return text;
}

/* The end of the string that begins at BEGIN; NULL when it does not end. */
static const char *end_of_string(const char *begin, const char *end)
{
    for (const char *at = begin + 1; at < end; at++) {
        if (*at == '"')
            return at + 1;
        at += *at == '\\';
    }
    return NULL;
}

static const char *end_of_scalar(const char *at, const char *end)
{
    while (at < end && *at && !strchr(" \t\r\n,:[]{}\"", *at))
        at++;
    return at;
}

/* The end of the value at the begin of TEXT; NULL when there is no whole value. */
static const char *end_of_value(sp_text_range text)
{
    size_t depth = 0;
    do {
        text = after_space(text);
        if (text.begin == text.end)
            return NULL;
        char c = *text.begin;
        bool opens = c == '{' || c == '[', closes = c == '}' || c == ']';
        if ((closes || c == ',' || c == ':') && depth == 0)
            return NULL;
        depth += opens;
        depth -= closes;
        const char *next = text.begin + 1;
        if (c == '"')
            next = end_of_string(text.begin, text.end);
        else if (!opens && !closes && c != ',' && c != ':')
            next = end_of_scalar(text.begin, text.end);
        if (!next || next == text.begin)
            return NULL;
        text.begin = next;
    } while (depth > 0);
    return text.begin;
}

static bool is_character(sp_text_range text, char wanted)
{
    return text.begin < text.end && *text.begin == wanted;
}

/* Read the member at the begin of TEXT: *IS_IT says whether its key is NAME, *VALUE is its value,
 * and TEXT advances past it. False when it is no member. */
static bool read_member(sp_text_range *text, const char *name, bool *is_it, sp_text_range *value)
{
    size_t length = strlen(name);
    const char *key = text->begin;
    if (!is_character(*text, '"') || !(text->begin = end_of_string(key, text->end)))
        return false;
    *is_it = (size_t)(text->begin - key) == length + 2 && memcmp(key + 1, name, length) == 0;
    *text = after_space(*text);
    if (!is_character(*text, ':'))
        return false;
    text->begin++;
    *text = after_space(*text);
    value->begin = text->begin;
    value->end = end_of_value(*text);
    text->begin = value->end;
    return value->end != NULL;
}

bool sp_json_member(sp_text_range text, const char *name, sp_text_range *value)
{
    text = after_space(text);
    if (!is_character(text, '{'))
        return false;
    do {
        bool is_it;
        text.begin++;
        text = after_space(text);
        if (!read_member(&text, name, &is_it, value))
            return false;
        if (is_it)
            return true;
        text = after_space(text);
    } while (is_character(text, ','));
    return false;
}

/* ---- Strings ---- */

/* Write CODE as UTF-8 to OUT, which has room for 4 bytes. Returns its length. */
static size_t put_utf8(char *out, uint32_t code)
{
    static const uint8_t first_bits[] = {0, 0, 0xc0, 0xe0, 0xf0};
    size_t length = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (size_t i = length; i-- > 1; code >>= 6)
        out[i] = (char)(0x80 | (code & 0x3f));
    out[0] = (char)(length == 1 ? code : first_bits[length] | code);
    return length;
}

/* The value of the escape \uXXXX at the begin of TEXT, or -1. */
static int32_t read_unit(sp_text_range text)
{
    uint8_t bytes[2];
    if (text.end - text.begin < 6 || text.begin[0] != '\\' || text.begin[1] != 'u' ||
        !sp_hex_decode(bytes, text.begin + 2, 2, true))
        return -1;
    return bytes[0] << 8 | bytes[1];
}

/* Decode the escape at the begin of TEXT to OUT, and advance TEXT. Returns the bytes written. A
 * surrogate without its other half becomes '?'. */
static size_t unescape(char *out, sp_text_range *text)
{
    static const char letters[] = "bfnrt", characters[] = "\b\f\n\r\t";
    int32_t unit = read_unit(*text);
    if (unit < 0) {
        char letter = text->begin + 1 < text->end ? text->begin[1] : '?';
        const char *known = letter ? strchr(letters, letter) : NULL;
        out[0] = known ? characters[known - letters] : letter;
        text->begin = text->end - text->begin < 2 ? text->end : text->begin + 2;
        return 1;
    }
    text->begin += 6;
    int32_t low = read_unit(*text);
    if (unit >> 10 == 0x36 && low >> 10 == 0x37) {
        text->begin += 6;
        return put_utf8(out, 0x10000 + ((uint32_t)(unit & 0x3ff) << 10 | (uint32_t)(low & 0x3ff)));
    }
    return put_utf8(out, unit >> 11 == 0x1b ? '?' : (uint32_t)unit);
}

size_t sp_json_string(char *out, sp_text_range value)
{
    size_t length = 0;
    if (value.end - value.begin < 2 || *value.begin != '"')
        return 0;
    sp_text_range text = {value.begin + 1, value.end - 1};
    while (text.begin < text.end) {
        if (*text.begin == '\\')
            length += unescape(out + length, &text);
        else
            out[length++] = *text.begin++;
    }
    return length;
}
