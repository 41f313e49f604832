/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of a compilation unit, and in C++ the namespaces, classes and functions around
 * them, from DWARF.
 *
 * Compilers write no linkage name for a function that only its own file can call: a lambda, a
 * member of a local class, a function in an anonymous namespace, a template with such an argument.
 * DWARF has only its bare name, "operator()". An entry of DWARF does not say which entry it is
 * nested in, so this is noted when the tree of the unit is read. Collector thread only. */
#ifndef SP_SYMBOL_DWARF_SCOPES_H
#define SP_SYMBOL_DWARF_SCOPES_H

#include <elfutils/libdw.h>

#include "core/buffer.h"
#include "core/intern.h"

/* The functions, types and namespaces of one unit of C++. */
typedef struct sp_scope_table sp_scope_table;

/* Zero-initialised has read nothing. */
typedef struct sp_dwarf_scopes {
    sp_scope_table *tables;
    size_t table_count, table_capacity;
    sp_intern functions; /* the functions that were named; keys are the addresses of entries */
    const char **names;  /* by number of `functions`; NULL: no name */
    size_t name_capacity;
    sp_intern texts; /* what `names` points to */
    sp_buffer text;  /* the name that is being made */
} sp_dwarf_scopes;

/* Called for a function with code; DIE is borrowed. */
typedef void sp_dwarf_each(void *user, const Dwarf_Die *die);

/* Read the tree of UNIT, call EACH for each function with code, and in C++ note all scopes. Call it
 * once for a unit. */
void sp_dwarf_scopes_read(sp_dwarf_scopes *scopes, Dwarf_Die *unit, sp_dwarf_each *each,
                          void *user);

/* The name of FUNCTION, an entry of a function or of an inlined function, with its scopes:
 * "shop::(anonymous namespace)::row::touch", "shop::Cart::fill::{lambda}::operator()". It has no
 * parameters. A lambda is "{lambda:LINE}" if its function has several. Returns NULL when FUNCTION
 * has no scope, when DWARF does not show all of its scopes, when its unit is not C++, and when
 * memory is short. The string
 * lives until deinit. */
const char *sp_dwarf_scopes_name(sp_dwarf_scopes *scopes, Dwarf_Die *function);

/* About how many bytes of memory SCOPES takes. */
size_t sp_dwarf_scopes_bytes(const sp_dwarf_scopes *scopes);
void sp_dwarf_scopes_deinit(sp_dwarf_scopes *scopes);

#endif
