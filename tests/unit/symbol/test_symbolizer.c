/* SPDX-License-Identifier: Apache-2.0 */
/* The symbolizer on this very program: expected lines are computed with __LINE__, and everything is
 * compared with addr2line. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "core/clock.h"
#include "symbol/dwarf_frames.h"
#include "symbol/elf_object.h"
#include "symbol/symbolizer.h"
#include "unit/symbol/test_files.h"
#include "unit/symbol/test_module.h"

/* ---- what is asked for: an address three inlined functions deep ---- */

static uint64_t recorded_pc;
static int innermost_line, middle_line, outer_line, outer_start_line;

__attribute__((noinline)) static void record_caller(void)
{
    recorded_pc = (uint64_t)__builtin_return_address(0) - 1; /* inside the call */
    __asm__ volatile("" ::: "memory");
}

__attribute__((always_inline)) static inline void innermost_function(void)
{
    innermost_line = __LINE__ + 1;
    record_caller();
    __asm__ volatile("" ::: "memory");
}

__attribute__((always_inline)) static inline void middle_function(void)
{
    middle_line = __LINE__ + 1;
    innermost_function();
    __asm__ volatile("" ::: "memory");
}

__attribute__((noinline)) static void outer_function(void)
{
    outer_start_line = __LINE__ - 2;
    outer_line = __LINE__ + 1;
    middle_function();
    __asm__ volatile("" ::: "memory");
}

/* A function as Swift names them, between labels as ARM's assemblers write them; the addresses of
 * the function and of the second label. */
extern const uint64_t dollar_addresses[2];
__asm__(".pushsection .text.dollar, \"ax\", %progbits\n"
        ".type \"$s4shop4cartyyF\", %function\n"
        "\"$x\":\n"
        "\"$s4shop4cartyyF\":\n"
        "1: nop\n"
        "nop\n"
        ".size \"$s4shop4cartyyF\", . - 1b\n"
        "\"$d.1\":\n"
        "2: nop\n"
        ".popsection\n"
        ".pushsection .data, \"aw\", %progbits\n"
        ".balign 8\n"
        ".globl dollar_addresses\n"
        "dollar_addresses: .quad 1b, 2b\n"
        ".popsection\n");

/* ---- variables ---- */

static struct shop {
    char name[40];
    int stock;
} shop_inventory = {.stock = 3};
static int plain_variable = 1;
static const int constant_table[4] = {1, 2, 3, 4}; /* nobody locks what cannot be written */

/* ---- a fixture ---- */

static char self_path[PATH_MAX], quoted_path[PATH_MAX + 3]; /* quoted: for a shell */
static sp_symbolizer *symbolizer;

static int set_up(void **state)
{
    (void)state;
    test_forget_lines();
    sp_elf_object_set_debug_directory("/nonexistent");
    symbolizer = sp_symbolizer_create();
    return symbolizer ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    sp_symbolizer_destroy(symbolizer);
    return 0;
}

/* The first BYTES of the file FROM written over TO. */
static void copy_file(const char *from_path, const char *to, off_t bytes)
{
    static char block[65536];
    int from = open(from_path, O_RDONLY), out = open(to, O_WRONLY | O_CREAT | O_TRUNC, 0755);
    ssize_t got;
    assert_true(from >= 0 && out >= 0);
    while (bytes > 0 && (got = read(from, block, sizeof block)) > 0) {
        size_t wanted = got < bytes ? (size_t)got : (size_t)bytes;
        assert_int_equal(write(out, block, wanted), wanted);
        bytes -= (off_t)wanted;
    }
    close(from);
    close(out);
}

static void copy_self(const char *to, off_t bytes)
{
    copy_file(self_path, to, bytes);
}

/* The one frame of the address recorded in this program, when MODULE says where its file is. */
static const sp_frame *outermost_frame(const sp_module *module)
{
    const sp_frame *frames;
    uint32_t count = sp_symbolizer_frames(symbolizer, module, recorded_pc - module->bias, &frames);
    assert_true(count > 0);
    return &frames[count - 1];
}

static void assert_unresolved(const sp_module *module, const char *base)
{
    const sp_frame *frames;
    char expected[PATH_MAX];
    uint64_t address = recorded_pc - module->bias;
    snprintf(expected, sizeof expected, "%s+0x%llx", base, (unsigned long long)address);
    assert_int_equal(sp_symbolizer_frames(symbolizer, module, address, &frames), 1);
    assert_string_equal(frames[0].name, expected);
    assert_string_equal(frames[0].system_name, "");
    assert_string_equal(frames[0].file, "");
    assert_int_equal(frames[0].line, 0);
    assert_true(frames[0].unresolved);
}

/* ---- cases ---- */

static void symbolizer_inlined_address_gives_chain_with_lines(void **state)
{
    (void)state;
    sp_module *module = test_module_of(recorded_pc, NULL);
    const sp_frame *frames;
    assert_int_equal(sp_symbolizer_frames(symbolizer, module, recorded_pc - module->bias, &frames),
                     3);
    const char *names[] = {"innermost_function", "middle_function", "outer_function"};
    const int lines[] = {innermost_line, middle_line, outer_line};
    for (int i = 0; i < 3; i++) {
        assert_string_equal(frames[i].name, names[i]);
        assert_string_equal(frames[i].system_name, "");
        assert_int_equal(frames[i].line, lines[i]);
        assert_int_equal(frames[i].file[0], '/');
        assert_string_equal(strrchr(frames[i].file, '/'), "/test_symbolizer.c");
        assert_false(frames[i].unresolved);
    }
    assert_int_equal(frames[2].start_line, outer_start_line);
    assert_int_equal(test_logged_count, 0);
    free(module);
}

static void symbolizer_same_question_gives_same_frames(void **state)
{
    (void)state;
    sp_module *module = test_module_of(recorded_pc, NULL),
              *again = test_module_of(recorded_pc, NULL);
    const sp_frame *first, *second;
    sp_symbolizer_frames(symbolizer, module, recorded_pc - module->bias, &first);
    assert_int_not_equal(module->id, again->id); /* unloaded and loaded again */
    sp_symbolizer_frames(symbolizer, again, recorded_pc - again->bias, &second);
    assert_ptr_equal(first, second);
    free(module);
    free(again);
}

