/* SPDX-License-Identifier: Apache-2.0 */
/* Finds, from outside, where a thread's otel_thread_ctx_v1 is (OTEP 4947).
 *
 * Every module that has the symbol in its dynamic symbol table, defined or undefined, has
 * relocations for it, unless it is the executable and the linker knew the offset. The loader writes
 * the result of such a relocation into the module's memory, where it is read. So this code needs no
 * knowledge of the loader's own data.
 *
 * - TPOFF, one word: the offset from the thread pointer.
 * - DTPMOD, two words: the number of the module that has the variable, and the offset in that
 *   module's block.
 * - TLSDESC, two words: a function, and its argument: the offset from the thread pointer, or the
 *   address of two words as of DTPMOD.
 * - No relocation, the executable's own variable: its block is at the thread pointer, by the
 *   rules of the architecture.
 *
 * A block that is not at a fixed distance from the thread pointer is found through the thread's
 * vector of blocks (dtv). The address of the vector is beside the thread pointer, at a place that
 * depends on the C library. A thread that has never used the variable has no such block. */
#include <elf.h>
#include <errno.h>
#include <gelf.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "outside/outside_internal.h"
#include "symbol/elf_file.h"

#define SYMBOL "otel_thread_ctx_v1"

/* No process has more modules than this. */
enum { MODULES_MAX = 65536 };

#if defined(__x86_64__)
enum {
    TPOFF = R_X86_64_TPOFF64,
    DTPMOD = R_X86_64_DTPMOD64,
    TLSDESC = R_X86_64_TLSDESC,
    GLIBC_VECTOR_AT = 8, /* from the thread pointer */
    MUSL_VECTOR_AT = 8,
};
#elif defined(__aarch64__)
enum {
    TPOFF = R_AARCH64_TLS_TPREL,
    DTPMOD = R_AARCH64_TLS_DTPMOD,
    TLSDESC = R_AARCH64_TLSDESC,
    GLIBC_VECTOR_AT = 0,
    MUSL_VECTOR_AT = -8,
};
#endif

/* A module while it is examined. */
typedef struct image {
    sp_outside_process *process;
    const char *path;
    bool is_program; /* not a library */
    uint64_t bias;   /* from the file's addresses to the process's */
    Elf *elf;
    GElf_Sym symbol;
    size_t table;  /* the section that has it */
    size_t number; /* in its table */
} image;

static void add_slot(image *image, sp_outside_slot slot)
{
    sp_outside_process *process = image->process;
    for (uint32_t i = 0; i < process->slot_count; i++)
        if (process->slots[i].module == slot.module && process->slots[i].offset == slot.offset)
            return;
    if (process->slot_count == SP_OUTSIDE_SLOTS)
        return;
    size_t length = strlen(image->path), room = sizeof slot.path - 1;
    snprintf(slot.path, sizeof slot.path, "%s", image->path + (length > room ? length - room : 0));
    process->slots[process->slot_count++] = slot;
}

/* --- relocations ------------------------------------------------------------------------------ */

static bool read_pair(const image *image, uint64_t address, uint64_t pair[2])
{
    return sp_outside_copy(image->process->pid, pair, address, 2 * sizeof pair[0]);
}

static bool is_module_and_offset(const uint64_t pair[2])
{
    return pair[0] > 0 && pair[0] < MODULES_MAX && pair[1] < UINT64_C(1) << 31;
}

/* The second word of a descriptor is an address when two words can be read there. Otherwise it is
 * the offset from the thread pointer: an offset is too near to zero, on either side, to be an
 * address. */
static void take_descriptor(image *image, uint64_t address)
{
    uint64_t words[2], pair[2];
    if (!read_pair(image, address, words) || !words[0])
        return;
    sp_outside_slot slot = {.model = SP_OUTSIDE_TLSDESC, .offset = (int64_t)words[1]};
    if (read_pair(image, words[1], pair)) {
        if (!is_module_and_offset(pair))
            return;
        slot.module = pair[0];
        slot.offset = (int64_t)pair[1];
    }
    add_slot(image, slot);
}

static void take_relocation(image *image, const GElf_Rela *relocation)
{
    uint64_t address = image->bias + relocation->r_offset, pair[2];
    switch (GELF_R_TYPE(relocation->r_info)) {
    case TPOFF:
        if (sp_outside_word(image->process->pid, address, pair))
            add_slot(image, (sp_outside_slot){.model = SP_OUTSIDE_INITIAL_EXEC,
                                              .offset = (int64_t)pair[0]});
        break;
    case DTPMOD:
        if (read_pair(image, address, pair) && is_module_and_offset(pair))
            add_slot(image, (sp_outside_slot){.model = SP_OUTSIDE_GENERAL_DYNAMIC,
                                              .module = pair[0],
                                              .offset = (int64_t)pair[1]});
        break;
    case TLSDESC:
        take_descriptor(image, address);
        break;
    default:
        break;
    }
}

