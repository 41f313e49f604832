/* SPDX-License-Identifier: Apache-2.0 */
/* The functions, or the variables, that an ELF symbol table names, by address.  Collector thread
 * only. */
#ifndef SP_SYMBOL_ELF_SYMBOLS_H
#define SP_SYMBOL_ELF_SYMBOLS_H

#include <gelf.h>

#include "core/compiler.h"

/* [start, end) in ELF virtual addresses. name is in the mapped file and may end in "@VERSION". */
typedef struct sp_elf_symbol {
    uint64_t start, end;
    const char *name;
    uint32_t rank; /* among symbols with the same start: less is better */
} sp_elf_symbol;

/* Sorted by start, one for each start. Ranges may overlap. Zero-initialised is empty. */
typedef struct sp_elf_symbols {
    sp_elf_symbol *list;
    size_t count;
} sp_elf_symbols;

/* SP_ELF_VARIABLES: writable variables that have a size, without thread-local ones. */
typedef enum sp_elf_symbol_kind { SP_ELF_FUNCTIONS, SP_ELF_VARIABLES } sp_elf_symbol_kind;

/* Read the symbols of KIND from the best table that LOADED or DEBUG has (either may be NULL):
 * .symtab of either, else .dynsym. Borrows both until deinit. Leaves an empty table when there is
 * none, or memory is short. */
void sp_elf_symbols_init(sp_elf_symbols *symbols, sp_elf_symbol_kind kind, Elf *loaded, Elf *debug);
void sp_elf_symbols_deinit(sp_elf_symbols *symbols);

/* The symbol that covers ADDRESS, or the nearest of several; NULL: none. */
const sp_elf_symbol *sp_elf_symbols_find(const sp_elf_symbols *symbols, uint64_t address);

#endif
