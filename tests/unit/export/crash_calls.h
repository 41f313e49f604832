/* SPDX-License-Identifier: Apache-2.0 */
/* Makes a process crash at any of its calls that change file names. The functions link and unlink
 * below replace those of the C library, because the linker takes a program's own functions first. A
 * test can count another call by count_call. */
#ifndef TESTS_UNIT_EXPORT_CRASH_CALLS_H
#define TESTS_UNIT_EXPORT_CRASH_CALLS_H

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit/export/captured_log.h"

enum { CRASHED = 42 };

static char directory[64], prefix[80]; /* of the files of one test */
static int calls_left = -1;            /* until the process ends; < 0: no limit */
static bool has_no_links;

static void count_call(void)
{
    if (calls_left == 0)
        _exit(CRASHED);
    if (calls_left > 0)
        calls_left--;
}

int link(const char *from, const char *to)
{
    count_call();
    if (!has_no_links)
        return (int)syscall(SYS_linkat, AT_FDCWD, from, AT_FDCWD, to, 0);
    errno = EPERM;
    return -1;
}

int unlink(const char *path)
{
    count_call();
    return (int)syscall(SYS_unlinkat, AT_FDCWD, path, 0);
}

/* A setup of cmocka: an empty directory, calls that work, and a log that is captured. */
static inline int crash_set_up(void **state)
{
    (void)state;
    capture_log();
    calls_left = -1;
    has_no_links = false;
    strcpy(directory, "/tmp/spanprof-test-XXXXXX");
    assert_non_null(mkdtemp(directory));
    snprintf(prefix, sizeof prefix, "%s/p", directory);
    return 0;
}

/* Run WORK in a child that ends at its call number CALL, counted from 0. False: WORK has fewer
 * calls. */
static inline bool crash_at(int call, void (*work)(void))
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        calls_left = call;
        work();
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_true(WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == CRASHED);
    return WEXITSTATUS(status) == CRASHED;
}

#endif
