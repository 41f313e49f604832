/* SPDX-License-Identifier: Apache-2.0 */
/* libelf trusts most values in headers. It treats a value that it does not trust as absent: then
 * names would be missing without a warning. So every count and every range is compared with the
 * file's size here, before other code reads them. */
#include "symbol/elf_check.h"

#include <limits.h>
#include <link.h>
#include <stdlib.h>

/* The place of a section in the file. */
typedef struct extent {
    uint64_t start, end;
} extent;

/* What the checks of one file share. sections[1..count) have been read. */
typedef struct checked_file {
    Elf *elf;
    uint64_t size;
    GElf_Ehdr header;
    GElf_Shdr *sections;
    size_t count;
    size_t names; /* number of the section with the names of sections */
} checked_file;

static bool is_inside(const checked_file *file, uint64_t offset, uint64_t count, uint64_t each)
{
    uint64_t bytes;
    return !__builtin_mul_overflow(count, each, &bytes) && offset <= file->size &&
           bytes <= file->size - offset;
}

static const char *check_header(checked_file *file)
{
    const char *identity = elf_getident(file->elf, NULL);
    const uint16_t one = 1;
    const int native = *(const uint8_t *)&one ? ELFDATA2LSB : ELFDATA2MSB;
    if (!gelf_getehdr(file->elf, &file->header) || !identity)
        return "not an ELF file, or a damaged one";
    if (identity[EI_CLASS] != (sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32) ||
        identity[EI_DATA] != native)
        return "made for another kind of processor";
    if (identity[EI_VERSION] != EV_CURRENT || file->header.e_version != EV_CURRENT)
        return "of an unknown version of ELF";
    if (file->header.e_ehsize != sizeof(ElfW(Ehdr)))
        return "its ELF header has a wrong size";
    return NULL;
}

/* With 65,535 program headers or more, section 0 has their number. libelf counts only those that
 * fit into the file, so the larger number is checked. The contents of program headers are not
 * checked, because a file for debugging lacks them. */
static const char *check_program_headers(checked_file *file)
{
    size_t count;
    if (file->header.e_phnum == 0)
        return NULL;
    if (file->header.e_phentsize != sizeof(ElfW(Phdr)))
        return "its program headers have a wrong size";
    if (elf_getphdrnum(file->elf, &count) != 0 ||
        !is_inside(file, file->header.e_phoff, sp_max_u64(count, file->header.e_phnum),
                   sizeof(ElfW(Phdr))))
        return "its program headers lie outside the file (truncated?)";
    return NULL;
}

/* Section headers are at the end of most files. libelf treats those outside of the file as if there
 * were none. */
static const char *check_section_headers(checked_file *file)
{
    if (file->header.e_shoff == 0)
        return file->header.e_shnum || file->header.e_shstrndx ? "it has sections but no headers"
                                                               : NULL;
    if (file->header.e_shentsize != sizeof(ElfW(Shdr)))
        return "its section headers have a wrong size";
    uint64_t least = sp_max_u64(file->header.e_shnum, 1);
    if (!is_inside(file, file->header.e_shoff, least, sizeof(ElfW(Shdr))) ||
        elf_getshdrnum(file->elf, &file->count) != 0 ||
        !is_inside(file, file->header.e_shoff, file->count, sizeof(ElfW(Shdr))))
        return "its section headers lie outside the file (truncated?)";
    if (file->count == 0)
        return "it has section headers, and none of them counts";
    return NULL;
}

static const char *read_sections(checked_file *file)
{
    file->sections = calloc(file->count ? file->count : 1, sizeof *file->sections);
    if (!file->sections)
        return "memory is short";
    for (size_t i = 1; i < file->count; i++) {
        Elf_Scn *section = elf_getscn(file->elf, i);
        const GElf_Shdr *header = &file->sections[i];
        if (!section || !gelf_getshdr(section, &file->sections[i]))
            return "a section header cannot be read";
        if (header->sh_type != SHT_NOBITS && header->sh_type != SHT_NULL &&
            !is_inside(file, header->sh_offset, header->sh_size, 1))
            return "a section lies outside the file (truncated?)";
    }
    return NULL;
}

static int compare_extents(const void *a, const void *b)
{
    const extent *left = a, *right = b;
    return left->start < right->start ? -1 : left->start > right->start;
}

static const char *check_overlaps(checked_file *file)
{
    size_t count = 0;
    extent *extents = calloc(file->count + 1, sizeof *extents);
    if (!extents)
        return "memory is short";
    for (size_t i = 1; i < file->count; i++) {
        const GElf_Shdr *header = &file->sections[i];
        if (header->sh_type != SHT_NOBITS && header->sh_type != SHT_NULL && header->sh_size)
            extents[count++] = (extent){header->sh_offset, header->sh_offset + header->sh_size};
    }
    qsort(extents, count, sizeof *extents, compare_extents);
    bool overlap = count && extents[0].start < sizeof(ElfW(Ehdr));
    for (size_t i = 1; i < count; i++)
        overlap |= extents[i].start < extents[i - 1].end;
    free(extents);
    return overlap ? "its sections overlap" : NULL;
}

/* Whether section NUMBER is a table of strings that ends in a NUL, so that reading a string ends
 * inside of it. A compressed one is refused: no tool makes it, and libelf would inflate it. */
static bool is_string_table(checked_file *file, size_t number)
{
    if (number == 0 || number >= file->count)
        return false;
    const GElf_Shdr *header = &file->sections[number];
    if (header->sh_type != SHT_STRTAB || (header->sh_flags & SHF_COMPRESSED) || !header->sh_size)
        return false;
    Elf_Data *data = elf_rawdata(elf_getscn(file->elf, number), NULL);
    return data && data->d_buf && data->d_size == header->sh_size &&
           ((const char *)data->d_buf)[data->d_size - 1] == 0;
}

static const char *check_section_names(checked_file *file)
{
    if (file->count == 0)
        return NULL;
    if (elf_getshdrstrndx(file->elf, &file->names) != 0 || !is_string_table(file, file->names))
        return "the names of its sections are damaged";
    for (size_t i = 1; i < file->count; i++)
        if (file->sections[i].sh_name >= file->sections[file->names].sh_size)
            return "the names of its sections are damaged";
    return NULL;
}

static const char *check_symbol_tables(checked_file *file)
{
    for (size_t i = 1; i < file->count; i++) {
        const GElf_Shdr *header = &file->sections[i];
        if (header->sh_type != SHT_SYMTAB && header->sh_type != SHT_DYNSYM)
            continue;
        if (header->sh_entsize != sizeof(ElfW(Sym)) || header->sh_size % sizeof(ElfW(Sym)) ||
            header->sh_size / sizeof(ElfW(Sym)) > INT_MAX || (header->sh_flags & SHF_COMPRESSED))
            return "its symbol table has entries of a wrong size";
        if (header->sh_size && !is_string_table(file, header->sh_link))
            return "the names of its symbols are damaged";
    }
    return NULL;
}

const char *sp_elf_problem(Elf *elf, uint64_t size)
{
    static const char *(*const checks[])(checked_file *) = {
        check_header,   check_program_headers, check_section_headers, read_sections,
        check_overlaps, check_section_names,   check_symbol_tables};
    checked_file file = {.elf = elf, .size = size};
    const char *problem =
        elf && elf_kind(elf) == ELF_K_ELF ? NULL : "not an ELF file, or a damaged one";
    for (size_t i = 0; i < SP_ARRAY_LENGTH(checks) && !problem; i++)
        problem = checks[i](&file);
    free(file.sections);
    return problem;
}
