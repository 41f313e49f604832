/* SPDX-License-Identifier: Apache-2.0 */
#include "core/base64.h"

void sp_base64_add(sp_buffer *out, const uint8_t *bytes, size_t count)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < count; i += 3) {
        size_t left = count - i;
        uint32_t group = (uint32_t)bytes[i] << 16;
        group |= left > 1 ? (uint32_t)bytes[i + 1] << 8 : 0;
        group |= left > 2 ? bytes[i + 2] : 0;
        char text[4] = {digits[group >> 18], digits[group >> 12 & 63],
                        left > 1 ? digits[group >> 6 & 63] : '=',
                        left > 2 ? digits[group & 63] : '='};
        sp_buffer_add(out, text, sizeof text);
    }
}

static int digit_of(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    if (c == '+' || c == '-')
        return 62;
    return c == '/' || c == '_' ? 63 : -1;
}

bool sp_base64_decode(uint8_t *out, size_t *count, const char *text, size_t length)
{
    size_t digits = length, bytes = 0;
    while (digits > 0 && length - digits < 2 && text[digits - 1] == '=')
        digits--;
    if (digits % 4 == 1 || (digits < length && length % 4))
        return false;
    uint32_t bits = 0;
    for (size_t i = 0; i < digits; i++) {
        int digit = digit_of(text[i]);
        if (digit < 0)
            return false;
        bits = bits << 6 | (uint32_t)digit;
        if (i % 4) /* the second, third and fourth digit of a group complete a byte each */
            out[bytes++] = (uint8_t)(bits >> (6 - i % 4 * 2));
    }
    *count = bytes;
    return true;
}
