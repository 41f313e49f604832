/* SPDX-License-Identifier: Apache-2.0 */
/* The sources of names for a module's addresses: DWARF and symbol tables, of the module's file or
 * of its debug file. They are opened when they are needed. Collector thread only. */
#ifndef SP_SYMBOL_MODULE_NAMES_H
#define SP_SYMBOL_MODULE_NAMES_H

#include "symbol/debuginfod.h"
#include "symbol/dwarf_frames.h"
#include "symbol/elf_object.h"
#include "symbol/elf_symbols.h"

/* object, symbols, more and dwarf are set while is_open is true. */
typedef struct sp_module_names {
    bool is_open;
    bool has_warned;     /* a warning about its files was given, which is given only once */
    bool is_marked;      /* `marked` is set */
    bool has_nothing;    /* no file was found when it was last opened */
    bool has_variables;  /* `variables` was read since it was opened */
    bool asked;          /* a debuginfod server was asked */
    bool waits;          /* and its answer is pending */
    const char *fetched; /* the path of the debug file that the server gave; NULL: none */
    uint64_t cost_ns;    /* CPU time that opening took */
    uint64_t ahead_ns;   /* CPU time since then for names of addresses that were not requested */
    sp_file_mark marked; /* the file that was opened first */
    sp_elf_object object;
    sp_elf_symbols symbols;
    sp_elf_symbols more; /* symbols of .gnu_debugdata, which `symbols` lacks */
    sp_elf_symbols variables;
    sp_dwarf_index *dwarf; /* NULL: none */
    const char *base;      /* last part of the path */
    char path[];
} sp_module_names;

/* Create the closed names of the module at PATH (copied; "": the main executable). NULL when memory
 * is short. */
sp_module_names *sp_module_names_create(const char *path);
void sp_module_names_destroy(sp_module_names *names);

/* Open the files of MODULE, or open them again after one was written over. When there is no DWARF,
 * the debug file is requested from DEBUGINFOD (NULL: not wanted). MEANWHILE as for
 * sp_elf_object_open. */
void sp_module_names_open(sp_module_names *names, const sp_module *module,
                          sp_debuginfod *debuginfod, const sp_meanwhile *meanwhile);
/* Close the files. What the server gave, and which file was opened first, is kept. */
void sp_module_names_close(sp_module_names *names);

/* Whether DEBUGINFOD has delivered a debug file since the last call. Then NAMES is closed, and all
 * addresses must be named anew. */
bool sp_module_names_has_answer(sp_module_names *names, const sp_module *module,
                                sp_debuginfod *debuginfod);

/* The ELF symbol at ADDRESS; NULL: none. */
const sp_elf_symbol *sp_module_names_symbol(const sp_module_names *names, uint64_t address);
/* The symbol of the variable at ADDRESS; NULL: none. NAMES must be open. */
const sp_elf_symbol *sp_module_names_variable(sp_module_names *names, uint64_t address);
/* Whether ADDRESS is in data of the module; true also when that is not known. NAMES must be open.
 */
bool sp_module_names_has_data_at(const sp_module_names *names, uint64_t address);

#endif
