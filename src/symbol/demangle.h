/* SPDX-License-Identifier: Apache-2.0 */
/* Names of symbols for people.  Threads: one at a time.  Signals: not safe. */
#ifndef SP_SYMBOL_DEMANGLE_H
#define SP_SYMBOL_DEMANGLE_H

#include "core/buffer.h"

/* How much of a symbol's name is shown. The examples are for
 * "_ZN2ns1fISt6vectorIiSaIiEEEEvT_.isra.0", a C++ template. */
typedef enum sp_demangle_style {
    SP_DEMANGLE_SHORT,  /* ns::f<std::vector<int, std::allocator<int> > > */
    SP_DEMANGLE_FOLDED, /* ns::f<…> */
    SP_DEMANGLE_FULL,   /* void ns::f<std::vector<int, std::allocator<int> > >(std::vector<int,
                           std::allocator<int> >) */
    SP_DEMANGLE_NONE, /* the symbol itself; the other styles give it, without a clone's suffix, when
                         they cannot demangle it */
} sp_demangle_style;

/* Write the name of SYMBOL in STYLE into OUT, which is emptied first. Except in SP_DEMANGLE_NONE,
 * suffixes of compiler-made clones (".isra.0") are left out; Rust's hashes are shown only in
 * SP_DEMANGLE_FULL. OUT is left failed when it is too small or memory is short. */
void sp_demangle(sp_buffer *out, const char *symbol, sp_demangle_style style);

/* The demanglers, which sp_demangle tries one after the other. Each appends to OUT and returns
 * whether it could read SYMBOL; when it could not, OUT may contain a part of a name. LENGTH counts
 * the symbol without a clone's suffix. FULL: nothing is left out; else the name is short. */
bool sp_demangle_rust_legacy(sp_buffer *out, const char *symbol, size_t length, bool full);
bool sp_demangle_rust_v0(sp_buffer *out, const char *symbol, size_t length, bool full);
bool sp_demangle_cpp(sp_buffer *out, const char *symbol, size_t length, bool full);

/* The length of the operator's name at AT of the demangled TEXT (LENGTH bytes) if it contains
 * brackets ("operator<<", "operator()"); else 0. */
size_t sp_demangle_operator(const char *text, size_t at, size_t length);
/* The offset after the bracket that closes the one at BEGIN, 0 when none does. Brackets in names of
 * operators do not count. */
size_t sp_demangle_group(const char *text, size_t begin, size_t length);
/* Replace template arguments in the demangled NAME by "…". False, with NAME failed, when there is
 * no room for that. */
bool sp_demangle_fold(sp_buffer *name);

#endif
