/* SPDX-License-Identifier: Apache-2.0 */
/* A disk that cannot be written, from the start on or later, or that is full: the spool goes
 * without it, and says so. That the counts add up is checked by each fixture_stop. */
#include "fault/export_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "export/export_internal.h"

static char directory[64];
static _Atomic bool is_read_only; /* what lies in the directory */

/* Whether a call that changes PATH fails, as the kernel has it for a file system that it has made
 * read-only after an error. */
static bool is_refused(const char *path)
{
    if (!atomic_load(&is_read_only) || strncmp(path, directory, strlen(directory)) != 0)
        return false;
    errno = EROFS;
    return true;
}

/* In place of the C library's: the linker takes those of the program first. */
int open(const char *path, int flags, ...)
{
    va_list arguments;
    va_start(arguments, flags);
    mode_t mode = flags & O_CREAT ? va_arg(arguments, mode_t) : 0;
    va_end(arguments);
    if ((flags & (O_WRONLY | O_RDWR | O_CREAT)) && is_refused(path))
        return -1;
    return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

int unlink(const char *path)
{
    return is_refused(path) ? -1 : (int)syscall(SYS_unlinkat, AT_FDCWD, path, 0);
}

static int setup(void **state)
{
    strcpy(directory, "/tmp/spanprof-test-XXXXXX");
    assert_non_null(mkdtemp(directory));
    fixture_setup_absent(state);
    fixture *f = *state;
    f->config.spool = directory;
    f->config.http[SP_PROFILES].gzip = false;
    return 0;
}

static int teardown(void **state)
{
    atomic_store(&is_read_only, false);
    fixture_teardown(state);
    return rmdir(directory);
}

static uint64_t spooled(fixture *f)
{
    return sp_load_relaxed(&sp_exporter_counters(f->exporter)->spooled);
}

static void assert_arrived(fixture *f, const char *const texts[], size_t count)
{
    assert_int_equal(server_count(f->server, PROFILES), count);
    for (size_t i = 0; i < count; i++)
        assert_string_equal(server_get(f->server, PROFILES, i)->body, texts[i]);
}

static void disk_becomes_read_only_what_comes_waits_in_memory(void **state)
{
    fixture *f = *state;
    static const char *const texts[] = {"kept", "waits", "kept", "later"};
    hold_time(f);
    fixture_start(f);
    submit(f, texts[0]);
    while (spooled(f) != 1)
        usleep(1000);
    atomic_store(&is_read_only, true);
    submit(f, texts[1]);
    assert_int_equal(log_awaited("Read-only file system: it waits in memory", 1), 1);
    server_listen(f->server);
    skip_time(f);
    server_wait(f->server, PROFILES, 2);
    assert_int_equal(flush(f), SPANPROF_OK);
    /* Delivered, and its file is still there: the next exporter sends it once more. */
    assert_int_equal(log_awaited("Read-only file system: the next start sends it once more", 1), 1);
    fixture_stop(f, PATIENCE_NS);
    assert_int_equal(f->counted.requests, 2);
    assert_int_equal(f->counted.spooled, 0);
    atomic_store(&is_read_only, false);
    f->submitted = 0;
    fixture_start(f);
    submit(f, texts[3]);
    assert_int_equal(flush(f), SPANPROF_OK);
    fixture_stop(f, PATIENCE_NS);
    assert_int_equal(f->counted.taken_over, 1);
    assert_arrived(f, texts, 4);
}

/* As root, whom no mode of a directory stops: a disk of this thread's, which the exporter's
 * inherits. */
static void mount_disk(unsigned long flags, const char *options)
{
    if (unshare(CLONE_NEWNS) == 0 && mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
        mount("tmpfs", directory, "tmpfs", flags, options) == 0)
        return;
    print_message("SKIPPED: no disk can be mounted here\n");
    skip();
}

static void disk_is_read_only_requests_are_sent_without_a_spool(void **state)
{
    fixture *f = *state;
    static const char *const texts[] = {"sent"};
    mount_disk(MS_RDONLY, NULL);
    server_listen(f->server);
    fixture_start(f);
    assert_int_equal(log_awaited("Read-only file system: going on without a spool", 1), 1);
    submit(f, texts[0]);
    assert_int_equal(flush(f), SPANPROF_OK);
    fixture_stop(f, PATIENCE_NS);
    assert_int_equal(f->counted.requests, 1);
    assert_arrived(f, texts, 1);
    assert_int_equal(umount(directory), 0);
}

/* What the disk has no room for waits in memory; all arrives in its order. */
static void disk_is_full_requests_wait_in_memory(void **state)
{
    fixture *f = *state;
    enum { REQUESTS = 6, BODY_BYTES = 5000 }; /* two pages each */
    char bodies[REQUESTS][BODY_BYTES + 1];
    const char *texts[REQUESTS];
    mount_disk(0, "size=16k");
    hold_time(f);
    fixture_start(f);
    for (int i = 0; i < REQUESTS; i++) {
        memset(bodies[i], 'a' + i, BODY_BYTES);
        bodies[i][BODY_BYTES] = 0;
        texts[i] = bodies[i];
        submit(f, bodies[i]);
    }
    assert_int_equal(log_awaited("No space left on device: it waits in memory", 1), 1);
    assert_true(spooled(f) > 0);
    server_listen(f->server);
    skip_time(f);
    assert_int_equal(flush(f), SPANPROF_OK);
    fixture_stop(f, PATIENCE_NS);
    assert_int_equal(f->counted.requests, REQUESTS);
    assert_arrived(f, texts, REQUESTS);
    assert_int_equal(umount(directory), 0);
}

#define CASE(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
    alarm(540);
    const struct CMUnitTest tests[] = {
        CASE(disk_becomes_read_only_what_comes_waits_in_memory),
        CASE(disk_is_read_only_requests_are_sent_without_a_spool),
        CASE(disk_is_full_requests_wait_in_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
