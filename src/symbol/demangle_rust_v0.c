/* SPDX-License-Identifier: Apache-2.0 */
/* Rust's newer mangling ("_R…", Rust RFC 2603): a small language of paths, types and constants,
 * read by one function each. The result is for people, so crates' hashes (except in full names),
 * lifetimes' names and the paths of impl blocks are left out.
 *
 * A name may refer back to parts of itself, so a short name can expand without end. So the buffer
 * bounds the output, `steps` the number of parts that are read, and `depth` the recursion. */
#include "symbol/demangle.h"

#include <stdio.h>
#include <string.h>

#include "core/compiler.h"
#include "core/hex.h"
#include "symbol/punycode.h"

enum { DEPTH_MAX = 100, STEPS_MAX = 20000 };

/* Once `failed`, nothing is read or written any more. While `silent` > 0, parts are read and not
 * written. */
typedef struct parser {
    sp_buffer *out;
    const char *text; /* after the "_R"; references are offsets in it */
    size_t at, length;
    unsigned depth, steps, silent;
    bool full; /* crates' hashes are written, too */
    bool failed;
} parser;

typedef struct identifier {
    const char *text;
    size_t length;
    bool punycode;
} identifier;

static void read_path(parser *p, bool in_value);
static void read_type(parser *p);
static void read_const(parser *p);

static void write_text(parser *p, const char *text)
{
    if (!p->silent && !p->failed && !sp_buffer_add_string(p->out, text))
        p->failed = true;
}

static char peek(const parser *p)
{
    return !p->failed && p->at < p->length ? p->text[p->at] : 0;
}

static char next(parser *p)
{
    char c = peek(p);
    if (c)
        p->at++;
    else
        p->failed = true;
    return c;
}

static bool eat(parser *p, char c)
{
    if (peek(p) != c)
        return false;
    p->at++;
    return true;
}

/* Every nested part begins with this and ends with leave. */
static bool enter(parser *p)
{
    if (++p->depth > DEPTH_MAX || ++p->steps > STEPS_MAX)
        p->failed = true;
    return !p->failed;
}

static void leave(parser *p)
{
    p->depth--;
}

/* Base 62 and "_": "_" is 0, "0_" is 1. */
static uint64_t read_base62(parser *p)
{
    uint64_t value = 0;
    if (eat(p, '_'))
        return 0;
    while (!eat(p, '_') && !p->failed) {
        char c = next(p);
        int digit = c >= '0' && c <= '9'   ? c - '0'
                    : c >= 'a' && c <= 'z' ? c - 'a' + 10
                    : c >= 'A' && c <= 'Z' ? c - 'A' + 36
                                           : -1;
        if (digit < 0 || value > (UINT64_MAX - 61) / 62 - 1)
            p->failed = true;
        else
            value = value * 62 + (uint64_t)digit;
    }
    return value + 1;
}

/* The optional number after TAG, plus 1; 0 when the tag is not there. */
static uint64_t read_optional(parser *p, char tag)
{
    return eat(p, tag) ? read_base62(p) + 1 : 0;
}

static size_t read_decimal(parser *p)
{
    size_t value = 0;
    if (eat(p, '0'))
        return 0;
    if (peek(p) < '1' || peek(p) > '9')
        p->failed = true;
    while (peek(p) >= '0' && peek(p) <= '9' && value <= p->length)
        value = value * 10 + (size_t)(next(p) - '0');
    return value;
}

static identifier read_identifier(parser *p)
{
    identifier name = {.punycode = eat(p, 'u')};
    name.length = read_decimal(p);
    eat(p, '_');
    if (p->failed || name.length > p->length - p->at) {
        p->failed = true;
        return (identifier){.text = ""};
    }
    name.text = p->text + p->at;
    p->at += name.length;
    return name;
}

/* ---- identifiers ---- */

static void write_point(parser *p, uint32_t code)
{
    char text[5] = {0};
    if (code < 0x80) {
        text[0] = (char)code;
    } else if (code < 0x800) {
        text[0] = (char)(0xc0 | code >> 6);
        text[1] = (char)(0x80 | (code & 63));
    } else if (code < 0x10000) {
        text[0] = (char)(0xe0 | code >> 12);
        text[1] = (char)(0x80 | (code >> 6 & 63));
        text[2] = (char)(0x80 | (code & 63));
    } else {
        text[0] = (char)(0xf0 | code >> 18);
        text[1] = (char)(0x80 | (code >> 12 & 63));
        text[2] = (char)(0x80 | (code >> 6 & 63));
        text[3] = (char)(0x80 | (code & 63));
    }
    write_text(p, text);
}

static void write_identifier(parser *p, const identifier *name)
{
    uint32_t points[SP_PUNYCODE_MAX];
    uint32_t count = name->punycode ? sp_punycode_decode(name->text, name->length, points) : 0;
    if (p->silent || p->failed)
        return;
    if (!count && !sp_buffer_add(p->out, name->text, name->length))
        p->failed = true;
    for (uint32_t i = 0; i < count; i++)
        write_point(p, points[i]);
}

/* ---- references, lists ---- */

