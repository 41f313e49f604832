/* SPDX-License-Identifier: Apache-2.0 */
/* Names of symbols for people.  Threads: one at a time.  Signals: not safe. */
#ifndef SP_SYMBOL_DEMANGLE_H
#define SP_SYMBOL_DEMANGLE_H

#include "core/buffer.h"

/* How much of a symbol's name is shown. Of "_ZN2ns1fISt6vectorIiSaIiEEEEvT_.isra.0", which is a C++
 * template: */
typedef enum sp_demangle_style {
    SP_DEMANGLE_SHORT,  /* ns::f<std::vector<int, std::allocator<int> > > */
    SP_DEMANGLE_FOLDED, /* ns::f<…> */
    SP_DEMANGLE_FULL,   /* void ns::f<std::vector<int, std::allocator<int> > >(std::vector<int,
                           std::allocator<int> >) */
    SP_DEMANGLE_NONE,   /* the symbol, which the others give for what is not mangled, or not well */
} sp_demangle_style;

/* Write into OUT (emptied first) what people call SYMBOL, in STYLE. The suffixes of compiler-made
 * clones (".isra.0") go, Rust's hashes but in FULL. OUT is left failed when it is too small or
 * memory is short. */
void sp_demangle(sp_buffer *out, const char *symbol, sp_demangle_style style);

/* The parts, which sp_demangle tries in turn. Each appends to OUT and returns whether SYMBOL is of
 * its kind; OUT may hold rubbish when it is not. LENGTH counts the symbol without a clone's suffix.
 * FULL: nothing is left out; else the name is short. */
bool sp_demangle_rust_legacy(sp_buffer *out, const char *symbol, size_t length, bool full);
bool sp_demangle_rust_v0(sp_buffer *out, const char *symbol, size_t length, bool full);
bool sp_demangle_cpp(sp_buffer *out, const char *symbol, size_t length, bool full);

/* In a demangled TEXT of LENGTH bytes: the length of an operator's name at AT when brackets are
 * part of it ("operator<<", "operator()"), else 0. */
size_t sp_demangle_operator(const char *text, size_t at, size_t length);
/* Where the bracket that opens at BEGIN has been closed, names of operators stepped over; 0 when it
 * is not. */
size_t sp_demangle_group(const char *text, size_t begin, size_t length);
/* Template arguments in the demangled NAME become "…". False, and NAME failed, when there is no
 * room for that. */
bool sp_demangle_fold(sp_buffer *name);

#endif