/* How often this program's file is mapped: while its names are open, once more than to run. */
static int mappings_of_program(const char *path)
{
    char line[PATH_MAX + 128];
    int count = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    assert_non_null(maps);
    while (fgets(line, sizeof line, maps))
        count += strstr(line, path) != NULL;
    fclose(maps);
    return count;
}

static void symbolizer_module_not_needed_is_closed_and_opened_again(void **state)
{
    (void)state;
    sp_module *module = test_module_of(recorded_pc, NULL);
    const sp_frame *first, *again, *other;
    int before = mappings_of_program(module->path);
    sp_symbolizer_frames(symbolizer, module, recorded_pc - module->bias, &first);
    int open = mappings_of_program(module->path);
    for (int round = 0; round < 6; round++)
        sp_symbolizer_rest(symbolizer);
    assert_true(open > before);
    assert_int_equal(mappings_of_program(module->path), before);
    sp_symbolizer_frames(symbolizer, module, recorded_pc - module->bias, &again);
    assert_ptr_equal(first, again); /* what was named stays named, with nothing open */
    assert_string_equal(again[0].name, "innermost_function");
    assert_int_equal(mappings_of_program(module->path), before);
    uint32_t count =
        sp_symbolizer_frames(symbolizer, module, recorded_pc + 1 - module->bias, &other);
    assert_string_equal(other[count - 1].name, "outer_function");
    free(module);
}

/* In place of the real clocks while held_ns is not 0: time stands still, and opening a file costs
 * OPENING_NS. */
enum { OPENING_NS = 1000000 };
static uint64_t held_ns, cpu_ns;

/* The linker sends the library here (tests/CMakeLists.txt). */
uint64_t __real_sp_clock_monotonic_ns(void);
uint64_t __real_sp_clock_own_cpu_ns(void);
uint64_t __wrap_sp_clock_monotonic_ns(void);
uint64_t __wrap_sp_clock_own_cpu_ns(void);

uint64_t __wrap_sp_clock_monotonic_ns(void)
{
    return held_ns ? held_ns : __real_sp_clock_monotonic_ns();
}

uint64_t __wrap_sp_clock_own_cpu_ns(void)
{
    return held_ns ? (cpu_ns += OPENING_NS) : __real_sp_clock_own_cpu_ns();
}

/* Whether a file is open after a round of ROUND_NS in which it was asked for. */
static bool stays_open_after(uint64_t round_ns)
{
    const sp_frame *frames;
    held_ns = SP_NS_PER_S;
    sp_module *module = test_module_of(recorded_pc, NULL);
    int before = mappings_of_program(module->path);
    sp_symbolizer *fresh = sp_symbolizer_create();
    sp_symbolizer_frames(fresh, module, recorded_pc - module->bias, &frames);
    assert_true(mappings_of_program(module->path) > before);
    held_ns += round_ns;
    sp_symbolizer_rest(fresh);
    bool stays_open = mappings_of_program(module->path) > before;
    sp_symbolizer_destroy(fresh);
    assert_int_equal(mappings_of_program(module->path), before);
    free(module);
    held_ns = 0;
    return stays_open;
}

/* Opening it may take a fiftieth of the time. */
static void symbolizer_round_is_long_enough_to_open_again_file_is_closed(void **state)
{
    (void)state;
    assert_false(stays_open_after(50 * OPENING_NS));
}

static void symbolizer_round_is_short_file_stays_open(void **state)
{
    (void)state;
    assert_true(stays_open_after(50 * OPENING_NS - 1));
}

static void symbolizer_libc_function_has_its_public_name(void **state)
{
    (void)state;
    const char *names[] = {"qsort_r", "getenv", "fopen", "strtoul"};
    void *libc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD); /* a sanitizer has some of its own */
    assert_non_null(libc);
    for (size_t i = 0; i < SP_ARRAY_LENGTH(names); i++) {
        uint64_t address = (uint64_t)dlsym(libc, names[i]);
        sp_module *module = test_module_of(address, NULL);
        const sp_frame *frames;
        sp_symbolizer_frames(symbolizer, module, address - module->bias, &frames);
        assert_string_equal(frames[0].name, names[i]); /* from .dynsym: no debug directory here */
        free(module);
    }
    dlclose(libc);
}

static void symbolizer_vdso_is_read_from_memory(void **state)
{
    (void)state;
    uint64_t base = getauxval(AT_SYSINFO_EHDR);
    if (!base) {
        print_message("skipped: this kernel maps no vdso\n");
        skip();
    }
    void *vdso = dlopen("linux-vdso.so.1", RTLD_LAZY | RTLD_NOLOAD);
    void *address = vdso ? dlvsym(vdso, "__vdso_clock_gettime", "LINUX_2.6") : NULL;
    sp_module *module = test_module_of(base, NULL);
    assert_non_null(module);
    const sp_frame *frames;
    if (address) {
        sp_symbolizer_frames(symbolizer, module, (uint64_t)address - module->bias, &frames);
        assert_non_null(strstr(frames[0].name, "clock_gettime"));
    }
    sp_symbolizer_frames(symbolizer, module, 1, &frames);
    assert_string_equal(frames[0].name, "[vdso]+0x1");
    assert_int_equal(test_logged_count, 0);
    free(module);
}

/* As of a process that is attached to. */
static void symbolizer_vdso_of_another_process_has_names_when_it_is_the_same(void **state)
{
    (void)state;
    uint64_t base = getauxval(AT_SYSINFO_EHDR), elsewhere = UINT64_C(1) << 30;
    void *vdso = base ? dlopen("linux-vdso.so.1", RTLD_LAZY | RTLD_NOLOAD) : NULL;
    void *address = vdso ? dlvsym(vdso, "__vdso_clock_gettime", "LINUX_2.6") : NULL;
    if (!address) {
        print_message("skipped: this kernel maps no vdso with the symbol\n");
        skip();
    }
    sp_module *module = test_module_of(base, NULL);
    assert_non_null(module);
    assert_true(module->build_id_length > 0);
    uint64_t pc = (uint64_t)address - module->bias;
    module->start += elsewhere;
    module->end += elsewhere;
    module->bias += elsewhere;
    for (int is_other = 0; is_other < 2; is_other++) {
        sp_symbolizer *fresh = sp_symbolizer_create();
        const sp_frame *frames;
        module->build_id[0] ^= (uint8_t)is_other;
        sp_symbolizer_frames(fresh, module, pc, &frames);
        assert_int_equal(strstr(frames[0].name, "clock_gettime") != NULL, !is_other);
        sp_symbolizer_destroy(fresh);
    }
    free(module);
}

