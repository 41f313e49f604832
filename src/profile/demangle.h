/* SPDX-License-Identifier: Apache-2.0 */
/* Names of symbols for people.  Threads: one at a time.  Signals: not safe. */
#ifndef SP_PROFILE_DEMANGLE_H
#define SP_PROFILE_DEMANGLE_H

#include "core/buffer.h"

/* Write into OUT (emptied first) what people call SYMBOL: C++ and Rust names demangled, without parameters, return type, Rust's
 * hash, and the suffixes of compiler-made clones (".isra.0"). SYMBOL itself when it is not mangled, or not well.
 * "_ZN2ns1fIiEEvPc" gives "ns::f<int>". OUT is left failed when it is too small or memory is short. */
void sp_demangle_short(sp_buffer *out, const char *symbol);

/* The parts, which sp_demangle_short tries in turn. Each appends to OUT and returns whether SYMBOL is of its kind; OUT may hold
 * rubbish when it is not. LENGTH counts the symbol without a clone's suffix. */
bool sp_demangle_rust_legacy(sp_buffer *out, const char *symbol, size_t length);
bool sp_demangle_rust_v0(sp_buffer *out, const char *symbol, size_t length);
bool sp_demangle_cpp(sp_buffer *out, const char *symbol, size_t length);

#endif
