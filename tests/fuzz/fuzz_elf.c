/* SPDX-License-Identifier: Apache-2.0 */
/* The symbol table of a damaged ELF file: names for addresses, each of them a string that ends
 * inside the file. It is read even when the look at the headers finds a problem, for the vdso is
 * read without that. */
#include "fuzz/fuzz.h"

#include "symbol/elf_check.h"
#include "symbol/elf_file.h"
#include "symbol/elf_symbols.h"

static void check_symbols(const sp_elf_symbols *symbols)
{
    for (size_t i = 0; i < symbols->count; i++) {
        const sp_elf_symbol *symbol = &symbols->list[i];
        FUZZ_CHECK(symbol->start < symbol->end && symbol->name && strlen(symbol->name) > 0);
        FUZZ_CHECK(i == 0 || symbols->list[i - 1].start < symbol->start);
        const sp_elf_symbol *found = sp_elf_symbols_find(symbols, symbol->start);
        FUZZ_CHECK(found && found->start <= symbol->start && symbol->start < found->end);
    }
    sp_elf_symbols_find(symbols, 0);
    sp_elf_symbols_find(symbols, UINT64_MAX);
}

static void check_kind(Elf *elf, sp_elf_symbol_kind kind)
{
    sp_elf_symbols symbols;
    sp_elf_symbols_init(&symbols, kind, elf, NULL);
    check_symbols(&symbols);
    sp_elf_symbols_deinit(&symbols);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length)
{
    elf_version(EV_CURRENT);
    char *image = malloc(length + 1); /* libelf wants to be able to write */
    FUZZ_CHECK(image);
    memcpy(image, data, length);
    Elf *elf = elf_memory(image, length);
    const char *problem = sp_elf_problem(elf, length);
    FUZZ_CHECK(problem || (elf && elf_kind(elf) == ELF_K_ELF));
    if (elf && elf_kind(elf) == ELF_K_ELF) {
        check_kind(elf, SP_ELF_FUNCTIONS);
        check_kind(elf, SP_ELF_VARIABLES);
        sp_elf_has_data_at(elf, UINT64_MAX);
    }
    elf_end(elf);
    free(image);
    return 0;
}