static void symbolizer_no_module_gives_unknown_name(void **state)
{
    (void)state;
    const sp_frame *frames;
    assert_int_equal(sp_symbolizer_frames(symbolizer, NULL, 0x1234, &frames), 1);
    assert_string_equal(frames[0].name, "[unknown]+0x1234");
    assert_true(frames[0].unresolved);
}

static void symbolizer_stripped_file_gives_module_and_address(void **state)
{
    (void)state;
    test_run("strip -o %s %s", test_path("stripped"), quoted_path);
    sp_module *module = test_module_of(recorded_pc, test_path("stripped"));
    assert_unresolved(module, "stripped");
    assert_int_equal(test_logged_count, 0); /* nothing is wrong with it */
    free(module);
}

static void assert_variable(const sp_module *module, const void *at, const char *expected)
{
    uint64_t address = (uint64_t)(uintptr_t)at - module->bias;
    for (int i = 0; i < 2; i++) { /* the second answer is a remembered one */
        const char *name = sp_symbolizer_variable(symbolizer, module, address);
        assert_non_null(name);
        assert_string_equal(name, expected);
    }
}

static const void *next_variable(void)
{
    static int counted = 1;
    return &counted;
}

static void symbolizer_variable_has_its_name_and_a_member_its_offset(void **state)
{
    (void)state;
    sp_module *module = test_module_of(recorded_pc, NULL);
    assert_variable(module, &plain_variable, "plain_variable");
    assert_variable(module, &shop_inventory, "shop_inventory");
    assert_variable(module, &shop_inventory.stock, "shop_inventory+0x28");
#ifdef __clang__
    assert_variable(module, next_variable(), "next_variable.counted");
#else
    assert_variable(module, next_variable(), "counted"); /* "counted.0" in the table */
#endif
    free(module);
}

/* What is at the address of a variable is not asked for as code, and keeps its names apart. */
static void symbolizer_variable_and_code_of_one_address_are_apart(void **state)
{
    (void)state;
    sp_module *module = test_module_of(recorded_pc, NULL);
    uint64_t address = (uint64_t)(uintptr_t)&plain_variable - module->bias;
    const sp_frame *frames;
    assert_int_equal(sp_symbolizer_frames(symbolizer, module, address, &frames), 1);
    assert_true(frames[0].unresolved);
    assert_variable(module, &plain_variable, "plain_variable");
    free(module);
}

static void symbolizer_what_is_no_variable_has_no_name_of_one(void **state)
{
    (void)state;
    sp_module *module = test_module_of(recorded_pc, NULL);
    assert_variable(module, constant_table, "");
    assert_variable(module, (const void *)(module->bias + 0x7fffffff), "");
    assert_string_equal(sp_symbolizer_variable(symbolizer, module, recorded_pc - module->bias), "");
    free(module);
}

static void symbolizer_variable_of_a_stripped_file_is_module_and_address(void **state)
{
    (void)state;
    char expected[PATH_MAX];
    test_run("strip -o %s %s", test_path("bare"), quoted_path);
    sp_module *module = test_module_of(recorded_pc, test_path("bare"));
    snprintf(expected, sizeof expected, "bare+0x%llx",
             (unsigned long long)((uint64_t)(uintptr_t)&shop_inventory.stock - module->bias));
    assert_variable(module, &shop_inventory.stock, expected);
    free(module);
}

static void symbolizer_function_with_a_dollar_has_its_name(void **state)
{
    (void)state;
    sp_module *module = test_module_of(dollar_addresses[0], NULL);
    const sp_frame *frames;
    uint64_t function = dollar_addresses[0] - module->bias;
    uint64_t label = dollar_addresses[1] - module->bias;
    assert_int_equal(sp_symbolizer_frames(symbolizer, module, function, &frames), 1);
    assert_string_equal(frames->name, "$s4shop4cartyyF");
    assert_int_equal(sp_symbolizer_frames(symbolizer, module, label, &frames), 1);
    assert_int_not_equal(frames->name[0], '$');
    free(module);
}

static void symbolizer_file_without_debug_information_gives_symbols(void **state)
{
    (void)state;
    test_run("strip --strip-debug -o %s %s", test_path("symbols_only"), quoted_path);
    sp_module *module = test_module_of(recorded_pc, test_path("symbols_only"));
    const sp_frame *frame = outermost_frame(module);
    assert_string_equal(frame->name, "outer_function");
    assert_string_equal(frame->file, "");
    assert_int_equal(frame->line, 0);
    free(module);
}

static void symbolizer_debug_file_is_found_by_build_id(void **state)
{
    (void)state;
    char hex[2 * SP_BUILD_ID_MAX + 1] = "";
    sp_module *module = test_module_of(recorded_pc, test_path("stripped_by_id"));
    assert_true(module->build_id_length > 2);
    for (uint32_t i = 0; i < module->build_id_length; i++)
        sprintf(hex + 2 * i, "%02x", module->build_id[i]);
    test_run("strip -o stripped_by_id %s && mkdir -p debug/.build-id/%.2s && "
             "objcopy --only-keep-debug %s debug/.build-id/%.2s/%s.debug",
             quoted_path, hex, quoted_path, hex, hex + 2);
    sp_elf_object_set_debug_directory(test_path("debug"));
    const sp_frame *frame = outermost_frame(module);
    assert_string_equal(frame->name, "outer_function");
    assert_int_equal(frame->line, outer_line);
    free(module);
}

