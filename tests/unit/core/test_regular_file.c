/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "core/regular_file.h"

static char folder[] = "/tmp/spanprof_regular_file_XXXXXX";
static unsigned opens, interruptions;
static const char *replaced_by; /* the file becomes this one between the check and the open */

int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
int __wrap___open_2(const char *path, int flags);

int __wrap_open(const char *path, int flags, ...)
{
    opens++;
    if (interruptions && interruptions--) {
        errno = EINTR;
        return -1;
    }
    if (replaced_by)
        assert_int_equal(rename(replaced_by, path), 0);
    replaced_by = NULL;
    return __real_open(path, flags);
}

/* The name of open with _FORTIFY_SOURCE. */
int __wrap___open_2(const char *path, int flags)
{
    return __wrap_open(path, flags);
}

static int set_up_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) && chdir(folder) == 0 ? 0 : -1;
}

static int remove_folder(void **state)
{
    (void)state;
    return chdir("/") == 0 ? rmdir(folder) : -1;
}

static int set_up(void **state)
{
    (void)state;
    opens = interruptions = 0;
    replaced_by = NULL;
    FILE *file = fopen("file", "w");
    bool is_written = file && fputs("hello", file) >= 0;
    return file && fclose(file) == 0 && is_written ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    unlink("fifo");
    unlink("link");
    return unlink("file");
}

static void assert_fails(const char *path, int flags, int error)
{
    errno = 0;
    assert_int_equal(sp_regular_file_open(path, flags, NULL), -1);
    assert_int_equal(errno, error);
}

static void file_is_opened_with_its_status(void **state)
{
    (void)state;
    struct stat status;
    char text[8];
    int fd = sp_regular_file_open("file", O_RDONLY, &status);
    assert_true(fd >= 0);
    assert_int_equal(status.st_size, 5);
    assert_int_equal(read(fd, text, sizeof text), 5);
    assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    assert_int_equal(fcntl(fd, F_GETFL) & O_ACCMODE, O_RDONLY);
    assert_int_equal(close(fd), 0);
}

static void file_is_opened_for_writing_when_flags_say_so(void **state)
{
    (void)state;
    int fd = sp_regular_file_open("file", O_RDWR, NULL);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, "J", 1), 1);
    assert_int_equal(close(fd), 0);
}

static void missing_file_is_told(void **state)
{
    (void)state;
    assert_fails("missing", O_RDONLY, ENOENT);
}

static void link_is_followed_unless_flags_forbid_it(void **state)
{
    (void)state;
    assert_int_equal(symlink("file", "link"), 0);
    int fd = sp_regular_file_open("link", O_RDONLY, NULL);
    assert_true(fd >= 0);
    assert_int_equal(close(fd), 0);
    assert_fails("link", O_NOFOLLOW, ELOOP);
}

/* An open alone would let the writer of a FIFO continue, and could rewind a tape. */
static void other_kinds_are_never_opened(void **state)
{
    (void)state;
    assert_int_equal(mkfifo("fifo", 0600), 0);
    assert_int_equal(symlink("fifo", "link"), 0);
    assert_fails("fifo", O_RDONLY, EINVAL);
    assert_fails("link", O_RDONLY, EINVAL);
    assert_fails(".", O_RDONLY, EINVAL);
    assert_fails("/dev/null", O_RDONLY, EINVAL);
    assert_int_equal(opens, 0);
}

/* An open that waited for the writer of the FIFO would never end. */
static void fifo_that_replaces_the_file_is_closed(void **state)
{
    (void)state;
    int next = dup(STDERR_FILENO);
    assert_int_equal(close(next), 0);
    assert_int_equal(mkfifo("fifo", 0600), 0);
    replaced_by = "fifo";
    assert_fails("file", O_RDONLY, EINVAL);
    assert_int_equal(opens, 1);
    int after = dup(STDERR_FILENO); /* the same number: nothing stayed open */
    assert_int_equal(after, next);
    assert_int_equal(close(after), 0);
}

static void interrupted_open_is_done_again(void **state)
{
    (void)state;
    interruptions = 2;
    int fd = sp_regular_file_open("file", O_RDONLY, NULL);
    assert_true(fd >= 0);
    assert_int_equal(opens, 3);
    assert_int_equal(close(fd), 0);
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(file_is_opened_with_its_status), TEST(file_is_opened_for_writing_when_flags_say_so),
        TEST(missing_file_is_told),           TEST(link_is_followed_unless_flags_forbid_it),
        TEST(other_kinds_are_never_opened),   TEST(fifo_that_replaces_the_file_is_closed),
        TEST(interrupted_open_is_done_again),
    };
    return cmocka_run_group_tests(tests, set_up_folder, remove_folder);
}
