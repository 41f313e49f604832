/* SPDX-License-Identifier: Apache-2.0 */
#include "tool/text/escape.h"

#include <string.h>

#include "core/compiler.h"
#include "core/utf8.h"

static uint32_t code_point(const char *text, size_t length)
{
    static const unsigned char first_mask[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
    uint32_t c = (unsigned char)text[0] & first_mask[length];
    for (size_t i = 1; i < length; i++)
        c = c << 6 | ((unsigned char)text[i] & 0x3f);
    return c;
}

typedef struct code_range {
    uint32_t first, last;
} code_range;

/* RANGES ascend, so that the search ends early: most characters are below all of them. */
static bool in_ranges(uint32_t c, const code_range *ranges, size_t count)
{
    for (size_t i = 0; i < count && c >= ranges[i].first; i++)
        if (c <= ranges[i].last)
            return true;
    return false;
}

/* Whether C is a control character, or reorders other characters or breaks the line. With such
 * characters a name could forge the text around it. */
static bool is_dangerous(uint32_t c)
{
    static const code_range ranges[] = {{0, 0x1f},        {0x7f, 0x9f},     {0x200e, 0x200f},
                                        {0x2028, 0x202e}, {0x2066, 0x2069}, {0xfeff, 0xfeff},
                                        {0xfff9, 0xfffb}};
    return in_ranges(c, ranges, SP_ARRAY_LENGTH(ranges));
}

/* The number of bytes at TEXT that are printable ASCII. Most names have no others. */
static size_t plain_length(const char *text)
{
    size_t length = 0;
    while (text[length] >= 0x20 && text[length] < 0x7f)
        length++;
    return length;
}

/* Add the first character of TEXT, of which LEFT bytes are readable. Returns its length. */
static size_t escape_character(sp_buffer *out, const char *text, size_t left)
{
    size_t length = sp_utf8_sequence(text, left);
    uint32_t c = length ? code_point(text, length) : (unsigned char)*text;
    if (length == 0 || (is_dangerous(c) && c < 0x80))
        sp_buffer_printf(out, "\\x%02x", c);
    else if (is_dangerous(c))
        sp_buffer_printf(out, "\\u{%04x}", c);
    else
        sp_buffer_add(out, text, length);
    return length ? length : 1;
}

bool sp_escape_terminal(sp_buffer *out, const char *text)
{
    sp_buffer_add(out, "", 0);
    for (size_t left = strlen(text); left;) {
        size_t length = plain_length(text);
        if (length)
            sp_buffer_add(out, text, length);
        else
            length = escape_character(out, text, left);
        text += length;
        left -= length;
    }
    return !out->failed;
}

bool sp_escape_html(sp_buffer *out, const char *text)
{
    sp_buffer_add(out, "", 0);
    for (; *text; text++) {
        switch (*text) {
        case '<':
            sp_buffer_add_string(out, "&lt;");
            break;
        case '>':
            sp_buffer_add_string(out, "&gt;");
            break;
        case '&':
            sp_buffer_add_string(out, "&amp;");
            break;
        case '"':
            sp_buffer_add_string(out, "&quot;");
            break;
        case '\'':
            sp_buffer_add_string(out, "&#39;");
            break;
        default:
            sp_buffer_add_char(out, *text);
        }
    }
    return !out->failed;
}

bool sp_escape_script_json(sp_buffer *out, const char *json, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        if (json[i] == '<' || json[i] == '>' || json[i] == '&') {
            sp_buffer_printf(out, "\\u%04x", (unsigned char)json[i]);
        } else if (length - i >= 3 && memcmp(json + i, "\xe2\x80", 2) == 0 &&
                   (json[i + 2] == '\xa8' || json[i + 2] == '\xa9')) {
            sp_buffer_add_string(out, json[i + 2] == '\xa8' ? "\\u2028" : "\\u2029");
            i += 2;
        } else {
            sp_buffer_add_char(out, json[i]);
        }
    }
    return !out->failed;
}

/* The number of columns of C. The tables of East Asian width and combining marks are incomplete,
 * but enough for names of functions and spans; a missing range only disturbs the alignment. */
static unsigned columns_of(uint32_t c)
{
    static const code_range none[] = {
        {0x300, 0x36f}, {0x200b, 0x200d}, {0x20d0, 0x20ff}, {0xfe00, 0xfe0f}};
    static const code_range two[] = {{0x1100, 0x115f},  {0x2e80, 0xa4cf},   {0xac00, 0xd7a3},
                                     {0xf900, 0xfaff},  {0xfe30, 0xfe6f},   {0xff00, 0xff60},
                                     {0xffe0, 0xffe6},  {0x1f300, 0x1f64f}, {0x1f900, 0x1f9ff},
                                     {0x20000, 0x3fffd}};
    if (in_ranges(c, none, SP_ARRAY_LENGTH(none)))
        return 0;
    return in_ranges(c, two, SP_ARRAY_LENGTH(two)) ? 2 : 1;
}

unsigned sp_text_columns(const char *text)
{
    unsigned columns = 0;
    for (size_t left = strlen(text); left;) {
        size_t length = sp_utf8_sequence(text, left);
        columns += length ? columns_of(code_point(text, length)) : 1;
        text += length ? length : 1;
        left -= length ? length : 1;
    }
    return columns;
}

bool sp_text_fit(sp_buffer *out, const char *text, unsigned columns, const char *ellipsis)
{
    if (sp_text_columns(text) <= columns)
        return sp_buffer_add_string(out, text);
    for (size_t left = strlen(text); left;) {
        size_t length = sp_utf8_sequence(text, left);
        unsigned width = length ? columns_of(code_point(text, length)) : 1;
        if (width + 1 > columns)
            break;
        columns -= width;
        length = length ? length : 1;
        sp_buffer_add(out, text, length);
        text += length;
        left -= length;
    }
    return sp_buffer_add_string(out, ellipsis);
}

void sp_text_wrap(sp_buffer *out, const char *text, unsigned columns)
{
    char word[1024];
    unsigned used = 0;
    while (*text) {
        size_t length = strcspn(text, " ");
        size_t kept = length < sizeof word ? length : sizeof word - 1;
        memcpy(word, text, kept);
        word[kept] = 0;
        unsigned width = sp_text_columns(word);
        bool is_first = used == 0;
        bool fits = is_first || used + 1 + width <= columns;
        sp_buffer_add_string(out, is_first ? "" : fits ? " " : "\n");
        sp_buffer_add(out, text, length);
        used = fits && !is_first ? used + 1 + width : width ? width : 1;
        text += length + (text[length] == ' ');
    }
}