/* Call READ once more for the part that the reference at this place points to, which is always
 * before the reference. */
static void read_back(parser *p, void (*read)(parser *))
{
    size_t here = p->at - 1; /* the "B" of the reference */
    uint64_t target = read_base62(p);
    if (target >= here)
        p->failed = true;
    if (p->silent || p->failed)
        return;
    size_t after = p->at;
    p->at = (size_t)target;
    read(p);
    p->at = after;
}

static void read_path_of_type(parser *p)
{
    read_path(p, false);
}

static void read_path_of_value(parser *p)
{
    read_path(p, true);
}

static void read_lifetime(parser *p)
{
    read_base62(p);
    write_text(p, "'_");
}

static void read_generic_argument(parser *p)
{
    if (eat(p, 'L'))
        read_lifetime(p);
    else if (eat(p, 'K'))
        read_const(p);
    else
        read_type(p);
}

/* Read elements until "E", with ", " between them. Returns how many. */
static unsigned read_list(parser *p, void (*read)(parser *))
{
    unsigned count = 0;
    while (!eat(p, 'E') && !p->failed) {
        if (count++)
            write_text(p, ", ");
        read(p);
    }
    return count;
}

/* ---- paths ---- */

/* Write a part that has no name in the source, like a closure. TAG is its namespace. */
static void write_special(parser *p, char tag, const identifier *name, uint64_t number)
{
    char text[32];
    write_text(p, tag == 'C' ? "::{closure" : tag == 'S' ? "::{shim" : "::{");
    if (tag != 'C' && tag != 'S')
        write_text(p, (char[]){tag, 0});
    if (name->length) {
        write_text(p, ":");
        write_identifier(p, name);
    }
    (void)snprintf(text, sizeof text, "#%llu}", (unsigned long long)number);
    write_text(p, text);
}

static void read_nested_path(parser *p, bool in_value)
{
    char tag = next(p);
    read_path(p, in_value);
    uint64_t number = read_optional(p, 's');
    identifier name = read_identifier(p);
    if (tag >= 'A' && tag <= 'Z') {
        write_special(p, tag, &name, number);
    } else if (name.length) {
        write_text(p, "::");
        write_identifier(p, &name);
    }
}

/* The path of an impl block is left out, because its type says more. */
static void skip_impl_path(parser *p)
{
    p->silent++;
    read_optional(p, 's');
    read_path(p, false);
    p->silent--;
}

static void read_impl(parser *p, char tag)
{
    if (tag != 'Y')
        skip_impl_path(p);
    write_text(p, "<");
    read_type(p);
    if (tag != 'M') {
        write_text(p, " as ");
        read_path(p, false);
    }
    write_text(p, ">");
}

static void read_crate(parser *p)
{
    char text[32];
    uint64_t hash = read_optional(p, 's');
    identifier name = read_identifier(p);
    write_identifier(p, &name);
    (void)snprintf(text, sizeof text, "[%llx]", (unsigned long long)hash);
    if (p->full && hash)
        write_text(p, text);
}

static void read_path(parser *p, bool in_value)
{
    if (!enter(p))
        return;
    char tag = next(p);
    switch (tag) {
    case 'C':
        read_crate(p);
        break;
    case 'N':
        read_nested_path(p, in_value);
        break;
    case 'M':
    case 'X':
    case 'Y':
        read_impl(p, tag);
        break;
    case 'I':
        read_path(p, in_value);
        write_text(p, in_value ? "::<" : "<");
        read_list(p, read_generic_argument);
        write_text(p, ">");
        break;
    case 'B':
        read_back(p, in_value ? read_path_of_value : read_path_of_type);
        break;
    default:
        p->failed = true;
    }
    leave(p);
}

/* ---- types ---- */

static const char *basic_type(char tag)
{
    static const char *const names[] = {
        ['a' - 'a'] = "i8",    ['b' - 'a'] = "bool", ['c' - 'a'] = "char", ['d' - 'a'] = "f64",
        ['e' - 'a'] = "str",   ['f' - 'a'] = "f32",  ['h' - 'a'] = "u8",   ['i' - 'a'] = "isize",
        ['j' - 'a'] = "usize", ['l' - 'a'] = "i32",  ['m' - 'a'] = "u32",  ['n' - 'a'] = "i128",
        ['o' - 'a'] = "u128",  ['p' - 'a'] = "_",    ['s' - 'a'] = "i16",  ['t' - 'a'] = "u16",
        ['u' - 'a'] = "()",    ['v' - 'a'] = "...",  ['x' - 'a'] = "i64",  ['y' - 'a'] = "u64",
        ['z' - 'a'] = "!",
    };
    return tag >= 'a' && tag <= 'z' ? names[tag - 'a'] : NULL;
}

/* The number of lifetimes that "for<…>" would introduce: read, not written. */
static void skip_binder(parser *p)
{
    read_optional(p, 'G');
}

static void read_abi(parser *p)
{
    write_text(p, "extern \"");
    if (eat(p, 'C')) {
        write_text(p, "C");
    } else {
        identifier name = read_identifier(p);
        write_identifier(p, &name);
    }
    write_text(p, "\" ");
}

