/* SPDX-License-Identifier: Apache-2.0 */
/* Lower-case hex, as W3C trace context and OTLP/JSON write ids.  Threads: any.  Signals: safe. */
#ifndef SP_CORE_HEX_H
#define SP_CORE_HEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* 2 * COUNT characters and a NUL into OUT. */
static inline void sp_hex_encode(char *out, const uint8_t *bytes, size_t count)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < count; i++) {
        out[2 * i] = digits[bytes[i] >> 4];
        out[2 * i + 1] = digits[bytes[i] & 15];
    }
    out[2 * count] = 0;
}

/* The value of hex digit C, or -1. Upper case counts only where ANY_CASE is true (W3C headers are lower case only). */
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

/* COUNT bytes from 2 * COUNT digits at TEXT; false when one is no digit. */
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

#endif
