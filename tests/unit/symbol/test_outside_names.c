/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses in no module: perf map, jitdump, the kernel. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/compiler.h"
#include "symbol/code_table.h"
#include "symbol/jitdump.h"
#include "symbol/outside_names.h"
#include "symbol/perf_map.h"
#include "symbol/symbolizer.h"
#include "unit/symbol/test_files.h"

/* ---- what is seen where ---- */

static void assert_seen(sp_code_table *table, uint64_t address, const char *name)
{
    sp_code_name found;
    bool known = sp_code_table_find(table, address, &found);
    if (known != (name != NULL) || (name && strcmp(found.name, name) != 0))
        fail_msg("0x%llx is %s, not %s", (unsigned long long)address, known ? found.name : "-",
                 name ? name : "-");
}

static void add(sp_code_table *table, uint64_t start, uint64_t size, const char *name)
{
    sp_code_table_add(table, start, size, name, strlen(name), 0);
}

static void code_table_newest_code_is_seen(void **state)
{
    (void)state;
    sp_code_table table = {0};
    add(&table, 0x1000, 0x1000, "a");
    add(&table, 0x1800, 0x1000, "b"); /* over the end of a */
    add(&table, 0x1400, 0x100, "c");  /* inside a */
    add(&table, 0x0f00, 0x200, "d");  /* over the begin of a */
    assert_seen(&table, 0xeff, NULL);
    assert_seen(&table, 0xf00, "d");
    assert_seen(&table, 0x10ff, "d");
    assert_seen(&table, 0x1100, "a");
    assert_seen(&table, 0x13ff, "a");
    assert_seen(&table, 0x1400, "c");
    assert_seen(&table, 0x1500, "a");
    assert_seen(&table, 0x1800, "b");
    assert_seen(&table, 0x27ff, "b");
    assert_seen(&table, 0x2800, NULL);
    add(&table, 0x1000, 0x10, "e"); /* at the begin of a, which is gone then */
    assert_seen(&table, 0x1000, "e");
    assert_seen(&table, 0x1010, "d");
    assert_seen(&table, 0x1200, NULL);
    sp_code_table_deinit(&table);
}

static void code_table_moved_code_is_seen_where_it_went(void **state)
{
    (void)state;
    sp_code_table table = {0};
    add(&table, 0x1000, 0x100, "a");
    add(&table, 0x5000, 0x100, "b");
    sp_code_table_move(&table, 0x1000, 0x5000, 0x80);
    assert_seen(&table, 0x1000, NULL);
    assert_seen(&table, 0x507f, "a");
    assert_seen(&table, 0x5080, NULL);
    sp_code_table_move(&table, 0x1000, 0x6000, 0x80); /* nothing is there */
    sp_code_table_move(&table, 0x5000, 0x5000, 0x40); /* to where it is */
    assert_seen(&table, 0x6000, NULL);
    assert_seen(&table, 0x503f, "a");
    sp_code_table_deinit(&table);
}

/* The same as a list that is searched from its newest entry on. */
static void code_table_agrees_with_a_plain_list(void **state)
{
    (void)state;
    enum { COUNT = 2000, SPACE = 4096 };
    static struct {
        uint64_t start, end;
    } list[COUNT];
    char name[16];
    uint32_t random = 1;
    sp_code_table table = {0};
    for (unsigned i = 0; i < COUNT; i++) {
        random = random * 1664525u + 1013904223u;
        uint64_t start = (random >> 8) % SPACE, size = 1 + (random >> 20) % 64;
        for (unsigned j = 0; j < i; j++)
            if (list[j].start == start)
                list[j].end = start;
        list[i].start = start;
        list[i].end = start + size;
        snprintf(name, sizeof name, "%u", i);
        add(&table, start, size, name);
        if (i % 100 != 99)
            continue;
        for (uint64_t address = 0; address < SPACE + 64; address++) {
            int j = (int)i;
            while (j >= 0 && (address < list[j].start || address >= list[j].end))
                j--;
            snprintf(name, sizeof name, "%d", j);
            assert_seen(&table, address, j >= 0 ? name : NULL);
        }
    }
    sp_code_table_deinit(&table);
}

