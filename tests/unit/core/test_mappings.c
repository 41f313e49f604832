/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "core/mappings.h"

/* What was found: a line for each mapping, in a form of its own. */
typedef struct listing {
    char text[16384];
    size_t length;
    unsigned count, limit; /* stops after `limit`; 0: never */
} listing;

static bool list(const sp_mapping *mapping, void *user)
{
    listing *listing = user;
    int length =
        snprintf(listing->text + listing->length, sizeof listing->text - listing->length,
                 "%" PRIx64 " %" PRIx64 " %s %" PRIx64 " %x:%x %" PRIu64 " <%s>\n", mapping->start,
                 mapping->end, mapping->permissions, mapping->offset, major(mapping->device),
                 minor(mapping->device), mapping->inode, mapping->path);
    listing->length += (size_t)length;
    assert_true(listing->length < sizeof listing->text);
    return ++listing->count != listing->limit;
}

/* Each piece is what one read returns, because it is shorter than the reader's buffer. */
static void give(int fd, const char *text, size_t length)
{
    if (length > 0)
        assert_int_equal(send(fd, text, length, 0), length);
}

/* Read TEXT in pieces: up to CUT, and from there on. */
static void read_cut(const char *text, size_t cut, listing *out)
{
    int ends[2];
    memset(out, 0, sizeof *out);
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
    give(ends[0], text, cut);
    give(ends[0], text + cut, strlen(text + cut));
    close(ends[0]);
    assert_true(sp_mappings_of_descriptor(ends[1], list, out));
    close(ends[1]);
}

static const char usual[] =
    "55d0c8a00000-55d0c8a2b000 r-xp 00001000 08:01 1311768                    /usr/bin/sleep\n"
    "7f0000000000-7f0000001000 rw-p 00000000 00:00 0 \n"
    "7f0000001000-7f0000002000 r--s 0000f000 fd:10 77                         /a b/c  d (deleted)\n"
    "7f0000002000-7f0000003000 ---p 00000000 00:05 9                /memfd:OTEL_CTX (deleted)\n"
    "7ffc00000000-7ffc00021000 rw-p 00000000 00:00 0                          [stack]\n"
    "ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]";

static const char usual_listed[] =
    "55d0c8a00000 55d0c8a2b000 r-xp 1000 8:1 1311768 </usr/bin/sleep>\n"
    "7f0000000000 7f0000001000 rw-p 0 0:0 0 <>\n"
    "7f0000001000 7f0000002000 r--s f000 fd:10 77 </a b/c  d (deleted)>\n"
    "7f0000002000 7f0000003000 ---p 0 0:5 9 </memfd:OTEL_CTX (deleted)>\n"
    "7ffc00000000 7ffc00021000 rw-p 0 0:0 0 <[stack]>\n"
    "ffffffffff600000 ffffffffff601000 --xp 0 0:0 0 <[vsyscall]>\n";

/* The last line has no newline. */
static void mapping_has_all_that_its_line_says(void **state)
{
    (void)state;
    listing found;
    read_cut(usual, 0, &found);
    assert_string_equal(found.text, usual_listed);
}

static void map_that_is_cut_at_any_byte_is_read_the_same(void **state)
{
    (void)state;
    listing found;
    for (size_t cut = 1; cut < sizeof usual - 1; cut++) {
        read_cut(usual, cut, &found);
        assert_string_equal(found.text, usual_listed);
    }
}

static void lines_that_make_no_sense_are_passed_over(void **state)
{
    (void)state;
    listing found;
    read_cut("\n-\nzzz\n10-20\n10-20 r-xp\n10-20 r-xp 0\n10-20 r-xp 0 0:0\n10-20 r-xp 0 0:0 x\n"
             "10-20 rxp 0 0:0 0\n10-20 r-xpp 0 0:0 0\n-20 r-xp 0 0:0 0\n10 20 r-xp 0 0:0 0\n"
             "10-20 r-xp 0 0-0 0\n10-20 r-xp g 0:0 0\n10-20 r-xp 0 0:0 7x /y\n"
             "30-40 r-xp 0 0:0 0\n",
             0, &found);
    assert_string_equal(found.text, "30 40 r-xp 0 0:0 0 <>\n");
}

