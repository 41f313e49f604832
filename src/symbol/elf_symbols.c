/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol/elf_symbols.h"

#include <stdlib.h>
#include <string.h>

/* How many symbols before an address are tried: a function may contain others (assembler labels),
 * which begin nearer to the address. */
enum { NESTED_SYMBOLS = 16 };

enum { RANK_UNSIZED = 1 << 6 }; /* the bit of rank_of for symbols without size */

/* The addresses of one section, in an array by section number. */
typedef struct symbol_section {
    uint64_t start, end; /* equal: symbols of this kind are not in it */
} symbol_section;

static bool has_kind(const GElf_Shdr *section, sp_elf_symbol_kind kind)
{
    static const uint64_t flags = SHF_ALLOC | SHF_WRITE;
    if (kind == SP_ELF_FUNCTIONS)
        return (section->sh_flags & SHF_EXECINSTR) != 0;
    return (section->sh_flags & (flags | SHF_TLS)) == flags;
}

static symbol_section *read_sections(Elf *elf, sp_elf_symbol_kind kind, size_t *count)
{
    if (elf_getshdrnum(elf, count) != 0)
        return NULL;
    symbol_section *sections = calloc(*count ? *count : 1, sizeof *sections);
    for (Elf_Scn *section = NULL; sections && (section = elf_nextscn(elf, section));) {
        GElf_Shdr header;
        size_t number = elf_ndxscn(section);
        if (number < *count && gelf_getshdr(section, &header) && has_kind(&header, kind) &&
            header.sh_size <= UINT64_MAX - header.sh_addr)
            sections[number] = (symbol_section){header.sh_addr, header.sh_addr + header.sh_size};
    }
    return sections;
}

/* The rank of a name among several for one address; the lowest is the best. First a function before
 * a bare label, then a name with a size, then a global before a weak before a local name ("qsort"
 * before "__qsort_internal_alias"), then the name with fewer leading underscores. */
static uint32_t rank_of(const GElf_Sym *symbol, const char *name)
{
    static const uint32_t by_binding[] = {[STB_LOCAL] = 2, [STB_GLOBAL] = 0, [STB_WEAK] = 1};
    unsigned binding = GELF_ST_BIND(symbol->st_info);
    uint32_t rank = GELF_ST_TYPE(symbol->st_info) == STT_NOTYPE;
    rank = rank << 1 | (symbol->st_size == 0);
    rank = rank << 2 | (binding < SP_ARRAY_LENGTH(by_binding) ? by_binding[binding] : 0);
    size_t underscores = strspn(name, "_");
    return rank << 4 | (uint32_t)(underscores < 15 ? underscores : 15);
}

/* Whether SYMBOL is a function, an indirect function, or a label in code, as assembler makes it.
 * Labels like "$x" mark instruction sets on ARM and do not count; but names of functions may begin
 * with "$", as Swift's do. */
static bool is_function(const GElf_Sym *symbol, const char *name)
{
    unsigned type = GELF_ST_TYPE(symbol->st_info);
    if (!name || !name[0])
        return false;
    return type == STT_FUNC || type == STT_GNU_IFUNC || (type == STT_NOTYPE && name[0] != '$');
}

/* Labels in data, like the linker's "__bss_start", have no size and are no variables. */
static bool is_variable(const GElf_Sym *symbol, const char *name)
{
    return name && name[0] && symbol->st_size && GELF_ST_TYPE(symbol->st_info) == STT_OBJECT;
}

static bool is_of_kind(const GElf_Sym *symbol, const char *name, sp_elf_symbol_kind kind)
{
    return kind == SP_ELF_FUNCTIONS ? is_function(symbol, name) : is_variable(symbol, name);
}

static int compare_symbols(const void *a, const void *b)
{
    const sp_elf_symbol *left = a, *right = b;
    if (left->start != right->start)
        return left->start < right->start ? -1 : 1;
    if (left->rank != right->rank)
        return left->rank < right->rank ? -1 : 1;
    return strcmp(left->name, right->name);
}

/* Keep the best symbol of each start. Each symbol without a size gets an end: the next symbol, or
 * the end of its section (which read_table has set). */