static void code_table_odd_code_is_left_out(void **state)
{
    (void)state;
    sp_code_table table = {0};
    add(&table, 0x1000, 0, "no size");
    add(&table, 0x1000, 16, "");
    add(&table, UINT64_MAX - 1, 16, "wraps");
    assert_seen(&table, 0x1000, NULL);
    assert_seen(&table, UINT64_MAX, NULL);
    assert_seen(&table, 0, NULL);
    assert_false(table.full);
    sp_code_table_deinit(&table);
}

static void code_table_full_keeps_what_it_has(void **state)
{
    (void)state;
    sp_code_table table = {0};
    for (uint64_t i = 0; i <= SP_CODE_COUNT_MAX; i++)
        add(&table, 16 * (i + 1), 16, "one");
    assert_true(table.full);
    assert_seen(&table, 16, "one");
    assert_seen(&table, 16 * (uint64_t)SP_CODE_COUNT_MAX, "one");
    assert_seen(&table, 16 * ((uint64_t)SP_CODE_COUNT_MAX + 1), NULL);
    add(&table, 16, 16, "two"); /* in the place of another */
    assert_seen(&table, 16, "two");
    sp_code_table_deinit(&table);
}

/* ---- formats ---- */

static void perf_map_lines_are_read(void **state)
{
    static const char text[] = "1000 20 plain\n"
                               "0x2000 0X20 not read\n"
                               "0x3000 0x20 with prefix\n"
                               "4000 20 Ljava/lang/String;::hashCode(int) a \r\n"
                               "nonsense\n"
                               "\n"
                               "5000 20\n"
                               "6000  20  two blanks\n"
                               "11111111111111111 20 more than 64 bits\n"
                               "7000 20 \xff\xfe\n"
                               "8000 20 no end";
    (void)state;
    sp_perf_map map = {0};
    size_t length = sizeof text - 1;
    for (size_t at = 0, given = 1; at < length && given <= length;) { /* one byte more each time */
        size_t done = sp_perf_map_read(&map, (const uint8_t *)text + at, given - at);
        at += done;
        given++;
    }
    assert_seen(&map.table, 0x1000, "plain");
    assert_seen(&map.table, 0x101f, "plain");
    assert_seen(&map.table, 0x1020, NULL);
    assert_seen(&map.table, 0x2000, NULL);
    assert_seen(&map.table, 0x3000, "with prefix");
    assert_seen(&map.table, 0x4000, "Ljava/lang/String;::hashCode(int) a");
    assert_seen(&map.table, 0x5000, NULL);
    assert_seen(&map.table, 0x6000, "two blanks");
    assert_seen(&map.table, 0x7000, "\xff\xfe");
    assert_seen(&map.table, 0x8000, NULL);
    sp_perf_map_deinit(&map);
}

static void perf_map_long_line_is_left_out(void **state)
{
    (void)state;
    sp_perf_map map = {0};
    size_t length = SP_PERF_MAP_LINE_MAX * 3;
    char *text = malloc(length + 32);
    memset(text, 'x', length);
    memcpy(text, "1000 20 ", 8);
    strcpy(text + length, "\n2000 20 next\n");
    size_t total = strlen(text), at = 0;
    for (size_t given = 1000; at < total; given = given + 1000 < total ? given + 1000 : total)
        at += sp_perf_map_read(&map, (uint8_t *)text + at, given - at);
    assert_seen(&map.table, 0x1000, NULL);
    assert_seen(&map.table, 0x2000, "next");
    free(text);
    sp_perf_map_deinit(&map);
}

/* A jitdump file as it is written. */
static sp_buffer dumped = SP_BUFFER_INIT(1 << 20);

static void put_u32(uint32_t value)
{
    sp_buffer_add(&dumped, &value, sizeof value);
}

static void put_u64(uint64_t value)
{
    sp_buffer_add(&dumped, &value, sizeof value);
}

static void put_header(uint32_t magic, uint32_t version, uint32_t process)
{
    put_u32(magic);
    put_u32(version);
    put_u32(40);
    put_u32(62);
    put_u32(0);
    put_u32(process);
    put_u64(0);
    put_u64(0);
}

static void put_record(uint32_t id, uint32_t content_bytes)
{
    put_u32(id);
    put_u32(16 + content_bytes);
    put_u64(0);
}

