/* SPDX-License-Identifier: Apache-2.0 */
/* The file that several debug files share (dwz -m): .gnu_debugaltlink names it.  Collector thread
 * only. */
#ifndef SP_SYMBOL_DWARF_ALT_H
#define SP_SYMBOL_DWARF_ALT_H

#include <elfutils/libdw.h>

#include "symbol/elf_file.h"

/* Zero-initialised is none. */
typedef struct sp_dwarf_alt {
    Elf *elf;
    Dwarf *dwarf;
    sp_file_mark mark; /* of the file, which is mapped */
} sp_dwarf_alt;

/* Find the file that DWARF, of the file PATH, shares with others, and give it to DWARF.
 * DEBUG_DIRECTORY has .build-id/ and .dwz/. False: it is needed, and a file at its place is another
 * one, so that DWARF would give wrong names; PROBLEM (BYTES long) says which. True with none: none
 * is needed, or there is no file at all, and DWARF gives what it has without. */
bool sp_dwarf_alt_open(sp_dwarf_alt *alt, Dwarf *dwarf, const char *path,
                       const char *debug_directory, char *problem, size_t bytes);
/* After dwarf_end of the one that it was given to. */
void sp_dwarf_alt_close(sp_dwarf_alt *alt);

#endif