static void reading_stops_where_it_is_told_to(void **state)
{
    (void)state;
    listing found = {.limit = 2};
    int ends[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
    give(ends[0], usual, strlen(usual));
    assert_true(sp_mappings_of_descriptor(ends[1], list, &found));
    assert_int_equal(found.count, 2);
    close(ends[0]);
    close(ends[1]);
}

static void read_file(const char *text, listing *out)
{
    int fd = memfd_create("map", MFD_CLOEXEC);
    assert_true(fd >= 0);
    memset(out, 0, sizeof *out);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
    assert_true(sp_mappings_of_descriptor(fd, list, out));
    close(fd);
}

/* A path of LENGTH, then a mapping that has to be found behind it. */
static void read_long_path(size_t length)
{
    static char text[4 * PATH_MAX];
    static listing found;
    int begin = snprintf(text, sizeof text, "1000-2000 r--p 0 8:1 5 ");
    memset(text + begin, '/', length);
    strcpy(text + begin + length, "\n3000-4000 r--p 0 8:1 6 /next\n");
    read_file(text, &found);
    assert_int_equal(found.count, 2);
    assert_non_null(strstr(found.text, "\n3000 4000 r--p 0 8:1 6 </next>\n"));
    size_t kept = strspn(strchr(found.text, '/'), "/");
    assert_true(kept == length || (length > PATH_MAX && kept < length && kept >= PATH_MAX));
}

static void path_that_is_too_long_is_cut_and_the_next_line_is_whole(void **state)
{
    (void)state;
    for (size_t length = PATH_MAX - 2; length < PATH_MAX + 128; length++)
        read_long_path(length);
    read_long_path(2 * PATH_MAX + 70);
    read_long_path(3 * PATH_MAX);
}

/* ---- what the kernel writes ---- */

typedef struct search {
    uint64_t address;
    sp_mapping found;
    char path[PATH_MAX];
} search;

static bool find(const sp_mapping *mapping, void *user)
{
    search *search = user;
    if (search->address < mapping->start || search->address >= mapping->end)
        return true;
    search->found = *mapping;
    (void)snprintf(search->path, sizeof search->path, "%s", mapping->path);
    return false;
}

static uint64_t address_of(const void *object)
{
    return (uint64_t)(uintptr_t)object;
}

static void own_stack_and_own_code_are_found(void **state)
{
    (void)state;
    struct stat program;
    search stack = {.address = address_of(&program)}, code = {.address = (uintptr_t)find};
    assert_int_equal(stat("/proc/self/exe", &program), 0);
    assert_true(sp_mappings_of_process(0, find, &stack));
    assert_string_equal(stack.path, "[stack]");
    assert_false(sp_mapping_is_executable(&stack.found));
    assert_true(sp_mappings_of_process(getpid(), find, &code));
    assert_true(sp_mapping_is_executable(&code.found));
    assert_int_equal(code.path[0], '/');
}

static void removed_file_with_blanks_and_a_newline_is_found(void **state)
{
    (void)state;
    char name[] = "/tmp/a b\nXXXXXX";
    int fd = mkstemp(name);
    assert_true(fd >= 0);
    void *page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
    assert_ptr_not_equal(page, MAP_FAILED);
    assert_int_equal(unlink(name), 0);
    close(fd);
    search file = {.address = address_of(page)};
    assert_true(sp_mappings_of_process(0, find, &file));
    assert_int_equal(strncmp(file.path, "/tmp/a b\\012", strlen("/tmp/a b\\012")), 0);
    assert_string_equal(file.path + strlen(file.path) - strlen(" (deleted)"), " (deleted)");
    assert_true(file.found.inode > 0);
    munmap(page, 4096);
}

/* The child has the parent's memory at the same places. */
static void map_of_another_process_is_its_own(void **state)
{
    (void)state;
    void *page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(page, MAP_FAILED);
    int ends[2];
    char byte;
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        close(ends[1]);
        _exit((int)read(ends[0], &byte, 1));
    }
    munmap(page, 4096);
    search in_child = {.address = address_of(page)};
    assert_true(sp_mappings_of_process(child, find, &in_child));
    assert_true(in_child.found.end > address_of(page));
    close(ends[0]);
    close(ends[1]);
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_false(sp_mappings_of_process(child, find, &in_child));
    assert_int_equal(errno, ENOENT);
}

static void map_that_cannot_be_read_is_an_error(void **state)
{
    (void)state;
    listing found = {.count = 0};
    assert_false(sp_mappings_of_file("/nonexistent", list, &found));
    assert_int_equal(errno, ENOENT);
    assert_false(sp_mappings_of_file("/", list, &found));
    assert_int_equal(errno, EISDIR);
    assert_true(sp_mappings_of_file("/dev/null", list, &found));
    assert_int_equal(found.count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mapping_has_all_that_its_line_says),
        cmocka_unit_test(map_that_is_cut_at_any_byte_is_read_the_same),
        cmocka_unit_test(lines_that_make_no_sense_are_passed_over),
        cmocka_unit_test(reading_stops_where_it_is_told_to),
        cmocka_unit_test(path_that_is_too_long_is_cut_and_the_next_line_is_whole),
        cmocka_unit_test(own_stack_and_own_code_are_found),
        cmocka_unit_test(removed_file_with_blanks_and_a_newline_is_found),
        cmocka_unit_test(map_of_another_process_is_its_own),
        cmocka_unit_test(map_that_cannot_be_read_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
