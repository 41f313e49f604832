/* SPDX-License-Identifier: Apache-2.0 */
/* Where brackets open and close in a demangled name. An angle bracket may also be part of an
 * operator's name, of an arrow, of an expression in parentheses, or the begin of a qualified type
 * in Rust ("<T as Trait>::f"). */
#include "symbol/demangle.h"

#include <string.h>

#include "core/compiler.h"

static bool is_name_byte(char c)
{
    return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (unsigned char)c >= 0x80;
}

size_t sp_demangle_operator(const char *text, size_t at, size_t length)
{
    static const char word[] = "operator";
    static const char *const symbols[] = {
        "<=>", "<<=", ">>=", "->*", "<<", ">>", "<=", ">=", "->", "<", ">", "()", "[]"};
    size_t count = sizeof word - 1;
    if (length - at <= count || memcmp(text + at, word, count) != 0 ||
        (at && is_name_byte(text[at - 1])))
        return 0;
    for (size_t i = 0; i < SP_ARRAY_LENGTH(symbols); i++) {
        size_t symbol = strlen(symbols[i]);
        if (length - at - count >= symbol && memcmp(text + at + count, symbols[i], symbol) == 0)
            return count + symbol;
    }
    return 0;
}

size_t sp_demangle_group(const char *text, size_t begin, size_t length)
{
    bool angle = text[begin] == '<';
    int angles = 0, others = 0;
    for (size_t i = begin; i < length; i++) {
        size_t skipped = sp_demangle_operator(text, i, length);
        if (skipped)
            i += skipped - 1;
        else if (text[i] == '(' || text[i] == '[' || text[i] == '{')
            others++;
        else if (text[i] == ')' || text[i] == ']' || text[i] == '}')
            others--;
        else if (angle && others == 0 && text[i] == '<')
            angles++;
        else if (angle && others == 0 && text[i] == '>' && text[i - 1] != '-')
            angles--;
        if (angles == 0 && others == 0)
            return i + 1;
    }
    return 0;
}

/* Whether template arguments begin at AT. They follow a name, Rust's "::", an operator with or
 * without a space, "[abi:x]" or "{lambda}". */
static bool begins_arguments(const char *text, size_t at, size_t after_operator)
{
    if (text[at] != '<' || at == 0)
        return false;
    char before = text[at - 1];
    return is_name_byte(before) || strchr("]}:)", before) || after_operator == at ||
           (before == ' ' && after_operator + 1 == at);
}

/* Copy TEXT to OUT, folded. Returns the length of the copy, which is less than twice LENGTH. */
static size_t copy_folded(char *out, const char *text, size_t length)
{
    static const char fold[] = "<\xe2\x80\xa6>"; /* an ellipsis */
    size_t kept = 0, after_operator = 0;
    for (size_t i = 0; i < length; i++) {
        size_t skipped = sp_demangle_operator(text, i, length);
        size_t end =
            begins_arguments(text, i, after_operator) ? sp_demangle_group(text, i, length) : 0;
        if (skipped) {
            memcpy(out + kept, text + i, skipped);
            kept += skipped;
            i += skipped - 1;
            after_operator = i + 1;
        } else if (end > i + 2) {
            memcpy(out + kept, fold, sizeof fold - 1);
            kept += sizeof fold - 1;
            i = end - 1;
        } else {
            out[kept++] = text[i];
        }
    }
    return kept;
}

bool sp_demangle_fold(sp_buffer *name)
{
    size_t length = name->length;
    char *room = (char *)sp_buffer_reserve(name, 2 * length);
    if (!room)
        return false;
    name->length = copy_folded(room, (const char *)name->data, length);
    memmove(name->data, room, name->length);
    name->data[name->length] = 0;
    return true;
}
