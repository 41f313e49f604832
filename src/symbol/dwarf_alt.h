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
 * DEBUG_DIRECTORY has .build-id/ and .dwz/. Returns false when DWARF needs it and only unusable
 * files are at its places (damaged, too large, or of another build id): then libdw would find such
 * a file and give wrong names. PROBLEM (BYTES long) says which file, and why. Returns true with ALT
 * empty when DWARF needs no such file, or when there is none at all; DWARF is used without it then.
 */
bool sp_dwarf_alt_open(sp_dwarf_alt *alt, Dwarf *dwarf, const char *path,
                       const char *debug_directory, char *problem, size_t bytes);
/* Call it after dwarf_end of the Dwarf that it was given to. */
void sp_dwarf_alt_close(sp_dwarf_alt *alt);

#endif