/* Take the relocations of SECTION for the symbol. Returns how many. */
static size_t take_relocations(image *image, Elf_Scn *section, const GElf_Shdr *header)
{
    Elf_Data *data = elf_getdata(section, NULL);
    size_t count = header->sh_entsize ? header->sh_size / header->sh_entsize : 0, taken = 0;
    GElf_Rela relocation;
    for (size_t i = 0; data && i < count && gelf_getrela(data, (int)i, &relocation); i++) {
        if (GELF_R_SYM(relocation.r_info) != image->number)
            continue;
        take_relocation(image, &relocation);
        taken++;
    }
    return taken;
}

/* The executable's own variable, whose offset the linker wrote into the code. */
static void take_local(image *image)
{
    size_t count;
    GElf_Phdr header;
    if (elf_getphdrnum(image->elf, &count) != 0)
        return;
    for (size_t i = 0; i < count && gelf_getphdr(image->elf, (int)i, &header); i++) {
        if (header.p_type != PT_TLS)
            continue;
        int64_t align = header.p_align ? (int64_t)header.p_align : 1;
        int64_t offset = (int64_t)image->symbol.st_value;
#if defined(__x86_64__)
        offset -= ((int64_t)header.p_memsz + align - 1) / align * align;
#elif defined(__aarch64__)
        offset += (16 + align - 1) / align * align;
#endif
        add_slot(image, (sp_outside_slot){.model = SP_OUTSIDE_LOCAL_EXEC, .offset = offset});
        return;
    }
}

/* --- modules ---------------------------------------------------------------------------------- */

static bool is_the_symbol(const image *image, const GElf_Shdr *table, const GElf_Sym *symbol)
{
    const char *name = elf_strptr(image->elf, table->sh_link, symbol->st_name);
    return name && strcmp(name, SYMBOL) == 0 && GELF_ST_TYPE(symbol->st_info) == STT_TLS;
}

static bool find_symbol(image *image)
{
    GElf_Shdr header;
    for (Elf_Scn *section = NULL; (section = elf_nextscn(image->elf, section)) != NULL;) {
        if (!gelf_getshdr(section, &header) || header.sh_type != SHT_DYNSYM || !header.sh_entsize)
            continue;
        Elf_Data *data = elf_getdata(section, NULL);
        size_t count = header.sh_size / header.sh_entsize;
        image->table = elf_ndxscn(section);
        for (size_t i = 0; data && i < count && gelf_getsym(data, (int)i, &image->symbol); i++)
            if (is_the_symbol(image, &header, &image->symbol)) {
                image->number = i;
                return true;
            }
    }
    return false;
}

/* Set the bias. LOW: where the file's first loaded segment is. */
static bool find_bias(image *image, uint64_t low)
{
    size_t count;
    GElf_Phdr header;
    if (elf_getphdrnum(image->elf, &count) != 0)
        return false;
    for (size_t i = 0; i < count && gelf_getphdr(image->elf, (int)i, &header); i++)
        if (header.p_type == PT_LOAD) {
            image->bias = low + header.p_offset - header.p_vaddr;
            return true;
        }
    return false;
}

static void examine_elf(image *image, uint64_t low)
{
    GElf_Shdr header;
    size_t taken = 0;
    if (!find_bias(image, low) || !find_symbol(image))
        return;
    for (Elf_Scn *section = NULL; (section = elf_nextscn(image->elf, section)) != NULL;)
        if (gelf_getshdr(section, &header) && header.sh_type == SHT_RELA &&
            header.sh_link == image->table)
            taken += take_relocations(image, section, &header);
    if (taken == 0 && image->is_program && image->symbol.st_shndx != SHN_UNDEF)
        take_local(image);
}

/* Whether ELF has the flag of a position-independent program. */
static bool has_pie_flag(Elf *elf)
{
    GElf_Shdr header;
    GElf_Dyn entry;
    for (Elf_Scn *section = NULL; (section = elf_nextscn(elf, section)) != NULL;) {
        if (!gelf_getshdr(section, &header) || header.sh_type != SHT_DYNAMIC)
            continue;
        Elf_Data *data = elf_getdata(section, NULL);
        for (int i = 0; data && gelf_getdyn(data, i, &entry); i++)
            if (entry.d_tag == DT_FLAGS_1)
                return (entry.d_un.d_val & DF_1_PIE) != 0;
    }
    return false;
}

/* A program that was started through the loader is not /proc/PID/exe, so the file decides whether
 * it is one. */
static bool is_program(Elf *elf)
{
    GElf_Ehdr header;
    return gelf_getehdr(elf, &header) && (header.e_type == ET_EXEC || has_pie_flag(elf));
}

/* The search through the mappings. `begin` is the last mapping of a file's begin, whose code has
 * not been found yet. */
typedef struct search {
    sp_outside_process *process;
    char executable[PATH_MAX];
    sp_mapping begin;
    char path[PATH_MAX]; /* of `begin`; "": it was examined */
} search;

/* Whether FILE is what the process has mapped. On overlay file systems the numbers in the map are
 * not those of stat, so there the bytes decide: the first page has the headers, and mostly the
 * build id. */
