/* SPDX-License-Identifier: Apache-2.0 */
/* The files that have the names of one module. Only local files are read: neither this code nor the
 * parts of elfutils that it uses ask a debuginfod server (debuginfod.h does, if configured).
 * Collector thread only. */
#ifndef SP_SYMBOL_ELF_OBJECT_H
#define SP_SYMBOL_ELF_OBJECT_H

#include <elfutils/libdw.h>
#include <gelf.h>

#include "symbol/dwarf_alt.h"
#include "symbol/elf_debugdata.h"
#include "symbol/file_mark.h"
#include "symbol/meanwhile.h"
#include "unwind/module.h"

/* loaded: the file (for the vdso, the memory) that the process runs; NULL when it was removed,
 * replaced, or is damaged. debug: its separate debug file; NULL when there is none or none is
 * needed. dwarf: the debug information of one of them; NULL when neither has any. alt: the part of
 * dwarf that several files share. debugdata: symbols inside a stripped `loaded`, used when neither
 * file has a .symtab. Zero-initialised is empty. */
typedef struct sp_elf_object {
    Elf *loaded;
    Elf *debug;
    Dwarf *dwarf;
    sp_file_mark loaded_mark, debug_mark; /* the files, which are mapped */
    sp_dwarf_alt alt;
    sp_elf_debugdata debugdata;
} sp_elf_object;

/* Find and open the files for MODULE's names. Members for missing files are NULL. A file that is
 * damaged, or is not the loaded one, is named in a warning and *WARNED is set; if *WARNED was set
 * before, the warning is a debug message. FETCHED: the path of a debug file that a server gave,
 * used when there is no local one; NULL: none. MEANWHILE is called now and then during long work.
 */
void sp_elf_object_open(sp_elf_object *object, const sp_module *module, const char *fetched,
                        bool *warned, const sp_meanwhile *meanwhile);
void sp_elf_object_close(sp_elf_object *object);
/* Whether one of the files was written over. Then no data of OBJECT may be accessed any more;
 * closing it is safe. */
bool sp_elf_object_is_written(const sp_elf_object *object);

/* Search separate debug files below DIRECTORY instead of /usr/lib/debug. For tests; DIRECTORY is
 * borrowed for ever. */
void sp_elf_object_set_debug_directory(const char *directory);

#endif