static void sort_and_merge(sp_elf_symbols *symbols)
{
    size_t kept = 0;
    if (symbols->count)
        qsort(symbols->list, symbols->count, sizeof *symbols->list, compare_symbols);
    for (size_t i = 0; i < symbols->count; i++) {
        bool unsized = kept && (symbols->list[kept - 1].rank & RANK_UNSIZED);
        if (kept && symbols->list[kept - 1].start == symbols->list[i].start)
            continue;
        if (unsized && symbols->list[kept - 1].end > symbols->list[i].start)
            symbols->list[kept - 1].end = symbols->list[i].start;
        symbols->list[kept++] = symbols->list[i];
    }
    symbols->count = kept;
}

/* Read the table in SECTION. In a dynamic table a symbol without size covers only its own address,
 * because functions that are not exported may follow it. */
static void read_table(sp_elf_symbols *symbols, sp_elf_symbol_kind kind, Elf *elf, Elf_Scn *section,
                       const GElf_Shdr *header)
{
    size_t section_count;
    Elf_Data *data = elf_getdata(section, NULL);
    size_t count = data && header->sh_entsize ? data->d_size / header->sh_entsize : 0;
    symbol_section *sections = count ? read_sections(elf, kind, &section_count) : NULL;
    symbols->list = sections ? malloc(count * sizeof *symbols->list) : NULL;
    for (size_t i = 1; i < count && symbols->list; i++) {
        GElf_Sym symbol;
        if (!gelf_getsym(data, (int)i, &symbol) || symbol.st_shndx >= section_count)
            continue;
        const char *name = elf_strptr(elf, header->sh_link, symbol.st_name);
        symbol_section within = sections[symbol.st_shndx];
        if (!is_of_kind(&symbol, name, kind) || symbol.st_value < within.start ||
            symbol.st_value >= within.end)
            continue;
        uint64_t size = sp_min_u64(symbol.st_size, within.end - symbol.st_value);
        if (!size)
            size = header->sh_type == SHT_DYNSYM ? 1 : within.end - symbol.st_value;
        symbols->list[symbols->count++] =
            (sp_elf_symbol){symbol.st_value, symbol.st_value + size, name, rank_of(&symbol, name)};
    }
    free(sections);
    sort_and_merge(symbols);
}

static void read_table_of_type(sp_elf_symbols *symbols, sp_elf_symbol_kind kind, Elf *elf,
                               uint32_t type)
{
    for (Elf_Scn *section = NULL;
         elf && !symbols->count && (section = elf_nextscn(elf, section));) {
        GElf_Shdr header;
        if (gelf_getshdr(section, &header) && header.sh_type == type) {
            free(symbols->list);
            read_table(symbols, kind, elf, section, &header);
        }
    }
}

void sp_elf_symbols_init(sp_elf_symbols *symbols, sp_elf_symbol_kind kind, Elf *loaded, Elf *debug)
{
    *symbols = (sp_elf_symbols){0};
    read_table_of_type(symbols, kind, loaded, SHT_SYMTAB);
    read_table_of_type(symbols, kind, debug, SHT_SYMTAB);
    read_table_of_type(symbols, kind, loaded, SHT_DYNSYM);
}

void sp_elf_symbols_deinit(sp_elf_symbols *symbols)
{
    free(symbols->list);
    *symbols = (sp_elf_symbols){0};
}

const sp_elf_symbol *sp_elf_symbols_find(const sp_elf_symbols *symbols, uint64_t address)
{
    size_t low = 0, high = symbols->count;
    while (low < high) { /* low: the number of symbols that start at or before ADDRESS */
        size_t middle = low + (high - low) / 2;
        if (symbols->list[middle].start <= address)
            low = middle + 1;
        else
            high = middle;
    }
    const sp_elf_symbol *label = NULL; /* used when no sized one covers ADDRESS */
    for (size_t i = low; i > 0 && low - i < NESTED_SYMBOLS; i--) {
        const sp_elf_symbol *symbol = &symbols->list[i - 1];
        if (address < symbol->end && !(symbol->rank & RANK_UNSIZED))
            return symbol;
        if (address < symbol->end && !label)
            label = symbol;
    }
    return label;
}
