/* SPDX-License-Identifier: Apache-2.0 */
/* C++ (Itanium ABI) names by __cxa_demangle of the C++ runtime that the process has loaded, which
 * is there whenever there is C++ code to be named. The alternative, libiberty, is a static library
 * under the LGPL and the GPL with an exception: linking it into ours would put its terms on every
 * application. A program that is linked statically with its C++ runtime, and does not export
 * __cxa_demangle, gets names from its debug information (unqualified), or mangled names. */
#include "symbol/demangle.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "core/compiler.h"

typedef char *demangle_function(const char *mangled, char *buffer, size_t *length, int *status);

/* The demangler of the C++ runtime that is loaded, NULL when none is (yet). RTLD_NOLOAD: this loads
 * none. The handle stays open, so that the runtime stays loaded. */
static demangle_function *find_demangler(void)
{
    static const char *const runtimes[] = {"libstdc++.so.6", "libc++abi.so.1", "libc++.so.1"};
    static demangle_function *_Atomic kept; /* several threads may find it at once */
    demangle_function *found = kept;
    if (!found)
        found = (demangle_function *)dlsym(RTLD_DEFAULT, "__cxa_demangle");
    for (size_t i = 0; i < SP_ARRAY_LENGTH(runtimes) && !found; i++) {
        void *runtime = dlopen(runtimes[i], RTLD_LAZY | RTLD_NOLOAD);
        if (runtime)
            found = (demangle_function *)dlsym(runtime, "__cxa_demangle");
    }
    kept = found;
    return found;
}

static bool ends_with(const char *text, size_t length, const char *end)
{
    size_t count = strlen(end);
    return length >= count && memcmp(text + length - count, end, count) == 0;
}

/* What may follow a parameter list. */
static const char *const qualifiers[] = {" const", " volatile", " &&", " &", " noexcept"};

/* Length of TEXT without the qualifiers at its end. */
static size_t without_qualifiers(const char *text, size_t length)
{
    for (size_t i = 0; i < SP_ARRAY_LENGTH(qualifiers); i++)
        if (ends_with(text, length, qualifiers[i])) {
            length -= strlen(qualifiers[i]);
            i = (size_t)-1; /* from the first one again */
        }
    return length;
}

/* The offset of the "(" that belongs to the ")" before END; END when there is none. */
static size_t opening(const char *text, size_t end)
{
    int depth = 0;
    for (size_t i = end; i > 0 && text[end - 1] == ')'; i--) {
        depth += text[i - 1] == ')' ? 1 : text[i - 1] == '(' ? -1 : 0;
        if (depth == 0)
            return i - 1;
    }
    return end;
}

/* Length of TEXT without its last parameter list; all of it when it does not end in one.
 * Parentheses inside a name ("(anonymous namespace)", "f(int)::{lambda()#1}") stay, and so does the
 * pair of "operator()". */
static size_t without_parameters(const char *text, size_t length)
{
    size_t end = without_qualifiers(text, length);
    size_t open = end ? opening(text, end) : end;
    return open == 0 || open == end || ends_with(text, open, "operator") ? length : open;
}

