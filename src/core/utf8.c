/* SPDX-License-Identifier: Apache-2.0 */
#include "core/utf8.h"

#include <stdint.h>
#include <string.h>

size_t sp_utf8_sequence(const char *text, size_t left)
{
    const unsigned char *p = (const unsigned char *)text;
    if (left == 0)
        return 0;
    if (p[0] < 0x80)
        return 1;
    size_t length = p[0] >= 0xf0 ? 4 : p[0] >= 0xe0 ? 3 : 2;
    if (p[0] < 0xc2 || p[0] > 0xf4 || left < length)
        return 0;
    for (size_t i = 1; i < length; i++)
        if ((p[i] & 0xc0) != 0x80)
            return 0;
    /* overlong forms, surrogates, and above U+10FFFF show in the second byte */
    if ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] > 0x9f) ||
        (p[0] == 0xf0 && p[1] < 0x90) || (p[0] == 0xf4 && p[1] > 0x8f))
        return 0;
    return length;
}

static inline uint64_t load(const char *text, size_t bytes)
{
    uint64_t word = 0;
    memcpy(&word, text, bytes);
    return word;
}

/* Reads eight bytes at a time; the last step overlaps the one before it. Fast, because nearly all
 * names and values are ASCII. */
static inline bool is_ascii(const char *text, size_t length)
{
    const uint64_t high_bits = UINT64_C(0x8080808080808080);
    uint64_t seen = 0;
    if (length >= 8) {
        for (size_t i = 0; i < length - 8; i += 8)
            seen |= load(text + i, 8);
        seen |= load(text + length - 8, 8);
    } else if (length >= 4) {
        seen = load(text, 4) | load(text + length - 4, 4);
    } else if (length > 0) {
        seen = load(text, 1) | load(text + length / 2, 1) | load(text + length - 1, 1);
    }
    return (seen & high_bits) == 0;
}

bool sp_utf8_valid(const char *text, size_t length)
{
    if (is_ascii(text, length))
        return true;
    for (size_t i = 0; i < length;) {
        size_t step = sp_utf8_sequence(text + i, length - i);
        if (!step)
            return false;
        i += step;
    }
    return true;
}

size_t sp_utf8_repair(char *out, const char *text, size_t length)
{
    size_t written = 0;
    for (size_t i = 0; i < length;) {
        size_t step = sp_utf8_sequence(text + i, length - i);
        const char *from = step ? text + i : "\xef\xbf\xbd";
        size_t count = step ? step : 3;
        memcpy(out + written, from, count);
        written += count;
        i += step ? step : 1;
    }
    out[written] = 0;
    return written;
}

size_t sp_utf8_fit(const char *text, size_t length, size_t limit)
{
    if (length <= limit)
        return length;
    for (size_t back = 0; back < 4 && back <= limit; back++)
        if (((unsigned char)text[limit - back] & 0xc0) != 0x80)
            return limit - back;
    return limit; /* continuation bytes without a beginning: not UTF-8 */
}

/* --- for display ------------------------------------------------------------------------------ */

/* The code point of the valid sequence of BYTES at TEXT. */
static uint32_t code_point(const char *text, size_t bytes)
{
    const unsigned char *p = (const unsigned char *)text;
    uint32_t code = bytes == 1 ? p[0] : p[0] & (0xffu >> (bytes + 1));
    for (size_t i = 1; i < bytes; i++)
        code = code << 6 | (p[i] & 0x3f);
    return code;
}

/* False for Unicode's controls (C0, C1, DEL), separators of lines and paragraphs, and marks that
 * change the direction of the text after them. */
static bool is_shown(uint32_t code)
{
    static const struct {
        uint32_t first, last;
    } unfit[] = {{0, 0x1f},        {0x7f, 0x9f},     {0x61c, 0x61c},
                 {0x200e, 0x200f}, {0x2028, 0x202e}, {0x2066, 0x2069}};
    for (size_t i = 0; i < sizeof unfit / sizeof unfit[0]; i++)
        if (code >= unfit[i].first && code <= unfit[i].last)
            return false;
    return true;
}

size_t sp_utf8_show(char *out, size_t size, const char *text, size_t length)
{
    size_t written = 0;
    for (size_t at = 0; at < length;) {
        size_t step = sp_utf8_sequence(text + at, length - at);
        bool shown = step && is_shown(code_point(text + at, step));
        size_t count = shown ? step : 1;
        bool rest_fits =
            written + (length - at) < size; /* because the output is never longer than the input */
        if (!rest_fits && written + count + sizeof "..." > size) {
            memcpy(out + written, "...", 3);
            written += 3;
            break;
        }
        memmove(out + written, shown ? text + at : "?", count);
        written += count;
        at += step ? step : 1;
    }
    out[written] = 0;
    return written;
}
