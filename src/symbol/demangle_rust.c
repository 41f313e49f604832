/* SPDX-License-Identifier: Apache-2.0 */
/* Rust's older mangling: C++'s nested names, "_ZN" {length name} "E", with a hash as the last name
 * ("h" and 16 hex digits) and characters that assemblers dislike written as "$name$". */
#include "symbol/demangle.h"

#include <string.h>

#include "core/compiler.h"
#include "core/hex.h"

enum { HASH_LENGTH = 17 };

static const struct {
    const char *code, *text;
} escapes[] = {{"$SP$", "@"}, {"$BP$", "*"}, {"$RF$", "&"}, {"$LT$", "<"},
               {"$GT$", ">"}, {"$LP$", "("}, {"$RP$", ")"}, {"$C$", ","}};

/* A C++ name may look like a hash by chance; a real hash has many different digits. */
static bool is_hash(const char *name, size_t length)
{
    unsigned seen = 0;
    if (length != HASH_LENGTH || name[0] != 'h')
        return false;
    for (size_t i = 1; i < length; i++) {
        int digit = sp_hex_digit(name[i], false);
        if (digit < 0)
            return false;
        seen |= 1u << digit;
    }
    return __builtin_popcount(seen) >= 5;
}

/* Append the character of an escape like "$u7e$", which gives its number in hexadecimal; only
 * printable ASCII. Returns the length of the escape, 0 when it is none. */
static size_t add_numbered(sp_buffer *out, const char *name, size_t length)
{
    unsigned value = 0;
    if (length < 4 || name[1] != 'u')
        return 0;
    for (size_t i = 2; i < length && i < 9; i++) {
        int digit = sp_hex_digit(name[i], false);
        if (name[i] == '$' && i > 2 && value >= 0x20 && value < 0x7f) {
            sp_buffer_add_char(out, (char)value);
            return i + 1;
        }
        if (digit < 0)
            return 0;
        value = value << 4 | (unsigned)digit;
    }
    return 0;
}

/* Append the text of the escape at NAME. Returns the length of the escape, 0 when it is none. */
static size_t add_escape(sp_buffer *out, const char *name, size_t length)
{
    for (size_t i = 0; i < SP_ARRAY_LENGTH(escapes); i++) {
        size_t count = strlen(escapes[i].code);
        if (length >= count && memcmp(name, escapes[i].code, count) == 0) {
            sp_buffer_add_string(out, escapes[i].text);
            return count;
        }
    }
    return add_numbered(out, name, length);
}

static void add_name(sp_buffer *out, const char *name, size_t length)
{
    size_t i = length > 1 && name[0] == '_' &&
               name[1] == '$'; /* the underscore only makes it an identifier */
    while (i < length) {
        size_t escaped = name[i] == '$' ? add_escape(out, name + i, length - i) : 0;
        if (escaped) {
            i += escaped;
        } else if (name[i] == '.' && i + 1 < length && name[i + 1] == '.') {
            sp_buffer_add_string(out, "::");
            i += 2;
        } else {
            sp_buffer_add_char(out, name[i++]);
        }
    }
}

bool sp_demangle_rust_legacy(sp_buffer *out, const char *symbol, size_t length, bool full)
{
    size_t at = 3;
    if (length < 4 || memcmp(symbol, "_ZN", 3) != 0)
        return false;
    for (bool first = true; at < length; first = false) {
        size_t count = 0;
        while (at < length && symbol[at] >= '0' && symbol[at] <= '9' && count < length)
            count = count * 10 + (size_t)(symbol[at++] - '0');
        if (count == 0 || count >= length - at) /* the "E" must follow */
            return false;
        const char *name = symbol + at;
        at += count;
        bool last = symbol[at] == 'E';
        if (last && (at + 1 != length || first || !is_hash(name, count)))
            return false;
        if (!first && (!last || full))
            sp_buffer_add_string(out, "::");
        if (!last || full)
            add_name(out, name, count);
        if (last)
            return true;
    }
    return false;
}
