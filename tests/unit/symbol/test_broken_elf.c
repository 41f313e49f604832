/* SPDX-License-Identifier: Apache-2.0 */
/* A small library, damaged in every header field: each is named in one warning and skipped. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <sys/stat.h>

#include "symbol/elf_object.h"
#include "symbol/symbolizer.h"
#include "unit/symbol/test_files.h"
#include "unit/symbol/test_module.h"

static uint8_t *whole;
static size_t whole_length;

/* The library, read into `whole`; false when there is no compiler. */
static bool make_library(void)
{
    static const char source[] = "int exported(int i) { return i + 1; }\n"
                                 "static __attribute__((used)) int hidden(int i) { return i; }\n";
    struct stat status;
    test_write(test_path("small.c"), source, sizeof source - 1);
    if (!test_run_command("cc -g -O1 -shared -fPIC -nostdlib -o small.so small.c") ||
        stat(test_path("small.so"), &status) != 0)
        return false;
    whole_length = (size_t)status.st_size;
    whole = malloc(whole_length);
    FILE *file = fopen(test_path("small.so"), "r");
    bool good = file && fread(whole, 1, whole_length, file) == whole_length;
    if (file)
        fclose(file);
    return good;
}

/* What the library gives when it has LENGTH bytes of IMAGE. An address in .text is asked for, and
 * once more when it was closed. */
static void ask(const uint8_t *image, size_t length, uint64_t address, char name[256])
{
    const sp_frame *frames;
    test_write(test_path("broken.so"), image, length);
    sp_module *module = test_module_make(test_path("broken.so"), 0, 1 << 20, 0);
    sp_symbolizer *symbolizer = sp_symbolizer_create();
    assert_non_null(symbolizer);
    test_forget_lines();
    assert_true(sp_symbolizer_frames(symbolizer, module, address, &frames) > 0);
    snprintf(name, 256, "%s", frames[0].name);
    for (int round = 0; round < 7; round++)
        sp_symbolizer_rest(symbolizer);
    assert_true(sp_symbolizer_frames(symbolizer, module, address + 1, &frames) > 0);
    sp_symbolizer_destroy(symbolizer);
    free(module);
}

static void assert_refused(const uint8_t *image, size_t length, const char *what)
{
    char name[256];
    ask(image, length, 0x1000, name);
    if (test_logged_count != 1 || !test_was_logged("broken.so: ") ||
        strcmp(name, "broken.so+0x1000") != 0)
        fail_msg("%s: %u warnings, name %s: %s", what, test_logged_count, name,
                 test_logged.length ? (char *)test_logged.data : "");
}

static const ElfW(Ehdr) * whole_header(void)
{
    return (const void *)whole;
}

static const ElfW(Shdr) * whole_sections(void)
{
    return (const void *)(whole + whole_header()->e_shoff);
}

/* The number of the section NAME. */
static size_t section_named(const char *name)
{
    const ElfW(Shdr) *sections = whole_sections();
    const char *names = (const char *)whole + sections[whole_header()->e_shstrndx].sh_offset;
    for (size_t i = 1; i < whole_header()->e_shnum; i++)
        if (strcmp(names + sections[i].sh_name, name) == 0)
            return i;
    fail_msg("no section %s", name);
    return 0;
}

static void whole_file_gives_names(void **state)
{
    (void)state;
    char name[256];
    ask(whole, whole_length, whole_sections()[section_named(".text")].sh_addr, name);
    assert_string_equal(name, "exported");
    assert_int_equal(test_logged_count, 0);
}

/* Every length inside the ELF header, the program headers and the section headers, which are the
 * end of the file. */
static void file_cut_anywhere_in_headers_is_refused(void **state)
{
    (void)state;
    char what[64];
    size_t headers = sizeof(ElfW(Ehdr)) + whole_header()->e_phnum * sizeof(ElfW(Phdr));
    assert_true(whole_header()->e_shoff + whole_header()->e_shnum * sizeof(ElfW(Shdr)) ==
                whole_length);
    for (size_t length = 0; length < whole_length; length++) {
        if (length == headers)
            length = whole_header()->e_shoff;
        snprintf(what, sizeof what, "cut at %zu", length);
        assert_refused(whole, length, what);
    }
}