static void symbolizer_debug_file_is_found_by_debuglink(void **state)
{
    (void)state;
    test_run("mkdir -p .debug && objcopy --only-keep-debug --compress-debug-sections %s "
             ".debug/linked.dbg && "
             "objcopy --strip-all --add-gnu-debuglink=.debug/linked.dbg %s linked && cp linked "
             "linked_without_id",
             quoted_path, quoted_path);
    const char *names[] = {"linked", "linked_without_id"};
    for (int i = 0; i < 2; i++) {
        sp_module *module = test_module_of(recorded_pc, test_path(names[i]));
        if (i)
            module->build_id_length = 0; /* then the checksum decides */
        assert_string_equal(outermost_frame(module)->name, "outer_function");
        assert_int_equal(outermost_frame(module)->line, outer_line);
        free(module);
    }
}

static void symbolizer_debug_file_of_wrong_checksum_is_not_used(void **state)
{
    (void)state;
    test_run("mkdir -p .debug && objcopy --only-keep-debug %s .debug/forged.dbg && "
             "objcopy --strip-all --add-gnu-debuglink=.debug/forged.dbg %s forged && printf x >> "
             ".debug/forged.dbg",
             quoted_path, quoted_path);
    sp_module *module = test_module_of(recorded_pc, test_path("forged"));
    module->build_id_length = 0;
    assert_unresolved(module, "forged");
    free(module);
}

/* The number that the next descriptor would get. */
static int lowest_descriptor(void)
{
    int fd = dup(STDIN_FILENO);
    close(fd);
    return fd;
}

typedef struct pieces {
    unsigned calls, with_descriptor;
    int lowest;
} pieces;

static void count_call(void *user)
{
    pieces *seen = user;
    seen->calls++;
    seen->with_descriptor += lowest_descriptor() != seen->lowest;
}

/* The file is checked in pieces, in between which its owner drains rings. No descriptor stays open
 * meanwhile: a host may close it, and open a file of its own under the number. */
static void symbolizer_large_debug_file_is_checked_in_pieces(void **state)
{
    (void)state;
    pieces seen = {.lowest = lowest_descriptor()};
    test_run("mkdir -p .debug && objcopy --only-keep-debug %s .debug/large.dbg && "
             "truncate -s +10M .debug/large.dbg && "
             "objcopy --strip-all --add-gnu-debuglink=.debug/large.dbg %s large",
             quoted_path, quoted_path);
    sp_symbolizer_configure(symbolizer, &(sp_symbolizer_options){.meanwhile = {count_call, &seen}});
    sp_module *module = test_module_of(recorded_pc, test_path("large"));
    module->build_id_length = 0;
    assert_string_equal(outermost_frame(module)->name, "outer_function");
    assert_true(seen.calls >= 10);
    assert_int_equal(seen.with_descriptor, 0);
    free(module);
}

static void symbolizer_replaced_file_gives_no_wrong_name(void **state)
{
    (void)state;
    sp_module *module = test_module_of(recorded_pc, NULL);
    module->build_id[0] ^= 1; /* not the program on disk, as far as anybody can tell */
    assert_unresolved(module, strrchr(module->path, '/') + 1);
    assert_int_equal(test_logged_count, 1);
    assert_true(test_was_logged("build id"));
    const sp_frame *frames;
    sp_symbolizer_frames(symbolizer, module, 0x40, &frames);
    assert_int_equal(test_logged_count, 1); /* said once */
    free(module);
}

static void symbolizer_removed_executable_is_found_in_proc(void **state)
{
    (void)state;
    sp_module *module = test_module_of(recorded_pc, test_path("gone"));
    assert_string_equal(outermost_frame(module)->name, "outer_function");
    assert_int_equal(test_logged_count, 0);
    free(module);
}

static void symbolizer_missing_library_warns_once(void **state)
{
    (void)state;
    sp_module *module =
        test_module_make(test_path("libgone.so"), recorded_pc - 16, recorded_pc + 16, 0);
    assert_unresolved(module, "libgone.so");
    assert_unresolved(module, "libgone.so");
    assert_int_equal(test_logged_count, 1);
    assert_true(test_was_logged("libgone.so: No such file"));
    free(module);
}

static void symbolizer_fifo_does_not_block(void **state)
{
    (void)state;
    assert_int_equal(mkfifo(test_path("fifo"), 0600), 0);
    sp_module *module = test_module_make(test_path("fifo"), recorded_pc - 16, recorded_pc + 16, 0);
    assert_unresolved(module, "fifo");
    free(module);
}

/* No build id: so that a file which has lost its note is read all the same. */
static void symbolizer_truncated_file_warns_and_survives(void **state)
{
    (void)state;
    struct stat status;
    assert_int_equal(stat(self_path, &status), 0);
    const sp_frame *frames;
    for (int part = 0; part < 24; part++) {
        char name[32];
        snprintf(name, sizeof name, "truncated%d", part);
        off_t bytes = part < 4 ? part * 40 : status.st_size / 24 * part;
        copy_self(test_path(name), bytes);
        sp_module *module = test_module_of(recorded_pc, test_path(name));
        module->build_id_length = 0;
        test_logged_count = 0;
        assert_true(sp_symbolizer_frames(symbolizer, module, recorded_pc - module->bias, &frames) >
                    0);
        assert_int_equal(test_logged_count, 1);
        free(module);
        unlink(test_path(name));
    }
}

/* Bytes of the file changed at random places (the same in each run): any name may come out, but it
 * has to come. */
static void symbolizer_damaged_file_survives(void **state)
{
    (void)state;
    struct stat status;
    uint32_t random = 12345;
    assert_int_equal(stat(self_path, &status), 0);
    for (int round = 0; round < 40; round++) {
        char name[32];
        snprintf(name, sizeof name, "damaged%d", round);
        copy_self(test_path(name), status.st_size);
        int fd = open(test_path(name), O_WRONLY);
        for (int i = 0; i < 400; i++) {
            random = random * 1664525u + 1013904223u;
            uint8_t byte = (uint8_t)(random >> 24);
            off_t offset = (off_t)(((uint64_t)random * 2654435761u) % (uint64_t)status.st_size);
            assert_int_equal(pwrite(fd, &byte, 1, offset), 1);
        }
        close(fd);
        sp_module *module = test_module_of(recorded_pc, test_path(name));
        module->build_id_length = 0;
        const sp_frame *frames;
        for (int i = 0; i < 50; i++)
            assert_true(sp_symbolizer_frames(symbolizer, module,
                                             recorded_pc - module->bias + (uint64_t)i * 64,
                                             &frames) > 0);
        free(module);
        unlink(test_path(name));
    }
}