static bool is_name_character(char c)
{
    return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* Whether the word at TEXT + I is "operator": spaces and angle brackets after it belong to the
 * name. */
static bool is_operator(const char *text, size_t i, size_t length)
{
    static const char word[] = "operator";
    size_t count = sizeof word - 1;
    return length - i > count && memcmp(text + i, word, count) == 0 &&
           (i == 0 || !is_name_character(text[i - 1])) && !is_name_character(text[i + count]);
}

static size_t qualifier_length(const char *text)
{
    for (size_t i = 0; i < SP_ARRAY_LENGTH(qualifiers); i++)
        if (strncmp(text, qualifiers[i], strlen(qualifiers[i])) == 0)
            return strlen(qualifiers[i]);
    return 0;
}

/* A lambda in a member function has the function's qualifiers inside its name: "A::f(int)
 * const::{lambda()#1}". The offset after the qualifiers
 * that begin at TEXT + I; 0 when no scope follows them. */
static size_t inner_qualifiers(const char *text, size_t i)
{
    if (i == 0 || text[i - 1] != ')')
        return 0;
    for (size_t count; (count = qualifier_length(text + i)) > 0;)
        i += count;
    return strncmp(text + i, "::", 2) == 0 ? i : 0;
}

/* The offset of the name after a return type, which names of templates have ("void ns::f<int>"). 0
 * when there is no return type. */
static size_t after_return_type(const char *text, size_t length)
{
    size_t begin = 0;
    for (size_t i = 0; i < length && !is_operator(text, i, length);) {
        size_t after = strchr("<({[", text[i]) ? sp_demangle_group(text, i, length)
                       : text[i] == ' '        ? inner_qualifiers(text, i)
                                               : 0;
        if (text[i] == ' ' && !after)
            begin = i + 1;
        i = after ? after : i + 1;
    }
    return begin < length ? begin : 0;
}

/* Length of TEXT without array bounds at its end (" [3]"). */
static size_t without_bounds(const char *text, size_t length)
{
    while (length > 3 && text[length - 1] == ']') {
        const char *open = memrchr(text, '[', length);
        if (!open || open == text || (open[-1] != ' ' && open[-1] != ']'))
            break;
        length = (size_t)(open - text) - (open[-1] == ' ');
    }
    return length;
}

/* For a declarator, whose parentheses are around [begin, end) of TEXT: the offset after its "*",
 * "&", "&&" or "Class::*". 0 when it is no declarator. */
static size_t declared(const char *text, size_t begin, size_t end)
{
    for (size_t i = begin; i + 1 < end;) {
        size_t after = strchr("<({[", text[i]) ? sp_demangle_group(text, i, end) : 0;
        bool is_pointer = text[i] == '*' || text[i] == '&';
        if (is_pointer && (i == begin || text[i - 1] == ':' || text[i - 1] == '&'))
            return i + 1 < end && text[i + 1] == '&' ? i + 2 : i + 1;
        if (text[i] == '(' || text[i] == ' ')
            return 0;
        i = after ? after : i + 1;
    }
    return 0;
}

/* A function that returns a pointer to a function, or a reference to an array, has its name inside
 * the text of that type: "void (*ns::f(int))(char)". Narrows TEXT to "ns::f(int)" and returns its
 * length; returns LENGTH, without a change to TEXT, when it is no such name. */
static size_t inside_declarator(const char **text, size_t length)
{
    size_t end = without_qualifiers(*text, length), outer = without_bounds(*text, end);
    if (outer == end)
        outer = opening(*text, end);
    size_t inner = opening(*text, outer);
    size_t begin = inner < outer ? declared(*text, inner + 1, outer - 1) : 0;
    if (!begin)
        return length;
    *text += begin;
    return outer - 1 - begin;
}

/* Length of the words before the name, as in "non-virtual thunk to ns::f(int)". They are kept. */
static size_t special_prefix(const char *text)
{
    static const char *const prefixes[] = {
        "non-virtual thunk to ", "virtual thunk to ",      "covariant return thunk to ",
        "guard variable for ",   "TLS init function for ", "TLS wrapper function for ",
        "transaction clone for "};
    for (size_t i = 0; i < SP_ARRAY_LENGTH(prefixes); i++)
        if (strncmp(text, prefixes[i], strlen(prefixes[i])) == 0)
            return strlen(prefixes[i]);
    return 0;
}

static void add_short_name(sp_buffer *out, const char *text)
{
    size_t prefix = special_prefix(text);
    sp_buffer_add(out, text, prefix);
    text += prefix;
    size_t length = inside_declarator(&text, strlen(text));
    length = without_parameters(text, length);
    /* a return type precedes the name only where parameters follow it: not in "vtable for X" */
    size_t begin = text[length] ? after_return_type(text, length) : 0;
    sp_buffer_add(out, text + begin, length - begin);
}

bool sp_demangle_cpp(sp_buffer *out, const char *symbol, size_t length, bool full)
{
    if (length < 3 || symbol[0] != '_' || symbol[1] != 'Z')
        return false;
    demangle_function *demangle = find_demangler();
    char *mangled = demangle ? strndup(symbol, length) : NULL;
    if (!mangled)
        return false;
    int status = -1;
    char *text = demangle(mangled, NULL, NULL, &status);
    free(mangled);
    if (text && status == 0 && full)
        sp_buffer_add_string(out, text);
    else if (text && status == 0)
        add_short_name(out, text);
    free(text);
    return status == 0;
}
