/* SPDX-License-Identifier: Apache-2.0 */
/* The files that the names of one module come from. Only local files are looked at: nothing here,
 * nor in the parts of elfutils that are used, asks a debuginfod server (debuginfod.h does, when
 * asked to). Collector thread only. */
#ifndef SP_SYMBOL_ELF_OBJECT_H
#define SP_SYMBOL_ELF_OBJECT_H

#include <elfutils/libdw.h>
#include <gelf.h>

#include "symbol/dwarf_alt.h"
#include "symbol/elf_debugdata.h"
#include "symbol/file_mark.h"
#include "symbol/meanwhile.h"
#include "unwind/module.h"

/* loaded: the file (or, for the vdso, the memory) that the process runs; NULL when it is gone,
 * replaced by another one, or damaged. debug: its separate debug file, NULL when there is none or
 * none is needed. dwarf: of either; NULL when neither has any. alt: what dwarf shares with other
 * files. debugdata: symbols inside a stripped `loaded`, where neither file has a .symtab.
 * Zero-initialised is one without anything. */
typedef struct sp_elf_object {
    Elf *loaded;
    Elf *debug;
    Dwarf *dwarf;
    sp_file_mark loaded_mark, debug_mark; /* the files, which are mapped */
    sp_dwarf_alt alt;
    sp_elf_debugdata debugdata;
} sp_elf_object;

/* Find and open what MODULE's names come from. What is missing is NULL; each file that is damaged,
 * or not the one that was loaded, is named in one warning, or where *WARNED (it was said before) in
 * a line for debugging; *WARNED is set then. FETCHED: the path of a debug file that a server gave,
 * used where no local one is; NULL: none. MEANWHILE is done now and then where it takes long. */
void sp_elf_object_open(sp_elf_object *object, const sp_module *module, const char *fetched,
                        bool *warned, const sp_meanwhile *meanwhile);
void sp_elf_object_close(sp_elf_object *object);
/* One of the files was written over: nothing of OBJECT may be looked at any more, but it can be
 * closed. */
bool sp_elf_object_is_written(const sp_elf_object *object);

/* Look for separate debug files below DIRECTORY instead of /usr/lib/debug. For tests; DIRECTORY is
 * borrowed for ever. */
void sp_elf_object_set_debug_directory(const char *directory);

#endif
