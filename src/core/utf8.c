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

/* In steps of eight bytes, of which the last overlaps: nearly all names and values are nothing else. */
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
