/* SPDX-License-Identifier: Apache-2.0 */
/* Damaged debug information: frames for addresses, each string of which can be read to its end. An
 * input is the content of the sections below, in this order, a SEPARATOR behind each; here they
 * become an ELF file, so that no effort goes into damaging that. Section headers come last, as in
 * most files, and behind them is a page that cannot be read. */
#include "fuzz/fuzz.h"

#include <sys/mman.h>
#include <unistd.h>

#include "symbol/dwarf_frames.h"

static const char *const section_names[] = {
    ".debug_str",      ".debug_line_str", ".debug_addr",   ".debug_str_offsets", ".debug_ranges",
    ".debug_rnglists", ".debug_line",     ".debug_abbrev", ".debug_info"};

enum {
    DEBUG_SECTIONS = SP_ARRAY_LENGTH(section_names),
    SECTIONS = DEBUG_SECTIONS + 2, /* the null section, the names */
    NAME_ROOM = 32,
    FIRST_ADDRESS = 0x10000, /* where make_corpus.py links the code */
    STEP = 3,
    ASKED = 128,
};

static const char SEPARATOR[] = "\n--\n";

/* What stands behind the content. */
typedef struct file_tail {
    char names[SECTIONS][NAME_ROOM];
    Elf64_Shdr sections[SECTIONS];
} file_tail;

static Elf64_Ehdr make_header(size_t tail_offset)
{
    return (Elf64_Ehdr){
        .e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
        .e_type = ET_EXEC,
        .e_machine = EM_X86_64,
        .e_version = EV_CURRENT,
        .e_ehsize = sizeof(Elf64_Ehdr),
        .e_shentsize = sizeof(Elf64_Shdr),
        .e_shoff = tail_offset + offsetof(file_tail, sections),
        .e_shnum = SECTIONS,
        .e_shstrndx = SECTIONS - 1,
    };
}

static file_tail make_tail(size_t tail_offset, const uint8_t *data, size_t length)
{
    file_tail tail = {0};
    size_t at = 0;
    for (size_t i = 1; i <= DEBUG_SECTIONS; i++) {
        const uint8_t *end = memmem(data + at, length - at, SEPARATOR, sizeof SEPARATOR - 1);
        size_t size = end ? (size_t)(end - data) - at : length - at;
        snprintf(tail.names[i], NAME_ROOM, "%s", section_names[i - 1]);
        tail.sections[i] = (Elf64_Shdr){.sh_name = (Elf64_Word)(i * NAME_ROOM),
                                        .sh_type = SHT_PROGBITS,
                                        .sh_offset = sizeof(Elf64_Ehdr) + at,
                                        .sh_size = size,
                                        .sh_addralign = 1};
        at = end ? at + size + sizeof SEPARATOR - 1 : length;
    }
    tail.sections[SECTIONS - 1] =
        (Elf64_Shdr){.sh_type = SHT_STRTAB,
                     .sh_offset = tail_offset + offsetof(file_tail, names),
                     .sh_size = sizeof tail.names,
                     .sh_addralign = 1};
    return tail;
}

static void check_string(const char *text)
{
    FUZZ_CHECK(!text || strlen(text) < SIZE_MAX / 2);
}

static void check_frames(sp_dwarf_index *index, uint64_t address)
{
    sp_dwarf_frame frames[SP_DWARF_DEPTH];
    uint32_t count = sp_dwarf_frames(index, address, frames);
    FUZZ_CHECK(count <= SP_DWARF_DEPTH);
    for (uint32_t i = 0; i < count; i++) {
        check_string(frames[i].name);
        check_string(frames[i].linkage_name);
        check_string(frames[i].directory);
        check_string(frames[i].file);
    }
}

static void check_dwarf(Elf *elf)
{
    Dwarf *dwarf = elf ? dwarf_begin_elf(elf, DWARF_C_READ, NULL) : NULL;
    sp_dwarf_index *index = sp_dwarf_index_create(dwarf);
    for (uint64_t i = 0; index && i < ASKED; i++)
        check_frames(index, FIRST_ADDRESS + i * STEP);
    if (index)
        check_frames(index, UINT64_MAX);
    sp_dwarf_index_destroy(index);
    dwarf_end(dwarf);
}

/* Room for BYTES, and behind it a page that cannot be read. It is kept for the next input: to map
 * it anew each time would take a fifth of a run. */
static char *room_before_guard(size_t bytes)
{
    static char *pages;
    static size_t room;
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    if (bytes > room) {
        FUZZ_CHECK(!pages || munmap(pages, room + page) == 0);
        room = (bytes + page - 1) / page * page;
        pages = mmap(NULL, room + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        FUZZ_CHECK(pages != MAP_FAILED && mprotect(pages + room, page, PROT_NONE) == 0);
    }
    return pages + room - bytes;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length)
{
    size_t content_end = sizeof(Elf64_Ehdr) + length;
    size_t tail_offset = (content_end + 7) / 8 * 8; /* libelf wants it aligned */
    size_t bytes = tail_offset + sizeof(file_tail);
    char *image = room_before_guard(bytes);
    Elf64_Ehdr header = make_header(tail_offset);
    file_tail tail = make_tail(tail_offset, data, length);
    memcpy(image, &header, sizeof header);
    if (length)
        memcpy(image + sizeof header, data, length);
    memset(image + content_end, 0, tail_offset - content_end);
    memcpy(image + tail_offset, &tail, sizeof tail);
    elf_version(EV_CURRENT);
    Elf *elf = elf_memory(image, bytes);
    check_dwarf(elf);
    elf_end(elf);
    return 0;
}
