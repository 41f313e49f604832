/* SPDX-License-Identifier: Apache-2.0 */
/* The ASCII characters are first, unchanged. After the last "_", each other character is one
 * number, written with digits of a changing base. The number says how far to advance from the
 * character before, through all positions of the text and then all codes. */
#include "symbol/punycode.h"

#include <stdbool.h>
#include <string.h>

/* The digits that have not been read. */
typedef struct digits {
    const char *at, *end;
} digits;

static uint32_t digit_value(char c)
{
    if (c >= 'a' && c <= 'z')
        return (uint32_t)(c - 'a');
    return c >= '0' && c <= '9' ? (uint32_t)(c - '0') + 26 : 36;
}

/* The bias of the next number, which sets its base. It depends on the number DELTA before, and on
 * the COUNT of characters so far (RFC 3492, section 6.1). */
static uint32_t adapt(uint32_t delta, uint32_t count, bool first)
{
    uint32_t k = 0;
    delta = first ? delta / 700 : delta / 2;
    for (delta += delta / count; delta > 455; k += 36)
        delta /= 35;
    return k + 36 * delta / (delta + 38);
}

/* Add the next number to *I; false when there is none, or it is too large. */
static bool read_delta(digits *left, uint32_t bias, uint32_t *i)
{
    uint64_t sum = *i, weight = 1;
    for (uint32_t k = 36;; k += 36) {
        uint32_t digit = left->at < left->end ? digit_value(*left->at++) : 36;
        if (digit >= 36 || weight > UINT32_MAX)
            return false;
        sum += digit * weight;
        if (sum > UINT32_MAX)
            return false;
        *i = (uint32_t)sum;
        uint32_t threshold = k <= bias ? 1 : k >= bias + 26 ? 26 : k - bias;
        if (digit < threshold)
            return true;
        weight *= 36 - threshold;
    }
}

uint32_t sp_punycode_decode(const char *text, size_t length, uint32_t points[SP_PUNYCODE_MAX])
{
    const char *delimiter = memrchr(text, '_', length);
    digits left = {delimiter ? delimiter + 1 : text, text + length};
    uint32_t count = 0, code = 128, bias = 72, i = 0;
    while (delimiter && text < delimiter && count < SP_PUNYCODE_MAX)
        points[count++] = (unsigned char)*text++;
    while (left.at < left.end) {
        uint32_t before = i;
        if (count == SP_PUNYCODE_MAX || !read_delta(&left, bias, &i))
            return 0;
        count++;
        bias = adapt(i - before, count, before == 0);
        if (i / count > 0x10ffff - code)
            return 0;
        code += i / count;
        i %= count;
        if (code >= 0xd800 && code < 0xe000)
            return 0;
        memmove(&points[i + 1], &points[i], (count - 1 - i) * sizeof *points);
        points[i++] = code;
    }
    return count;
}
