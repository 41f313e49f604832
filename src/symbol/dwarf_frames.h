/* SPDX-License-Identifier: Apache-2.0 */
/* Functions, inlined functions, files and lines of addresses, from DWARF.
 *
 * libdw's dwarf_getscopes reads the whole tree of a compilation unit for each address. Here the
 * units are sorted once, the functions of a unit when one of its addresses is first requested, and
 * for an address only the tree of its function is read. Collector thread only. */
#ifndef SP_SYMBOL_DWARF_FRAMES_H
#define SP_SYMBOL_DWARF_FRAMES_H

#include <elfutils/libdw.h>

#include "core/compiler.h"

/* The most frames of one address. Inlined functions that are nested deeper are left out. */
#define SP_DWARF_DEPTH 64

/* The strings belong to the Dwarf or to the index; NULL: not known. `file` may be relative to
 * `directory`. */
typedef struct sp_dwarf_frame {
    /* DW_AT_name; in C++, when there is no linkage name, with its scopes (dwarf_scopes.h) */
    const char *name;
    const char *linkage_name; /* what C++ and Rust have in the symbol table */
    const char *directory;
    const char *file;
    uint32_t line, column, start_line;
} sp_dwarf_frame;

typedef struct sp_dwarf_index sp_dwarf_index;

/* Borrows DWARF until destroy. NULL when it has no addresses, when its sections end too close to
 * the file's end, or when memory is short. */
sp_dwarf_index *sp_dwarf_index_create(Dwarf *dwarf);
void sp_dwarf_index_destroy(sp_dwarf_index *index);

/* About how many bytes of memory INDEX (may be NULL) takes, with the lines of the units that were
 * read: libdw keeps them. */
size_t sp_dwarf_index_bytes(const sp_dwarf_index *index);

/* The frames at ADDRESS, innermost inlined function first, the physical function last; returns how
 * many. A frame without names means that only the line is known (assembler). 0: nothing is known.
 */
uint32_t sp_dwarf_frames(sp_dwarf_index *index, uint64_t address,
                         sp_dwarf_frame frames[SP_DWARF_DEPTH]);

/* Fill STEPS with the addresses where frames may change in the function around ADDRESS: starts of
 * its lines, starts and ends of inlined functions, its own start and end. They ascend; all
 * addresses between two neighbours have the same frames. Returns how many; when there are more than
 * CAPACITY, the lowest are given. 0: nothing is known, also when sp_dwarf_frames was not yet called
 * for that unit. */
uint32_t sp_dwarf_steps(sp_dwarf_index *index, uint64_t address, uint64_t *steps,
                        uint32_t capacity);

#endif