static void put_load(uint64_t start, uint32_t size, const char *name)
{
    put_record(0, 40 + (uint32_t)strlen(name) + 1 + size);
    put_u64(0);
    put_u64(start);
    put_u64(start);
    put_u64(size);
    put_u64(1);
    sp_buffer_add(&dumped, name, strlen(name) + 1);
    for (uint32_t i = 0; i < size; i++)
        sp_buffer_add_char(&dumped, (char)0xcc);
}

static void put_move(uint64_t from, uint64_t to, uint64_t size)
{
    put_record(1, 48);
    put_u64(0);
    put_u64(to);
    put_u64(from);
    put_u64(to);
    put_u64(size);
    put_u64(1);
}

static void put_line(uint64_t address, uint32_t line, const char *file)
{
    put_u64(address);
    put_u32(line);
    put_u32(0);
    sp_buffer_add(&dumped, file, strlen(file) + 1);
}

/* Two lines of app.js, the second written as "the same file". */
static void put_lines(uint64_t start)
{
    put_record(2, 16 + (16 + 7) + (16 + 2));
    put_u64(start);
    put_u64(2);
    put_line(start, 10, "app.js");
    put_line(start + 8, 12, "\377");
}

static void put_all(uint32_t process)
{
    sp_buffer_clear(&dumped);
    put_header(0x4a695444, 1, process);
    put_lines(0x1000);
    put_load(0x1000, 32, "first");
    put_load(0x2000, 32, "second");
    put_record(4, 24); /* unwinding information */
    for (int i = 0; i < 3; i++)
        put_u64(0);
    put_record(99, 5); /* of the future */
    sp_buffer_add(&dumped, "12345", 5);
    put_load(0x3000, 32, "third");
    put_move(0x3000, 0x4000, 32);
    put_record(3, 0); /* close */
}

static void assert_all_is_read(sp_jitdump *dump)
{
    sp_code_name found;
    assert_null(dump->problem);
    assert_seen(&dump->table, 0x2000, "second");
    assert_seen(&dump->table, 0x3000, NULL);
    assert_seen(&dump->table, 0x4000, "third");
    assert_true(sp_code_table_find(&dump->table, 0x1007, &found));
    assert_string_equal(found.name, "first");
    assert_string_equal(found.file, "app.js");
    assert_int_equal(found.line, 10);
    assert_true(sp_code_table_find(&dump->table, 0x1008, &found));
    assert_string_equal(found.file, "app.js");
    assert_int_equal(found.line, 12);
    assert_true(sp_code_table_find(&dump->table, 0x2000, &found));
    assert_string_equal(found.file, "");
}

static void jitdump_records_are_read(void **state)
{
    (void)state;
    sp_jitdump dump = {0};
    put_all(7);
    assert_int_equal(sp_jitdump_read(&dump, dumped.data, dumped.length, dumped.length),
                     dumped.length);
    assert_int_equal(dump.process, 7);
    assert_all_is_read(&dump);
    sp_jitdump_deinit(&dump);
}

/* The file grows by a byte each time, and is shown from where the last read ended. */
static void jitdump_that_grows_is_read_once(void **state)
{
    (void)state;
    sp_jitdump dump = {0};
    uint64_t done = 0;
    put_all(7);
    for (uint64_t length = 1; length <= dumped.length; length++)
        done += sp_jitdump_read(&dump, dumped.data + done, length - done, length - done);
    assert_int_equal(done, dumped.length);
    assert_all_is_read(&dump);
    assert_int_equal(dump.table.line_count, 2);
    sp_jitdump_deinit(&dump);
}

/* Less is shown than the file has: code is skipped. */
static void jitdump_code_is_not_needed(void **state)
{
    (void)state;
    sp_jitdump dump = {0};
    uint64_t done = 0, step = 1;
    put_all(7);
    for (; done < dumped.length && step; done += step) {
        uint64_t left = dumped.length - done;
        step = sp_jitdump_read(&dump, dumped.data + done, left < 120 ? left : 120, left);
    }
    assert_int_equal(done, dumped.length);
    assert_all_is_read(&dump);
    sp_jitdump_deinit(&dump);
}