/* Put the content of .debug_info at the end of the file at PATH, with BEHIND bytes after it. */
static void move_debug_information(const char *path, size_t behind)
{
    int fd = open(path, O_RDWR);
    off_t size = lseek(fd, 0, SEEK_END);
    char *file = mmap(NULL, (size_t)size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert_true(file != MAP_FAILED);
    const ElfW(Ehdr) *header = (const void *)file;
    ElfW(Shdr) *sections = (void *)(file + header->e_shoff);
    const char *names = file + sections[header->e_shstrndx].sh_offset;
    for (int i = 0; i < header->e_shnum; i++) {
        ElfW(Shdr) *section = &sections[i];
        if (strcmp(names + section->sh_name, ".debug_info") != 0)
            continue;
        ssize_t count = (ssize_t)section->sh_size;
        assert_int_equal(pwrite(fd, file + section->sh_offset, (size_t)count, size), count);
        assert_int_equal(ftruncate(fd, size + count + (off_t)behind), 0);
        section->sh_offset = (ElfW(Off))size;
    }
    munmap(file, (size_t)size);
    close(fd);
}

/* libdw 0.188 looks behind a section, where there may be nothing any more. */
static void symbolizer_debug_information_with_nothing_behind_it_is_not_read(void **state)
{
    (void)state;
    static const size_t behind[] = {64, 0};
    for (int i = 0; i < 2; i++) {
        const char *path = test_path(i ? "nothing_behind" : "something_behind");
        copy_self(path, INT32_MAX);
        move_debug_information(path, behind[i]);
        sp_module *module = test_module_of(recorded_pc, path);
        module->build_id_length = 0; /* else the copy shares the names of the one before */
        const sp_frame *frame = outermost_frame(module);
        assert_string_equal(frame->name, "outer_function");
        assert_int_equal(frame->line, i ? 0 : outer_line);
        free(module);
    }
}

/* ---- bounds ---- */

static void symbolizer_names_stay_within_their_bound(void **state)
{
    enum { BOUND = 512 * 1024, ROUNDS = 200, NEW_EACH = 100 };
    (void)state;
    size_t most = 0;
    sp_module *module = test_module_of(recorded_pc, NULL);
    sp_module *nameless = test_module_make("/nonexistent/libmade.so", 0, 16, 0);
    sp_symbolizer_set_limits(symbolizer, BOUND, SIZE_MAX);
    for (int round = 0; round < ROUNDS; round++) {
        const sp_frame *frames;
        for (uint64_t i = 0; i < NEW_EACH; i++)
            assert_int_equal(sp_symbolizer_frames(symbolizer, nameless,
                                                  (uint64_t)round * NEW_EACH + i + 1, &frames),
                             1);
        assert_string_equal(outermost_frame(module)->name, "outer_function"); /* asked each round */
        assert_int_equal(outermost_frame(module)->line, outer_line);
        size_t bytes = sp_symbolizer_bytes(symbolizer);
        most = bytes > most ? bytes : most;
        sp_symbolizer_rest(symbolizer);
    }
    const sp_frame *frames;
    sp_symbolizer_frames(symbolizer, nameless, 1, &frames); /* forgotten: named anew */
    assert_string_equal(frames[0].name, "libmade.so+0x1");
    /* a table that doubles may go over half of the bound by as much again */
    assert_in_range(most, BOUND / 4, BOUND * 2);
    free(nameless);
    free(module);
}

static void symbolizer_modules_that_nobody_asks_for_are_forgotten(void **state)
{
    (void)state;
    size_t early = 0;
    for (int i = 0; i < 3000; i++) {
        char name[64];
        const sp_frame *frames;
        snprintf(name, sizeof name, "/nonexistent/libmade%d.so", i);
        sp_module *module = test_module_make(name, 0, 16, 0);
        assert_int_equal(sp_symbolizer_frames(symbolizer, module, 1, &frames), 1);
        snprintf(name, sizeof name, "libmade%d.so+0x1", i);
        assert_string_equal(frames[0].name, name);
        free(module);
        sp_symbolizer_set_limits(symbolizer, 1, SIZE_MAX); /* so that modules are what is left */
        sp_symbolizer_rest(symbolizer);
        if (i == 400)
            early = sp_symbolizer_bytes(symbolizer);
    }
    assert_in_range(sp_symbolizer_bytes(symbolizer), 1, early * 2);
}

static void symbolizer_much_debug_information_read_closes_the_file(void **state)
{
    (void)state;
    sp_module *module = test_module_of(recorded_pc, NULL);
    int before = mappings_of_program(module->path);
    sp_symbolizer_set_limits(symbolizer, SIZE_MAX, 1);
    const sp_frame *frame = outermost_frame(module);
    assert_int_equal(mappings_of_program(module->path), before);
    assert_string_equal(frame->name, "outer_function"); /* is no longer part of the file */
    assert_int_equal(frame->line, outer_line);
    free(module);
}

/* ---- files that change: a copy of libc, for the program itself is found in /proc whatever happens
 * to its file ---- */

static void *libc_handle;
static char libc_path[PATH_MAX];

/* libc in memory, said to lie at PATH. */
static sp_module *libc_at(const char *path)
{
    libc_handle = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
    sp_module *real = test_module_of((uint64_t)dlsym(libc_handle, "getenv"), NULL);
    assert_true(real->build_id_length > 0);
    snprintf(libc_path, sizeof libc_path, "%s", real->path);
    free(real);
    return test_module_of((uint64_t)dlsym(libc_handle, "getenv"), path);
}

/* The frame that FUNCTION of libc gets when libc is MODULE. */
static const sp_frame *frame_of(const sp_module *module, const char *function)
{
    const sp_frame *frames;
    uint64_t address = (uint64_t)dlsym(libc_handle, function);
    assert_int_equal(sp_symbolizer_frames(symbolizer, module, address - module->bias, &frames), 1);
    return frames;
}

static const char *name_of(const sp_module *module, const char *function)
{
    const sp_frame *frame = frame_of(module, function);
    return frame->unresolved ? "" : frame->name;
}

static void rest_until_closed(void)
{
    for (int round = 0; round < 6; round++)
        sp_symbolizer_rest(symbolizer);
}

enum { WHOLE = INT32_MAX };

/* The copy was written over while it is mapped: reading on would be a SIGBUS. */
static void symbolizer_mapped_file_is_truncated_survives(void **state)
{
    (void)state;
    const char *path = test_path("libtruncated.so");
    sp_module *module = libc_at(path);
    copy_file(libc_path, path, WHOLE);
    assert_string_equal(name_of(module, "getenv"), "getenv");
    assert_true(mappings_of_program(path) > 0);
    assert_int_equal(truncate(path, 0), 0);
    assert_string_equal(name_of(module, "getenv"), "getenv");
    assert_string_equal(name_of(module, "qsort_r"), "");
    assert_int_equal(test_logged_count, 1);
    copy_file(libc_path, path, WHOLE); /* the installation ends */
    rest_until_closed();
    assert_string_equal(name_of(module, "strtoul"), "strtoul");
    free(module);
}

static void symbolizer_file_replaced_between_windows_is_noticed(void **state)
{
    (void)state;
    char other[PATH_MAX], path[PATH_MAX];
    snprintf(other, sizeof other, "%s", test_path("new.so"));
    snprintf(path, sizeof path, "%s", test_path("libreplaced.so"));
    sp_module *module = libc_at(path);
    copy_file(libc_path, path, WHOLE);
    assert_string_equal(name_of(module, "getenv"), "getenv");
    rest_until_closed();
    copy_file(libc_path, other, WHOLE); /* the same build */
    assert_int_equal(rename(other, path), 0);
    assert_string_equal(name_of(module, "qsort_r"), "qsort_r");
    copy_self(other, WHOLE); /* another build, while the first one is mapped: that stays whole */
    assert_int_equal(rename(other, path), 0);
    assert_string_equal(name_of(module, "strtoul"), "strtoul");
    assert_int_equal(test_logged_count, 0);
    rest_until_closed();
    assert_string_equal(name_of(module, "fopen"), "");
    assert_string_equal(name_of(module, "getenv"), "getenv");
    assert_int_equal(test_logged_count, 1);
    assert_true(test_was_logged("build id"));
    free(module);
}

static void symbolizer_file_removed_between_windows_is_noticed(void **state)
{
    (void)state;
    const char *path = test_path("libremoved.so");
    sp_module *module = libc_at(path);
    copy_file(libc_path, path, WHOLE);
    assert_string_equal(name_of(module, "getenv"), "getenv");
    assert_int_equal(unlink(path), 0);
    assert_string_equal(name_of(module, "qsort_r"), "qsort_r"); /* still mapped */
    rest_until_closed();
    assert_string_equal(name_of(module, "strtoul"), "");
    rest_until_closed();
    assert_int_equal(mkdir(path, 0700), 0);
    assert_string_equal(name_of(module, "fopen"), "");
    assert_string_equal(name_of(module, "getenv"), "getenv");
    free(module);
}

/* Without a build id the path is believed, but not for a second file. */
static void symbolizer_file_without_build_id_replaced_gives_no_wrong_name(void **state)
{
    (void)state;
    char other[PATH_MAX], path[PATH_MAX];
    snprintf(other, sizeof other, "%s", test_path("new.so"));
    snprintf(path, sizeof path, "%s", test_path("libnoid.so"));
    sp_module *module = libc_at(path);
    module->build_id_length = 0;
    copy_file(libc_path, path, WHOLE);
    assert_string_equal(name_of(module, "getenv"), "getenv");
    rest_until_closed();
    assert_string_equal(name_of(module, "qsort_r"), "qsort_r");
    rest_until_closed();
    copy_self(other, WHOLE);
    assert_int_equal(rename(other, path), 0);
    assert_string_equal(name_of(module, "strtoul"), "");
    assert_int_equal(test_logged_count, 1);
    assert_true(test_was_logged("another file"));
    free(module);
}

static void symbolizer_copies_of_a_library_share_their_names(void **state)
{
    (void)state;
    const char *gone = test_path("libgone.so"), *copy = test_path("libcopy.so");
    sp_module *first = libc_at(gone), *second = libc_at(copy), *third = libc_at(libc_path);
    copy_file(libc_path, copy, WHOLE);
    assert_string_equal(name_of(first, "getenv"), "");
    assert_string_equal(name_of(second, "getenv"),
                        "getenv"); /* not spoiled by the one that is gone */
    assert_int_equal(test_logged_count, 1);
    rest_until_closed();
    sp_symbolizer_destroy(symbolizer);
    symbolizer = sp_symbolizer_create();
    assert_string_equal(name_of(second, "getenv"), "getenv");
    assert_ptr_equal(frame_of(third, "getenv"), frame_of(second, "getenv"));
    assert_int_equal(unlink(copy), 0);
    rest_until_closed();
    assert_string_equal(name_of(third, "qsort_r"), "qsort_r");
    free(first);
    free(second);
    free(third);
}

/* ---- the same questions to addr2line ---- */

extern char __executable_start[], etext[];

enum { ASKED = 500 };

/* The next line of FILE without its newline. */
static char *next_line(FILE *file)
{
    static char line[8192];
    if (!fgets(line, sizeof line, file))
        return NULL;
    line[strcspn(line, "\n")] = 0;
    return line;
}

/* What addr2line says about one address: its frames, "name at /path/file.c:12 (discriminator 3)"
 * each. */
typedef struct answer {
    char *frames[SP_DWARF_DEPTH];
    uint32_t count;
} answer;

/* The first line of an answer begins with the address, the others with "(inlined by)". LINE is the
 * first, and is replaced by that of the next answer. */
static answer next_answer(FILE *file, char **line)
{
    static const char inlined[] = " (inlined by) ";
    answer result = {0};
    assert_non_null(*line);
    result.frames[result.count++] = strdup(strstr(*line, ": ") + 2);
    while ((*line = next_line(file)) && strncmp(*line, inlined, sizeof inlined - 1) == 0)
        if (result.count < SP_DWARF_DEPTH)
            result.frames[result.count++] = strdup(*line + sizeof inlined - 1);
    return result;
}

/* The place in TEXT is FRAME's; with ANY_FILE only the number of the line has to be. */
static bool same_line(const char *text, const sp_frame *frame, bool any_file)
{
    const char *at = strstr(text, " at "), *colon = at ? strchr(at, ':') : NULL;
    const char *slash = colon ? memrchr(at, '/', (size_t)(colon - at)) : NULL;
    const char *base = strrchr(frame->file, '/');
    return slash && base && (any_file || strncmp(base, slash, strlen(base)) == 0) &&
           (uint32_t)atoi(colon + 1) == frame->line;
}

static bool same_name(const char *text, const sp_frame *frame)
{
    const char *at = strstr(text, " at ");
    size_t length = at ? (size_t)(at - text) : 0;
    while (length && memchr(text, '.', length)) /* "f.part.0" */
        length = (size_t)((const char *)memchr(text, '.', length) - text);
    return strlen(frame->name) == length && strncmp(frame->name, text, length) == 0;
}

typedef struct comparison {
    unsigned frames, between, fewer, other_file, different;
} comparison;

static bool same_frames(const answer *said, const sp_frame *frames, uint32_t count, bool any_file)
{
    for (uint32_t i = 0; i < count && i < said->count; i++)
        if (!strstr(said->frames[i], "?") && (!same_line(said->frames[i], &frames[i], any_file) ||
                                              !same_name(said->frames[i], &frames[i])))
            return false;
    return said->count == count;
}

/* Padding is counted by addr2line to what is before it. The one of binutils 2.40 has two weaknesses
 * with DWARF 5 (llvm's agrees with us): it does not see some of clang's inlined functions, then the
 * innermost line and the physical function have to be the same; and without optimization it takes a
 * header's line for one of the file that includes it. */
static void compare(comparison *sum, uint64_t address, const answer *said, const sp_frame *frames,
                    uint32_t count)
{
    sum->frames += count;
    if (frames[0].unresolved)
        sum->between++;
    else if (said->count < count && same_line(said->frames[0], &frames[0], false) &&
             same_name(said->frames[said->count - 1], &frames[count - 1]))
        sum->fewer++;
    else if (same_frames(said, frames, count, true) && !same_frames(said, frames, count, false))
        sum->other_file++;
    else if (!same_frames(said, frames, count, false)) {
        sum->different++;
        for (uint32_t i = 0; i < count || i < said->count; i++)
            print_message("0x%llx: %s, but %s %s:%u\n", (unsigned long long)address,
                          i < said->count ? said->frames[i] : "-", i < count ? frames[i].name : "-",
                          i < count ? frames[i].file : "", i < count ? frames[i].line : 0);
    }
}

static void assert_agrees_with_addr2line(void)
{
    sp_module *module = test_module_of(recorded_pc, NULL);
    uint64_t begin = (uint64_t)set_up - module->bias,
             step = ((uint64_t)etext - (uint64_t)set_up) / ASKED | 1;
    FILE *questions = fopen(test_path("addresses"), "w");
    for (uint64_t i = 0; i < ASKED; i++)
        fprintf(questions, "0x%llx\n", (unsigned long long)(begin + i * step));
    fclose(questions);
    test_run("addr2line -apfie %s < %s > %s", quoted_path, test_path("addresses"),
             test_path("answers"));
    FILE *answers = fopen(test_path("answers"), "r");
    char *line = next_line(answers);
    comparison sum = {0};
    for (uint64_t i = 0; i < ASKED; i++) {
        const sp_frame *frames;
        uint32_t count = sp_symbolizer_frames(symbolizer, module, begin + i * step, &frames);
        answer said = next_answer(answers, &line);
        compare(&sum, begin + i * step, &said, frames, count);
        for (uint32_t j = 0; j < said.count; j++)
            free(said.frames[j]);
    }
    fclose(answers);
    print_message(
        "%u frames of %d addresses: %u differ; %u addresses between functions, where addr2line "
        "knows fewer frames %u, another file %u\n",
        sum.frames, ASKED, sum.different, sum.between, sum.fewer, sum.other_file);
    assert_true(sum.between < ASKED / 10);
#ifdef __clang__
    assert_true(sum.fewer < ASKED / 2);
#else
    assert_int_equal(sum.fewer, 0);
#endif
    assert_true(sum.other_file < ASKED / 20);
    assert_int_equal(sum.different, 0);
    free(module);
}

static void symbolizer_agrees_with_addr2line(void **state)
{
    (void)state;
    sp_symbolizer_set_long_opening(symbolizer, UINT64_MAX);
    assert_agrees_with_addr2line();
}

static void symbolizer_functions_named_at_once_agree_with_addr2line(void **state)
{
    (void)state;
    sp_symbolizer_set_long_opening(symbolizer, 0);
    assert_agrees_with_addr2line();
}

/* Each byte of some functions: what a row says is what the address alone would say. */
static void symbolizer_row_has_the_frames_of_each_of_its_addresses(void **state)
{
    (void)state;
    sp_module *module = test_module_of(recorded_pc, NULL);
    sp_symbolizer *each = sp_symbolizer_create();
    uint64_t begin = (uint64_t)set_up - module->bias;
    sp_symbolizer_set_long_opening(symbolizer, 0);
    sp_symbolizer_set_long_opening(each, UINT64_MAX);
    for (uint64_t address = begin; address < begin + 5000; address++) {
        const sp_frame *rows, *own;
        uint32_t count = sp_symbolizer_frames(symbolizer, module, address, &rows);
        assert_int_equal(count, sp_symbolizer_frames(each, module, address, &own));
        for (uint32_t i = 0; i < count; i++) {
            assert_string_equal(rows[i].name, own[i].name);
            assert_string_equal(rows[i].file, own[i].file);
            assert_int_equal(rows[i].line, own[i].line);
            assert_int_equal(rows[i].column, own[i].column);
            assert_int_equal(rows[i].start_line, own[i].start_line);
        }
    }
    sp_symbolizer_destroy(each);
    free(module);
}

/* Another address of a function that was named does not open the file again. */
static void symbolizer_named_function_leaves_the_file_closed(void **state)
{
    (void)state;
    const sp_frame *frames;
    sp_module *module = test_module_of(recorded_pc, NULL);
    int before = mappings_of_program(module->path);
    sp_symbolizer_set_long_opening(symbolizer, 0);
    sp_symbolizer_frames(symbolizer, module, recorded_pc - module->bias, &frames);
    assert_true(mappings_of_program(module->path) > before);
    for (int round = 0; round < 6; round++)
        sp_symbolizer_rest(symbolizer);
    assert_int_equal(mappings_of_program(module->path), before);
    assert_true(sp_symbolizer_frames(symbolizer, module, recorded_pc - 1 - module->bias, &frames));
    assert_int_equal(mappings_of_program(module->path), before);
    free(module);
}

/* ---- no network ---- */

static int listener = -1; /* where DEBUGINFOD_URLS points to, since before libdw was loaded */

/* Begin again with DEBUGINFOD_URLS set, for libdw looks at it when it is loaded. */
static bool restart_with_debuginfod(char **argv)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    char text[64];
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, length) != 0 || listen(fd, 8) != 0 ||
        getsockname(fd, (struct sockaddr *)&address, &length) != 0)
        return false;
    snprintf(text, sizeof text, "http://127.0.0.1:%d", ntohs(address.sin_port));
    setenv("DEBUGINFOD_URLS", text, 1);
    snprintf(text, sizeof text, "%d", fd);
    setenv("SPANPROF_TEST_LISTENER", text, 1);
    execv("/proc/self/exe", argv);
    return false;
}

