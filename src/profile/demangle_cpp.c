/* SPDX-License-Identifier: Apache-2.0 */
/* C++ (Itanium ABI) names by __cxa_demangle of the C++ runtime that the process has loaded, which is there whenever there is C++
 * code to be named. The alternative, libiberty, is a static library under the LGPL and the GPL with an exception: linking it into
 * ours would put its terms on every application. A program that carries its C++ runtime inside itself and exports nothing gets
 * names from its debug information (unqualified), or the mangled ones. */
#include "profile/demangle.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "core/compiler.h"

typedef char *demangle_function(const char *mangled, char *buffer, size_t *length, int *status);

/* NULL when no C++ runtime is loaded (yet). Loads none: RTLD_NOLOAD. The handle stays open, so that what was found stays there. */
static demangle_function *find_demangler(void)
{
    static const char *const runtimes[] = {"libstdc++.so.6", "libc++abi.so.1", "libc++.so.1"};
    static demangle_function *found;
    if (!found)
        found = (demangle_function *)dlsym(RTLD_DEFAULT, "__cxa_demangle");
    for (size_t i = 0; i < SP_ARRAY_LENGTH(runtimes) && !found; i++) {
        void *runtime = dlopen(runtimes[i], RTLD_LAZY | RTLD_NOLOAD);
        if (runtime)
            found = (demangle_function *)dlsym(runtime, "__cxa_demangle");
    }
    return found;
}

static bool ends_with(const char *text, size_t length, const char *end)
{
    size_t count = strlen(end);
    return length >= count && memcmp(text + length - count, end, count) == 0;
}

/* Length of TEXT without what may follow a parameter list. */
static size_t without_qualifiers(const char *text, size_t length)
{
    static const char *const qualifiers[] = {" const", " volatile", " &&", " &", " noexcept"};
    for (size_t i = 0; i < SP_ARRAY_LENGTH(qualifiers); i++)
        if (ends_with(text, length, qualifiers[i])) {
            length -= strlen(qualifiers[i]);
            i = (size_t)-1; /* from the first one again */
        }
    return length;
}

/* Length of TEXT without its last parameter list; all of it when it does not end in one. Parentheses inside a name ("(anonymous
 * namespace)", "f(int)::{lambda()#1}") stay, and so does the pair of "operator()". */
static size_t without_parameters(const char *text, size_t length)
{
    size_t end = without_qualifiers(text, length);
    int depth = 0;
    for (size_t i = end; i > 0 && end && text[end - 1] == ')'; i--) {
        depth += text[i - 1] == ')' ? 1 : text[i - 1] == '(' ? -1 : 0;
        if (depth == 0)
            return i == 1 || ends_with(text, i - 1, "operator") ? length : i - 1;
    }
    return length;
}

static bool is_name_character(char c)
{
    return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* Whether the word at TEXT + I is "operator", behind which spaces and angle brackets belong to the name. */
static bool is_operator(const char *text, size_t i, size_t length)
{
    static const char word[] = "operator";
    size_t count = sizeof word - 1;
    return length - i > count && memcmp(text + i, word, count) == 0 &&
           (i == 0 || !is_name_character(text[i - 1])) && !is_name_character(text[i + count]);
}

/* Where the name begins behind a return type: templates' names have one ("void ns::f<int>"). */
static size_t behind_return_type(const char *text, size_t length)
{
    size_t begin = 0;
    int depth = 0;
    for (size_t i = 0; i < length && !(depth == 0 && is_operator(text, i, length)); i++) {
        if (strchr("<({[", text[i]))
            depth++;
        else if (strchr(">)}]", text[i]) && !(i && text[i] == '>' && text[i - 1] == '-'))
            depth--;
        else if (text[i] == ' ' && depth == 0)
            begin = i + 1;
    }
    return begin < length ? begin : 0;
}

/* "non-virtual thunk to ns::f(int)": the words before the name, which are worth keeping. */
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
    size_t length = without_parameters(text, strlen(text));
    /* a type stands before the name only where there are parameters behind it: not in "vtable for X" */
    size_t begin = text[length] ? behind_return_type(text, length) : 0;
    sp_buffer_add(out, text + begin, length - begin);
}

bool sp_demangle_cpp(sp_buffer *out, const char *symbol, size_t length)
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
    if (text && status == 0)
        add_short_name(out, text);
    free(text);
    return status == 0;
}