static void jitdump_of_another_kind_is_refused(void **state)
{
    static const struct {
        uint32_t magic, version;
        const char *problem;
    } headers[] = {{0x4454694a, 1, "byte order"},
                   {0x4a695444, 2, "version"},
                   {0x464c457f, 1, "not a jitdump"}};
    (void)state;
    for (size_t i = 0; i < SP_ARRAY_LENGTH(headers); i++) {
        sp_jitdump dump = {0};
        sp_buffer_clear(&dumped);
        put_header(headers[i].magic, headers[i].version, 7);
        put_load(0x1000, 32, "first");
        assert_int_equal(sp_jitdump_read(&dump, dumped.data, dumped.length, dumped.length), 0);
        assert_non_null(strstr(dump.problem, headers[i].problem));
        assert_seen(&dump.table, 0x1000, NULL);
        sp_jitdump_deinit(&dump);
    }
}

static void jitdump_record_without_length_ends_reading(void **state)
{
    (void)state;
    sp_jitdump dump = {0};
    sp_buffer_clear(&dumped);
    put_header(0x4a695444, 1, 7);
    put_load(0x1000, 32, "first");
    size_t good = dumped.length;
    put_u64(0);
    put_u64(0);
    assert_int_equal(sp_jitdump_read(&dump, dumped.data, dumped.length, dumped.length), good);
    assert_non_null(dump.problem);
    assert_seen(&dump.table, 0x1000, "first");
    sp_jitdump_deinit(&dump);
}

/* ---- through the symbolizer ---- */

static sp_symbolizer *symbolizer;
static char map_path[64];

static int set_up(void **state)
{
    (void)state;
    test_forget_lines();
    unlink(map_path);
    symbolizer = sp_symbolizer_create();
    return symbolizer ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    sp_symbolizer_destroy(symbolizer);
    unlink(map_path);
    return 0;
}

static const sp_frame *frame_at(uint64_t address)
{
    const sp_frame *frames;
    assert_int_equal(sp_symbolizer_frames(symbolizer, NULL, address, &frames), 1);
    return frames;
}