/* After all other cases, some of which lacked debug information. */
static void symbolizer_never_asks_a_server(void **state)
{
    (void)state;
    test_run("strip -o %s %s", test_path("asked"), quoted_path);
    sp_module *module = test_module_of(recorded_pc, test_path("asked"));
    assert_unresolved(module, "asked");
    assert_int_equal(accept(listener, NULL, NULL), -1);
    assert_int_equal(errno, EAGAIN);
    free(module);
}

int main(int argc, char **argv)
{
    (void)argc;
    const struct CMUnitTest tests[] = {
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        CASE(symbolizer_inlined_address_gives_chain_with_lines),
        CASE(symbolizer_same_question_gives_same_frames),
        CASE(symbolizer_module_not_needed_is_closed_and_opened_again),
        CASE(symbolizer_round_is_long_enough_to_open_again_file_is_closed),
        CASE(symbolizer_round_is_short_file_stays_open),
        CASE(symbolizer_named_function_leaves_the_file_closed),
        CASE(symbolizer_libc_function_has_its_public_name),
        CASE(symbolizer_vdso_is_read_from_memory),
        CASE(symbolizer_vdso_of_another_process_has_names_when_it_is_the_same),
        CASE(symbolizer_no_module_gives_unknown_name),
        CASE(symbolizer_stripped_file_gives_module_and_address),
        CASE(symbolizer_variable_has_its_name_and_a_member_its_offset),
        CASE(symbolizer_variable_and_code_of_one_address_are_apart),
        CASE(symbolizer_what_is_no_variable_has_no_name_of_one),
        CASE(symbolizer_variable_of_a_stripped_file_is_module_and_address),
        CASE(symbolizer_function_with_a_dollar_has_its_name),
        CASE(symbolizer_file_without_debug_information_gives_symbols),
        CASE(symbolizer_debug_file_is_found_by_build_id),
        CASE(symbolizer_debug_file_is_found_by_debuglink),
        CASE(symbolizer_debug_file_of_wrong_checksum_is_not_used),
        CASE(symbolizer_large_debug_file_is_checked_in_pieces),
        CASE(symbolizer_replaced_file_gives_no_wrong_name),
        CASE(symbolizer_removed_executable_is_found_in_proc),
        CASE(symbolizer_missing_library_warns_once),
        CASE(symbolizer_fifo_does_not_block),
        CASE(symbolizer_truncated_file_warns_and_survives),
        CASE(symbolizer_damaged_file_survives),
        CASE(symbolizer_debug_information_with_nothing_behind_it_is_not_read),
        CASE(symbolizer_names_stay_within_their_bound),
        CASE(symbolizer_modules_that_nobody_asks_for_are_forgotten),
        CASE(symbolizer_much_debug_information_read_closes_the_file),
        CASE(symbolizer_mapped_file_is_truncated_survives),
        CASE(symbolizer_file_replaced_between_windows_is_noticed),
        CASE(symbolizer_file_removed_between_windows_is_noticed),
        CASE(symbolizer_file_without_build_id_replaced_gives_no_wrong_name),
        CASE(symbolizer_copies_of_a_library_share_their_names),
        CASE(symbolizer_agrees_with_addr2line),
        CASE(symbolizer_functions_named_at_once_agree_with_addr2line),
        CASE(symbolizer_row_has_the_frames_of_each_of_its_addresses),
        CASE(symbolizer_never_asks_a_server),
    };
    const char *inherited = getenv("SPANPROF_TEST_LISTENER");
    if (!inherited && !restart_with_debuginfod(argv))
        return 1;
    listener = atoi(inherited);
    if (readlink("/proc/self/exe", self_path, sizeof self_path - 1) < 0 || !test_files_begin())
        return 1;
    snprintf(quoted_path, sizeof quoted_path, "'%s'", self_path);
    outer_function();
    int failed = cmocka_run_group_tests_name("symbolizer", tests, NULL, NULL);
    test_files_end();
    return failed;
}
