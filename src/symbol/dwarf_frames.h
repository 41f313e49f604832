/* SPDX-License-Identifier: Apache-2.0 */
/* Functions, inlined functions, files and lines of addresses, from DWARF.
 *
 * libdw's dwarf_getscopes reads the whole tree of a compilation unit for each address. Here the
 * units are put in order once, the functions of a unit when it is first asked for, and only the
 * tree of the one function is read for an address. Collector thread only. */
#ifndef SP_SYMBOL_DWARF_FRAMES_H
#define SP_SYMBOL_DWARF_FRAMES_H

#include <elfutils/libdw.h>

#include "core/compiler.h"

/* How many inlined functions deep a chain may be; the innermost ones beyond are left out. */
#define SP_DWARF_DEPTH 64

/* Strings lie in the Dwarf; NULL: not known. file may be relative to directory. */
typedef struct sp_dwarf_frame {
    const char *name;         /* DW_AT_name */
    const char *linkage_name; /* what C++ and Rust have in the symbol table */
    const char *directory;
    const char *file;
    uint32_t line, column, start_line;
} sp_dwarf_frame;

typedef struct sp_dwarf_index sp_dwarf_index;

/* Borrows DWARF until destroy. NULL when it names no addresses, or memory is short. */
sp_dwarf_index *sp_dwarf_index_create(Dwarf *dwarf);
void sp_dwarf_index_destroy(sp_dwarf_index *index);

/* About what INDEX (may be NULL) and DWARF have taken of memory for the units that were asked for:
 * libdw keeps their lines. */
size_t sp_dwarf_index_bytes(const sp_dwarf_index *index);

/* The frames at ADDRESS, innermost inlined function first, the physical function last; how many.
 * One without names means that only the line is known (assembler). 0: nothing is known. */
uint32_t sp_dwarf_frames(sp_dwarf_index *index, uint64_t address,
                         sp_dwarf_frame frames[SP_DWARF_DEPTH]);

/* Where frames may change in the function around ADDRESS: starts of its lines, starts and ends of
 * what is inlined, and its own end, ascending; how many, up to CAPACITY: the lowest then. Between
 * two neighbours all addresses have the same frames. 0: nothing is known. */
uint32_t sp_dwarf_steps(sp_dwarf_index *index, uint64_t address, uint64_t *steps,
                        uint32_t capacity);

#endif