static void append(const char *text)
{
    FILE *file = fopen(map_path, "a");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void perf_map_names_addresses_in_no_module(void **state)
{
    (void)state;
    append("7000 100 LazyCompile:*render app.js:7.cold@3\n7100 10 _ZN2ns1fIiEEvPc\n");
    const sp_frame *frame = frame_at(0x7010);
    assert_string_equal(frame->name, "LazyCompile:*render app.js:7.cold@3");
    assert_string_equal(frame->system_name, "");
    assert_string_equal(frame->file, "");
    assert_false(frame->unresolved);
    assert_ptr_equal(frame_at(0x7011), frame); /* one function, one frame */
    assert_string_equal(frame_at(0x8000)->name, "[unknown]+0x8000");
    assert_true(frame_at(0x8000)->unresolved);
    assert_int_equal(test_logged_count, 0);
}

static void perf_map_long_name_is_cut_after_a_whole_character(void **state)
{
    (void)state;
    enum { NAME_BYTES = 20 * 1024 };
    char name[NAME_BYTES + 1] = {0};
    memset(name, 'x', NAME_BYTES);
    memcpy(name + SP_CODE_NAME_MAX - 4, "\xc3\xa4", 2); /* across where the mark begins */
    append("7000 100 ");
    append(name);
    append("\n7100 10 small\n");
    const char *cut = frame_at(0x7010)->name;
    assert_int_equal(strlen(cut), SP_CODE_NAME_MAX - 1);
    assert_memory_equal(cut, name, SP_CODE_NAME_MAX - 4);
    assert_string_equal(cut + SP_CODE_NAME_MAX - 4, "\xe2\x80\xa6");
    assert_string_equal(frame_at(0x7100)->name, "small");
}

/* What compilers tell later is seen in the next round: new code, and code in the place of other
 * code. */
static void perf_map_that_grew_is_read_in_the_next_round(void **state)
{
    (void)state;
    assert_string_equal(frame_at(0x7000)->name, "[unknown]+0x7000"); /* there is no file yet */
    append("7000 100 old\n7200 100 hal");
    sp_symbolizer_rest(symbolizer);
    assert_string_equal(frame_at(0x7000)->name, "old");
    assert_string_equal(frame_at(0x7200)->name, "[unknown]+0x7200");
    append("f\n7080 100 new\n");
    assert_string_equal(frame_at(0x7080)->name, "old"); /* the same as before in this round */
    sp_symbolizer_rest(symbolizer);
    assert_string_equal(frame_at(0x7200)->name, "half");
    assert_string_equal(frame_at(0x7080)->name, "new");
    assert_string_equal(frame_at(0x7000)->name, "old");
}

static void perf_map_written_anew_is_read_anew(void **state)
{
    (void)state;
    append("7000 100 one\n");
    assert_string_equal(frame_at(0x7000)->name, "one");
    test_write(map_path, "8000 100 two\n9000 10 longer\n", 28); /* larger than before */
    sp_symbolizer_rest(symbolizer);
    assert_string_equal(frame_at(0x7000)->name, "[unknown]+0x7000");
    assert_string_equal(frame_at(0x8000)->name, "two");
    unlink(map_path);
    append("a000 100 three\n");
    sp_symbolizer_rest(symbolizer);
    assert_string_equal(frame_at(0xa000)->name, "three");
    assert_string_equal(frame_at(0x8000)->name, "[unknown]+0x8000");
}

static void perf_map_of_somebody_else_is_not_read(void **state)
{
    (void)state;
    test_write(test_path("planted"), "7000 100 planted\n", 17);
    assert_int_equal(symlink(test_path("planted"), map_path), 0);
    assert_string_equal(frame_at(0x7000)->name, "[unknown]+0x7000");
    assert_int_equal(test_logged_count, 1);
    assert_true(test_was_logged("symbolic link"));
    unlink(map_path);
    assert_int_equal(mkfifo(map_path, 0600), 0);
    sp_symbolizer_rest(symbolizer);
    assert_string_equal(frame_at(0x7000)->name, "[unknown]+0x7000");
    unlink(map_path);
    if (geteuid() != 0)
        return;
    append("7000 100 planted\n");
    assert_int_equal(chown(map_path, 65534, (gid_t)-1), 0);
    sp_symbolizer_rest(symbolizer);
    assert_string_equal(frame_at(0x7000)->name, "[unknown]+0x7000");
    assert_int_equal(test_logged_count, 1); /* one warning for the file */
}

/* Maps the dump as compilers do, for as long as *MAPPED lives. */
static void write_dump(const char *directory, uint32_t process, void **mapped)
{
    char name[64];
    snprintf(name, sizeof name, "%sjit-%d.dump", directory, (int)getpid());
    put_all(process);
    test_write(test_path(name), dumped.data, dumped.length);
    int fd = open(test_path(name), O_RDONLY);
    *mapped = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
    assert_ptr_not_equal(*mapped, MAP_FAILED);
    close(fd);
}

static void jitdump_is_found_by_its_mapping(void **state)
{
    void *mapped;
    (void)state;
    write_dump("", (uint32_t)getpid(), &mapped);
    append("1000 1000 less is known here\n6000 10 only here\n");
    assert_string_equal(frame_at(0x1009)->name, "first");
    assert_string_equal(frame_at(0x1009)->file, "app.js");
    assert_int_equal(frame_at(0x1009)->line, 12);
    assert_string_equal(frame_at(0x4000)->name, "third");
    assert_string_equal(frame_at(0x6000)->name, "only here");
    assert_int_equal(test_logged_count, 0);
    munmap(mapped, 4096);
}

static void jitdump_of_another_process_is_not_used(void **state)
{
    void *mapped;
    (void)state;
    write_dump("", (uint32_t)getppid(), &mapped);
    assert_string_equal(frame_at(0x2000)->name, "[unknown]+0x2000");
    assert_int_equal(test_logged_count, 1);
    assert_true(test_was_logged("another process"));
    sp_symbolizer_rest(symbolizer);
    frame_at(0x2000);
    assert_int_equal(test_logged_count, 1);
    munmap(mapped, 4096);
}

static void kernel_address_is_named_by_kallsyms(void **state)
{
    static const char text[] = "ffffffff81000000 T _text\n"
                               "ffffffff81000100 t do_work\n"
                               "ffffffff81000100 T alias_of_it\n"
                               "ffffffff81000200 D some_data\n"
                               "ffffffff81000300 W weak_one\n"
                               "ffffffffc0000000 t in_module\t[ext4]\n"
                               "short\n";
    (void)state;
    test_write(test_path("kallsyms"), text, sizeof text - 1);
    sp_outside_names_set_kallsyms(test_path("kallsyms"));
    assert_string_equal(frame_at(0xffffffff81000110)->name, "do_work");
    assert_string_equal(frame_at(0xffffffff81000210)->name, "do_work");
    assert_string_equal(frame_at(0xffffffff81000300)->name, "weak_one");
    assert_string_equal(frame_at(0xffffffffc0000001)->name, "in_module");
    assert_false(frame_at(0xffffffffc0000001)->unresolved);
    assert_string_equal(frame_at(0xffffffffa0000000)->name, "[kernel]+0xffffffffa0000000");
    assert_true(frame_at(0xffffffffa0000000)->unresolved);
    assert_string_equal(frame_at(0xffffffff80000000)->name, "[kernel]+0xffffffff80000000");
}

static void kernel_that_hides_addresses_gives_the_address(void **state)
{
    static const char text[] = "0000000000000000 T _text\n0000000000000000 t do_work\n";
    (void)state;
    test_write(test_path("hidden"), text, sizeof text - 1);
    const char *paths[] = {test_path("hidden"), "/nonexistent"};
    for (size_t i = 0; i < SP_ARRAY_LENGTH(paths); i++) {
        sp_outside_names_set_kallsyms(paths[i]);
        sp_outside_names *names = sp_outside_names_create(SP_DEMANGLE_SHORT, 0);
        assert_string_equal(sp_outside_names_frame(names, 0xffffffff81000110)->name,
                            "[kernel]+0xffffffff81000110");
        sp_outside_names_destroy(names);
    }
    assert_int_equal(test_logged_count, 0);
}

/* Whether no file has the name that this process's map has to have. */
static bool is_map_path_free(void)
{
    snprintf(map_path, sizeof map_path, "/tmp/perf-%d.map", (int)getpid());
    int fd = open(map_path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    close(fd);
    return fd >= 0 && unlink(map_path) == 0;
}

/* The name is made of the process id, and may be there: of a process that had the same id, or that
 * has it in another container. Then a child goes on, for its id is another one. */
static void find_free_map_path(void)
{
    while (!is_map_path_free()) {
        int status = -1;
        pid_t child = fork();
        if (child == 0)
            continue;
        waitpid(child, &status, 0);
        exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(code_table_newest_code_is_seen),
        cmocka_unit_test(code_table_moved_code_is_seen_where_it_went),
        cmocka_unit_test(code_table_agrees_with_a_plain_list),
        cmocka_unit_test(code_table_odd_code_is_left_out),
        cmocka_unit_test(code_table_full_keeps_what_it_has),
        cmocka_unit_test(perf_map_lines_are_read),
        cmocka_unit_test(perf_map_long_line_is_left_out),
        cmocka_unit_test(jitdump_records_are_read),
        cmocka_unit_test(jitdump_that_grows_is_read_once),
        cmocka_unit_test(jitdump_code_is_not_needed),
        cmocka_unit_test(jitdump_of_another_kind_is_refused),
        cmocka_unit_test(jitdump_record_without_length_ends_reading),
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        CASE(perf_map_names_addresses_in_no_module),
        CASE(perf_map_long_name_is_cut_after_a_whole_character),
        CASE(perf_map_that_grew_is_read_in_the_next_round),
        CASE(perf_map_written_anew_is_read_anew),
        CASE(perf_map_of_somebody_else_is_not_read),
        CASE(jitdump_is_found_by_its_mapping),
        CASE(jitdump_of_another_process_is_not_used),
        CASE(kernel_address_is_named_by_kallsyms),
        CASE(kernel_that_hides_addresses_gives_the_address),
    };
    find_free_map_path();
    if (!test_files_begin())
        return 1;
    int failed = cmocka_run_group_tests_name("outside_names", tests, NULL, NULL);
    sp_buffer_deinit(&dumped);
    test_files_end();
    return failed;
}