static bool is_mapped(const search *search, const sp_elf_file *file)
{
    enum { FIRST_BYTES = 4096 };
    const sp_mapping *begin = &search->begin;
    char in_memory[FIRST_BYTES];
    if (file->mark.device == begin->device && file->mark.inode == begin->inode)
        return true;
    size_t size = 0;
    const char *in_file = elf_rawfile(file->elf, &size);
    size_t count = size < sizeof in_memory ? size : sizeof in_memory;
    return in_file && sp_outside_copy(search->process->pid, in_memory, begin->start, count) &&
           memcmp(in_memory, in_file, count) == 0;
}

/* The file at PATH below /proc/PID, if it is the one that is mapped. */
static sp_elf_file open_mapped(const search *search, const char *folder, const char *path)
{
    char whole[4200];
    snprintf(whole, sizeof whole, "/proc/%d/%s%s", (int)search->process->pid, folder, path);
    sp_elf_file file = sp_elf_file_open(whole);
    if (file.elf && !is_mapped(search, &file))
        sp_elf_file_close(&file);
    return file;
}

/* Open the mapped file: as the program, by its path, or by the mapping itself. The last works for
 * removed files, too, but needs privileges. */
static sp_elf_file open_file(const search *search)
{
    const sp_mapping *begin = &search->begin;
    char range[40];
    sp_elf_file file = SP_ELF_FILE_NONE;
    if (strcmp(search->path, search->executable) == 0)
        file = open_mapped(search, "exe", "");
    if (!file.elf)
        file = open_mapped(search, "root", search->path);
    if (file.elf)
        return file;
    snprintf(range, sizeof range, "%" PRIx64 "-%" PRIx64, begin->start, begin->end);
    return open_mapped(search, "map_files/", range);
}

static void examine(search *search)
{
    sp_elf_file file = open_file(search);
    image image = {.process = search->process, .path = search->path, .elf = file.elf};
    if (file.elf) {
        image.is_program = is_program(file.elf);
        examine_elf(&image, search->begin.start);
    }
    sp_elf_file_close(&file);
}

static bool take_mapping(const sp_mapping *mapping, void *user)
{
    search *search = user;
    if (mapping->path[0] != '/')
        return true;
    if (mapping->offset == 0) {
        search->begin = *mapping;
        search->begin.path = search->path;
        (void)snprintf(search->path, sizeof search->path, "%s", mapping->path);
    }
    if (sp_mapping_is_executable(mapping) && search->begin.inode == mapping->inode &&
        strcmp(search->path, mapping->path) == 0) {
        search->process->is_musl |= strstr(mapping->path, "/ld-musl-") != NULL;
        examine(search);
        search->path[0] = 0;
    }
    return true;
}

sp_outside_result sp_outside_find_slots(sp_outside_process *process)
{
    search search = {.process = process};
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/exe", (int)process->pid);
    ssize_t length = readlink(path, search.executable, sizeof search.executable - 1);
    if (length < 0)
        return sp_outside_say(process, errno == ENOENT ? SP_OUTSIDE_GONE : SP_OUTSIDE_DENIED,
                              "the executable of process %d cannot be told: %s", (int)process->pid,
                              strerror(errno));
    elf_version(EV_CURRENT);
    process->slot_count = 0;
    if (!sp_mappings_of_process(process->pid, take_mapping, &search))
        return sp_outside_say(process, SP_OUTSIDE_DENIED,
                              "the mappings of process %d cannot be read: %s", (int)process->pid,
                              strerror(errno));
    return SP_OUTSIDE_OK;
}

/* --- threads ---------------------------------------------------------------------------------- */

/* glibc: from number 1 on, the vector has pairs of a block's address (all ones: no block) and what
 * to free. The number of modules is two words before the vector. */
static uint64_t block_of_glibc(pid_t pid, uint64_t pointer, uint64_t module)
{
    uint64_t vector, count, block;
    if (!sp_outside_word(pid, pointer + GLIBC_VECTOR_AT, &vector) ||
        !sp_outside_word(pid, vector - 16, &count) || module > count ||
        !sp_outside_word(pid, vector + 16 * module, &block))
        return 0;
    return block == UINT64_MAX ? 0 : block;
}

/* musl: the vector has the blocks' addresses. Word 0 is the number of modules. */
static uint64_t block_of_musl(pid_t pid, uint64_t pointer, uint64_t module)
{
    uint64_t vector, count, block;
    if (!sp_outside_word(pid, pointer + (uint64_t)MUSL_VECTOR_AT, &vector) ||
        !sp_outside_word(pid, vector, &count) || module > count ||
        !sp_outside_word(pid, vector + 8 * module, &block))
        return 0;
    return block;
}

uint64_t sp_outside_slot_address(const sp_outside_process *process, const sp_outside_slot *slot,
                                 uint64_t pointer)
{
    if (slot->module == 0)
        return pointer + (uint64_t)slot->offset;
    uint64_t block = process->is_musl ? block_of_musl(process->pid, pointer, slot->module)
                                      : block_of_glibc(process->pid, pointer, slot->module);
    return block ? block + (uint64_t)slot->offset : 0;
}