/* ---- single fields ---- */

typedef struct damage {
    const char *what;
    const char *section; /* NULL: the ELF header; "": the first section header */
    size_t offset, size; /* of the field */
    uint64_t value;
} damage;

#define HEADER(field, value)                                                                       \
    {                                                                                              \
        "e_" #field " " #value, NULL, offsetof(ElfW(Ehdr), e_##field),                             \
            sizeof(((ElfW(Ehdr) *)0)->e_##field), (uint64_t)(value)                                \
    }
#define SECTION(name, field, value)                                                                \
    {                                                                                              \
        name " " #field " " #value, name, offsetof(ElfW(Shdr), field),                             \
            sizeof(((ElfW(Shdr) *)0)->field), (uint64_t)(value)                                    \
    }

enum { MANY = 1000000000 };

static const damage damages[] = {
    HEADER(ident, 0),
    HEADER(version, 7),
    HEADER(ehsize, 0),
    HEADER(shoff, 0),
    HEADER(shoff, 1),
    HEADER(shoff, UINT64_MAX),
    HEADER(shoff, UINT64_MAX - 63),
    HEADER(shnum, 65535),
    HEADER(shentsize, 0),
    HEADER(shentsize, 63),
    HEADER(shentsize, 65535),
    HEADER(shstrndx, 0),
    HEADER(shstrndx, 1),
    HEADER(shstrndx, 65279),
    HEADER(shstrndx, 65535),
    HEADER(phoff, UINT64_MAX),
    HEADER(phnum, 60000),
    HEADER(phnum, 65535),
    HEADER(phentsize, 0),
    HEADER(phentsize, 1),
    SECTION(".symtab", sh_size, 24ull * MANY),
    SECTION(".symtab", sh_size, 25),
    SECTION(".symtab", sh_size, UINT64_MAX),
    SECTION(".symtab", sh_offset, UINT64_MAX),
    SECTION(".symtab", sh_offset, UINT64_MAX - 8),
    SECTION(".symtab", sh_offset, 0),
    SECTION(".symtab", sh_entsize, 0),
    SECTION(".symtab", sh_entsize, 1),
    SECTION(".symtab", sh_entsize, 23),
    SECTION(".symtab", sh_entsize, MANY),
    SECTION(".symtab", sh_link, 0),
    SECTION(".symtab", sh_link, MANY),
    SECTION(".symtab", sh_link, UINT32_MAX),
    SECTION(".symtab", sh_flags, SHF_COMPRESSED),
    SECTION(".symtab", sh_name, MANY),
    SECTION(".dynsym", sh_entsize, 0),
    SECTION(".dynsym", sh_link, 0),
    SECTION(".strtab", sh_size, 0),
    SECTION(".strtab", sh_size, MANY),
    SECTION(".strtab", sh_size, 1ull << 63),
    SECTION(".strtab", sh_type, SHT_PROGBITS),
    SECTION(".strtab", sh_type, SHT_NOBITS),
    SECTION(".strtab", sh_flags, SHF_COMPRESSED),
    SECTION(".shstrtab", sh_flags, SHF_COMPRESSED),
    SECTION(".shstrtab", sh_type, SHT_NOBITS),
    SECTION(".text", sh_name, UINT32_MAX),
    SECTION(".debug_info", sh_size, MANY),
    SECTION(".debug_info", sh_offset, UINT64_MAX - 1),
};

static uint8_t *copy_whole(void)
{
    uint8_t *copy = malloc(whole_length);
    memcpy(copy, whole, whole_length);
    return copy;
}

static void damaged_field_is_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < SP_ARRAY_LENGTH(damages); i++) {
        const damage *d = &damages[i];
        uint8_t *image = copy_whole();
        size_t at = d->offset;
        if (d->section)
            at += whole_header()->e_shoff + section_named(d->section) * sizeof(ElfW(Shdr));
        memcpy(image + at, &d->value, d->size < sizeof d->value ? d->size : sizeof d->value);
        assert_refused(image, whole_length, d->what);
        free(image);
    }
}

