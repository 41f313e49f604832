/* SPDX-License-Identifier: Apache-2.0 */
/* What names a module's addresses, opened when it is needed: the file's or its debug file's DWARF,
 * and symbol tables. Collector thread only. */
#ifndef SP_SYMBOL_MODULE_NAMES_H
#define SP_SYMBOL_MODULE_NAMES_H

#include "symbol/debuginfod.h"
#include "symbol/dwarf_frames.h"
#include "symbol/elf_object.h"
#include "symbol/elf_symbols.h"

/* object, symbols, more and dwarf are there while it is open. */
typedef struct sp_module_names {
    bool is_open;
    bool has_warned;     /* of its files: once is enough */
    bool is_marked;      /* `marked` is set */
    bool has_nothing;    /* no file was found when it was last opened */
    bool has_variables;  /* `variables` was read since it was opened */
    bool asked;          /* a debuginfod server, */
    bool waits;          /* and the answer has not been seen */
    const char *fetched; /* what the server gave: the path of a debug file; NULL */
    uint64_t cost_ns;    /* CPU time that opening took */
    uint64_t ahead_ns;   /* spent since then on names of addresses that nobody asked for */
    sp_file_mark marked; /* the file, as first opened */
    sp_elf_object object;
    sp_elf_symbols symbols;
    sp_elf_symbols more; /* what symbols lacks: of .gnu_debugdata */
    sp_elf_symbols variables;
    sp_dwarf_index *dwarf; /* NULL: none */
    const char *base;      /* last part of the path */
    char path[];
} sp_module_names;

/* For a module at PATH (copied; "": the main executable), not open. NULL when memory is short. */
sp_module_names *sp_module_names_create(const char *path);
void sp_module_names_destroy(sp_module_names *names);

/* Open what there is, or is there now after it was written over. What is missing here is asked of
 * DEBUGINFOD (NULL: not wanted). MEANWHILE as for sp_elf_object_open. */
void sp_module_names_open(sp_module_names *names, const sp_module *module,
                          sp_debuginfod *debuginfod, const sp_meanwhile *meanwhile);
/* What is known of where to look stays. */
void sp_module_names_close(sp_module_names *names);

/* Whether a debug file has come from DEBUGINFOD since: all addresses are to be named anew. NAMES is
 * closed then. */
bool sp_module_names_has_answer(sp_module_names *names, const sp_module *module,
                                sp_debuginfod *debuginfod);

/* The ELF symbol at ADDRESS; NULL: none. */
const sp_elf_symbol *sp_module_names_symbol(const sp_module_names *names, uint64_t address);
/* The same of a variable. NAMES is open. */
const sp_elf_symbol *sp_module_names_variable(sp_module_names *names, uint64_t address);
/* Whether ADDRESS is in data of the module, as far as that is known. NAMES is open. */
bool sp_module_names_has_data_at(const sp_module_names *names, uint64_t address);

#endif
