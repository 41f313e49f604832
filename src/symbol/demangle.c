/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol/demangle.h"

#include <string.h>

#include "core/compiler.h"

/* Longer names are not demangled, because a demangler's recursion grows with them. */
enum { LONGEST_SYMBOL = 8192 };

/* The length of SYMBOL without what compilers append to the name of a copy or a part of a function.
 * All such suffixes begin with a dot, which is in no mangled name. Other suffixes with a dot
 * (".plt", ".avx2" of a hand-written variant) mean something to people and stay. */
static size_t length_without_clone(const char *symbol)
{
    static const char *const suffixes[] = {".isra.", ".part.",     ".constprop.", ".cold",
                                           ".llvm.", ".lto_priv.", ".localalias"};
    size_t length = strlen(symbol);
    for (size_t i = 0; i < SP_ARRAY_LENGTH(suffixes); i++) {
        const char *found = strstr(symbol, suffixes[i]);
        if (found && found > symbol && (size_t)(found - symbol) < length)
            length = (size_t)(found - symbol);
    }
    return length;
}

void sp_demangle(sp_buffer *out, const char *symbol, sp_demangle_style style)
{
    static bool (*const demanglers[])(sp_buffer *, const char *, size_t, bool) = {
        sp_demangle_rust_v0, sp_demangle_rust_legacy, sp_demangle_cpp};
    bool mangled = symbol[0] == '_' && style != SP_DEMANGLE_NONE;
    size_t length = style == SP_DEMANGLE_NONE ? strlen(symbol) : length_without_clone(symbol);
    for (size_t i = 0; i < SP_ARRAY_LENGTH(demanglers) && mangled && length <= LONGEST_SYMBOL;
         i++) {
        sp_buffer_clear(out);
        bool read = demanglers[i](out, symbol, length, style == SP_DEMANGLE_FULL);
        if (read && out->length && !out->failed &&
            (style != SP_DEMANGLE_FOLDED || sp_demangle_fold(out)))
            return;
    }
    out->failed = false; /* a result too large for OUT: the symbol as it is may fit */
    sp_buffer_clear(out);
    sp_buffer_add(out, symbol, length);
}