/* e_shnum 0: section 0 has the number. */
static void count_of_sections_in_section_zero_is_refused(void **state)
{
    static const uint64_t counts[] = {0, MANY, UINT64_MAX, UINT64_MAX / 64 + 1};
    (void)state;
    for (size_t i = 0; i < SP_ARRAY_LENGTH(counts); i++) {
        uint8_t *image = copy_whole();
        ElfW(Ehdr) *header = (void *)image;
        header->e_shnum = 0;
        ((ElfW(Shdr) *)(void *)(image + header->e_shoff))->sh_size = counts[i];
        assert_refused(image, whole_length, "number of sections");
        free(image);
    }
}

static void sections_that_refer_to_themselves_are_refused(void **state)
{
    (void)state;
    size_t symbols = section_named(".symtab"), strings = section_named(".strtab");
    for (int i = 0; i < 2; i++) {
        uint8_t *image = copy_whole();
        ElfW(Shdr) *sections = (void *)(image + whole_header()->e_shoff);
        sections[symbols].sh_link = (uint32_t)symbols;
        if (i)
            sections[strings].sh_link = (uint32_t)symbols;
        assert_refused(image, whole_length, "sh_link");
        free(image);
    }
}

static void overlapping_sections_are_refused(void **state)
{
    (void)state;
    size_t symbols = section_named(".symtab");
    static const char *const others[] = {".strtab", ".text", ".debug_info", ".shstrtab"};
    for (size_t i = 0; i < SP_ARRAY_LENGTH(others); i++) {
        uint8_t *image = copy_whole();
        ElfW(Shdr) *sections = (void *)(image + whole_header()->e_shoff);
        sections[symbols].sh_offset = sections[section_named(others[i])].sh_offset;
        assert_refused(image, whole_length, others[i]);
        free(image);
    }
}

static void strings_without_end_are_refused(void **state)
{
    static const char *const tables[] = {".strtab", ".shstrtab", ".dynstr"};
    (void)state;
    for (size_t i = 0; i < SP_ARRAY_LENGTH(tables); i++) {
        uint8_t *image = copy_whole();
        const ElfW(Shdr) *table = &whole_sections()[section_named(tables[i])];
        image[table->sh_offset + table->sh_size - 1] = 'x';
        assert_refused(image, whole_length, tables[i]);
        free(image);
    }
}

/* A damaged debug file: the symbols of the library itself have to do. */
static void damaged_debug_file_is_named_and_the_library_read(void **state)
{
    (void)state;
    test_run("strip --strip-debug -o stripped.so small.so && mkdir -p .debug && "
             "objcopy --only-keep-debug small.so .debug/broken.dbg && "
             "objcopy --add-gnu-debuglink=.debug/broken.dbg stripped.so linked.so && "
             "head -c 500 small.so > .debug/broken.dbg");
    const sp_frame *frames;
    sp_module *module = test_module_make(test_path("linked.so"), 0, 1 << 20, 0);
    sp_symbolizer *symbolizer = sp_symbolizer_create();
    test_forget_lines();
    sp_symbolizer_frames(symbolizer, module, whole_sections()[section_named(".text")].sh_addr,
                         &frames);
    assert_string_equal(frames[0].name, "exported");
    assert_int_equal(test_logged_count, 1);
    assert_true(test_was_logged(".debug/broken.dbg: its "));
    sp_symbolizer_destroy(symbolizer);
    free(module);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_file_gives_names),
        cmocka_unit_test(file_cut_anywhere_in_headers_is_refused),
        cmocka_unit_test(damaged_field_is_refused),
        cmocka_unit_test(count_of_sections_in_section_zero_is_refused),
        cmocka_unit_test(sections_that_refer_to_themselves_are_refused),
        cmocka_unit_test(overlapping_sections_are_refused),
        cmocka_unit_test(strings_without_end_are_refused),
        cmocka_unit_test(damaged_debug_file_is_named_and_the_library_read),
    };
    if (!test_files_begin())
        return 1;
    sp_elf_object_set_debug_directory("/nonexistent");
    int failed = 77;
    if (make_library())
        failed = cmocka_run_group_tests_name("broken_elf", tests, NULL, NULL);
    free(whole);
    test_files_end();
    return failed;
}
