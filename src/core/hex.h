/* SPDX-License-Identifier: Apache-2.0 */
/* Lower-case hex, as W3C trace context and OTLP/JSON write ids.  Threads: any.  Signals: safe. */
#ifndef SP_CORE_HEX_H
#define SP_CORE_HEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Write 2 * COUNT characters and a NUL to OUT. */
static inline void sp_hex_encode(char *out, const uint8_t *bytes, size_t count)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < count; i++) {
        out[2 * i] = digits[bytes[i] >> 4];
        out[2 * i + 1] = digits[bytes[i] & 15];
    }
    out[2 * count] = 0;
}

/* The value of hex digit C, or -1. Upper case counts only where ANY_CASE is true (W3C headers are
 * lower case only). */
static inline int sp_hex_digit(char c, bool any_case)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (any_case && c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

/* Decode COUNT bytes from 2 * COUNT digits at TEXT; false when a character is not a digit. */
static inline bool sp_hex_decode(uint8_t *out, const char *text, size_t count, bool any_case)
{
    for (size_t i = 0; i < count; i++) {
        int high = sp_hex_digit(text[2 * i], any_case);
        int low = high < 0 ? -1 : sp_hex_digit(text[2 * i + 1], any_case);
        if (low < 0)
            return false;
        out[i] = (uint8_t)(high << 4 | low);
    }
    return true;
}

/* The same for sixteen digits at a time, because each request has a header that consists of such
 * groups: sixteen lanes instead of sixteen branches. The compiler's vector types serve SSE2, NEON,
 * and processors without either. Eight bytes are a word in memory order, so that they stay in a
 * register. */
typedef uint8_t sp_hex_lanes __attribute__((vector_size(16)));
typedef uint16_t sp_hex_pairs __attribute__((vector_size(16)));
typedef uint64_t sp_hex_words __attribute__((vector_size(16)));
typedef uint8_t sp_hex_bytes __attribute__((vector_size(8)));

/* Decode 8 bytes from 16 lower-case digits at TEXT. False when a character is not such a digit;
 * *OUT is then undefined. */
static inline bool sp_hex_decode16(uint64_t *out, const char *text)
{
    sp_hex_lanes c;
    memcpy(&c, text, sizeof c);
    sp_hex_lanes digit = c - '0',
                 letter = c - 'a'; /* a lower character wraps around to a large value */
    sp_hex_lanes is_digit = (sp_hex_lanes)(digit <= 9), is_letter = (sp_hex_lanes)(letter <= 5);
    sp_hex_pairs pairs = (sp_hex_pairs)((digit & is_digit) | ((letter + 10) & is_letter));
    pairs = (pairs << 4 | pairs >> 8) & 0xff; /* little-endian: the high digit is the low byte */
    sp_hex_bytes bytes = __builtin_convertvector(pairs, sp_hex_bytes);
    memcpy(out, &bytes, sizeof *out);
    sp_hex_words good = (sp_hex_words)(is_digit | is_letter);
    return (good[0] & good[1]) == UINT64_MAX;
}

/* Write 8 bytes as 16 lower-case digits to OUT, without a NUL. */
static inline void sp_hex_encode16(char *out, uint64_t bytes)
{
    sp_hex_lanes b = (sp_hex_lanes)(sp_hex_words){bytes, 0};
    sp_hex_lanes value = __builtin_shufflevector(b >> 4, b & 15, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20,
                                                 5, 21, 6, 22, 7, 23);
    sp_hex_lanes digits = value + '0' + ((sp_hex_lanes)(value > 9) & ('a' - '0' - 10));
    memcpy(out, &digits, sizeof digits);
}

#endif
