/* SPDX-License-Identifier: Apache-2.0 */
#include "tool/read/json_numbers.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LONGEST_NUMBER = 1024 };

static size_t skip_digits(const char *text, size_t at, size_t end)
{
    while (at < end && text[at] >= '0' && text[at] <= '9')
        at++;
    return at;
}

/* The end of the JSON number at AT, or AT when there is none. *IS_REAL: the number has a fraction
 * or an exponent. */
static size_t number_end(const char *text, size_t at, size_t end, bool *is_real)
{
    size_t digits = at + (text[at] == '-'), next = skip_digits(text, digits, end);
    *is_real = false;
    if (next == digits || (text[digits] == '0' && next > digits + 1))
        return at;
    if (next < end && text[next] == '.') {
        *is_real = true;
        digits = next + 1;
        next = skip_digits(text, digits, end);
        if (next == digits)
            return at;
    }
    if (next < end && (text[next] == 'e' || text[next] == 'E')) {
        *is_real = true;
        digits = next + 1;
        digits += digits < end && (text[digits] == '-' || text[digits] == '+');
        next = skip_digits(text, digits, end);
        if (next == digits)
            return at;
    }
    return next;
}

/* Whether NUMBER is huge (json_numbers.h). One of LONGEST_NUMBER characters or more counts as huge,
 * because no program writes numbers of this length. */
static bool is_huge(const char *number, size_t length, bool is_real)
{
    char copy[LONGEST_NUMBER];
    if (length >= sizeof copy)
        return true;
    memcpy(copy, number, length);
    copy[length] = 0;
    if (is_real)
        return isinf(strtod(copy, NULL));
    errno = 0;
    if (*copy == '-')
        (void)strtoll(copy, NULL, 10);
    else
        (void)strtoull(copy, NULL, 10);
    return errno == ERANGE;
}

static size_t string_end(const char *text, size_t at, size_t end)
{
    for (at++; at < end && text[at] != '"'; at++)
        at += text[at] == '\\';
    return at < end ? at + 1 : end;
}

size_t sp_json_replace_huge(sp_buffer *out, const char *text, size_t length)
{
    size_t count = 0, kept = 0;
    for (size_t at = 0; at < length;) {
        if (text[at] == '"') {
            at = string_end(text, at, length);
            continue;
        }
        bool is_real = false, begins = text[at] == '-' || (text[at] >= '0' && text[at] <= '9');
        size_t end = begins ? number_end(text, at, length, &is_real) : at;
        if (end > at && is_huge(text + at, end - at, is_real)) {
            sp_buffer_add(out, text + kept, at - kept);
            sp_buffer_add_string(out, "[[]]");
            kept = end;
            count++;
        }
        at = end > at ? end : at + 1;
    }
    sp_buffer_add(out, text + kept, length - kept);
    return count;
}