static void read_function_type(parser *p)
{
    skip_binder(p);
    if (eat(p, 'U'))
        write_text(p, "unsafe ");
    if (eat(p, 'K'))
        read_abi(p);
    write_text(p, "fn(");
    read_list(p, read_type);
    write_text(p, ")");
    if (eat(p, 'u')) /* returns nothing */
        return;
    write_text(p, " -> ");
    read_type(p);
}

/* Read a path and leave its list of arguments open, because "dyn Iterator<Item = u8>" has more of
 * them. Returns whether a list is open. */
static bool read_open_path(parser *p)
{
    if (!eat(p, 'I')) {
        read_path(p, false);
        return false;
    }
    read_path(p, false);
    write_text(p, "<");
    read_list(p, read_generic_argument);
    return true;
}

static void read_dyn_trait(parser *p)
{
    bool open = read_open_path(p);
    while (eat(p, 'p')) {
        write_text(p, open ? ", " : "<");
        open = true;
        identifier name = read_identifier(p);
        write_identifier(p, &name);
        write_text(p, " = ");
        read_type(p);
    }
    if (open)
        write_text(p, ">");
}

static void read_dyn(parser *p)
{
    write_text(p, "dyn ");
    skip_binder(p);
    for (unsigned count = 0; !eat(p, 'E') && !p->failed; count++) {
        if (count)
            write_text(p, " + ");
        read_dyn_trait(p);
    }
    if (!eat(p, 'L'))
        p->failed = true;
    read_base62(p);
}

static void read_reference(parser *p, const char *prefix)
{
    write_text(p, prefix);
    if (eat(p, 'L'))
        read_base62(p);
    read_type(p);
}

static void read_array(parser *p, bool has_length)
{
    write_text(p, "[");
    read_type(p);
    if (has_length) {
        write_text(p, "; ");
        read_const(p);
    }
    write_text(p, "]");
}

static void read_tuple(parser *p)
{
    write_text(p, "(");
    write_text(p, read_list(p, read_type) == 1 ? ",)" : ")");
}

static void read_compound_type(parser *p)
{
    switch (next(p)) {
    case 'A':
        read_array(p, true);
        break;
    case 'S':
        read_array(p, false);
        break;
    case 'T':
        read_tuple(p);
        break;
    case 'R':
        read_reference(p, "&");
        break;
    case 'Q':
        read_reference(p, "&mut ");
        break;
    case 'P':
        read_reference(p, "*const ");
        break;
    case 'O':
        read_reference(p, "*mut ");
        break;
    case 'F':
        read_function_type(p);
        break;
    case 'D':
        read_dyn(p);
        break;
    case 'B':
        read_back(p, read_type);
        break;
    default: /* a named type */
        p->at -= !p->failed;
        read_path(p, false);
    }
}

static void read_type(parser *p)
{
    if (!enter(p))
        return;
    const char *basic = basic_type(peek(p));
    if (basic) {
        next(p);
        write_text(p, basic);
    } else {
        read_compound_type(p);
    }
    leave(p);
}

/* ---- constants ---- */

static uint64_t read_hex(parser *p)
{
    uint64_t value = 0;
    for (unsigned digits = 0; !eat(p, '_') && !p->failed; digits++) {
        int digit = sp_hex_digit(next(p), false);
        if (digit < 0 || digits >= 16)
            p->failed = true;
        value = value << 4 | (unsigned)digit;
    }
    return value;
}

static void read_integer(parser *p)
{
    char text[32];
    if (eat(p, 'n'))
        write_text(p, "-");
    (void)snprintf(text, sizeof text, "%llu", (unsigned long long)read_hex(p));
    write_text(p, text);
}

static void read_character(parser *p)
{
    uint64_t code = read_hex(p);
    if (code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
        p->failed = true;
    write_text(p, "'");
    write_point(p, (uint32_t)code);
    write_text(p, "'");
}

/* Structures, strings and references as constants are not read: such a name stays mangled. */
static void read_const(parser *p)
{
    if (!enter(p))
        return;
    char tag = next(p);
    if (tag == 'p')
        write_text(p, "_");
    else if (tag == 'B')
        read_back(p, read_const);
    else if (tag == 'b')
        write_text(p, read_hex(p) ? "true" : "false");
    else if (tag == 'c')
        read_character(p);
    else if (tag && strchr("aslxnihtmyoj", tag))
        read_integer(p);
    else
        p->failed = true;
    leave(p);
}

bool sp_demangle_rust_v0(sp_buffer *out, const char *symbol, size_t length, bool full)
{
    if (length < 4 || symbol[0] != '_' || symbol[1] != 'R' || symbol[2] < 'A' || symbol[2] > 'Z')
        return false;
    parser p = {.out = out, .text = symbol + 2, .length = length - 2, .full = full};
    read_path(&p, true);
    if (peek(&p) >= 'A' &&
        peek(&p) <= 'Z') { /* the crate that made this copy of a generic function */
        p.silent++;
        read_path(&p, false);
    }
    /* a vendor's suffix may follow */
    return !p.failed && (p.at == p.length || peek(&p) == '.' || peek(&p) == '$');
}
