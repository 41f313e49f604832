/* SPDX-License-Identifier: Apache-2.0 */
/* Two starts at the same moment with one prefix, in the order in which both would give it up: the
 * second has a lock on the first one's traces when the first wants it, and the first has the
 * profiles when the second wants them. Exactly one gets the prefix. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "export/export_internal.h"
#include "remove_folder.h"
#include "unit/export/crash_calls.h"

enum { NOT_YET, HAS_TRACES, WAITS, DONE };
enum { LONGEST_WAIT_MS = 60000 };

/* Of both processes. */
static struct shared {
    _Atomic int first_has_made_traces, first_has_profiles, second;
    bool second_has_prefix;
} * shared;

static bool is_second;
static int locks_asked; /* for regular files */

/* Wait until *FLAG is LEAST or more. */
static void wait_for(_Atomic int *flag, int least)
{
    for (int i = 0; i < LONGEST_WAIT_MS && atomic_load(flag) < least; i++)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

static bool is_directory(int fd)
{
    struct stat status;
    return fstat(fd, &status) == 0 && S_ISDIR(status.st_mode);
}

static void hold_first(bool locked)
{
    if (locks_asked == 2 && locked) {
        atomic_store(&shared->first_has_profiles, 1);
        wait_for(&shared->second, WAITS);
    }
}

static void hold_second(int fd, bool locked)
{
    if (is_directory(fd) && !locked) {
        atomic_store(&shared->second, WAITS);
    } else if (locks_asked == 1 && atomic_load(&shared->second) == NOT_YET) {
        atomic_store(&shared->second, HAS_TRACES);
        wait_for(&shared->first_has_profiles, 1);
    }
}

/* In place of the C library's. */
int flock(int fd, int operation)
{
    locks_asked += !is_directory(fd);
    if (!is_second && locks_asked == 1) {
        atomic_store(&shared->first_has_made_traces, 1);
        wait_for(&shared->second, HAS_TRACES);
    }
    int result = (int)syscall(SYS_flock, fd, operation);
    if (!is_second)
        hold_first(result == 0);
    else if (!(operation & LOCK_UN))
        hold_second(fd, result == 0);
    return result;
}

/* Whether this process got the prefix itself. Its files are open from now on. */
static bool start(sp_file files[2], sp_export_config *config)
{
    static sp_export_counters counters;
    *config = (sp_export_config){.file_prefix = strdup(prefix),
                                 .file_format = SP_OTLP_JSON,
                                 .traces_enabled = true,
                                 .queue_maximum_bytes = 1 << 20};
    assert_true(sp_file_runs_open(files, config, &counters));
    return strcmp(config->file_prefix, prefix) == 0;
}

static void end(sp_file files[2], sp_export_config *config)
{
    for (int i = 0; i < 2; i++)
        sp_file_deinit(&files[i]);
    free(config->file_prefix);
}

static pid_t fork_second(void)
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child != 0)
        return child;
    sp_file files[2] = {{.fd = -1}, {.fd = -1}};
    sp_export_config config;
    is_second = true;
    wait_for(&shared->first_has_made_traces, 1);
    shared->second_has_prefix = start(files, &config);
    atomic_store(&shared->second, DONE);
    end(files, &config);
    _exit(0);
}

static int setup(void **state)
{
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(shared, MAP_FAILED);
    return crash_set_up(state);
}

static int teardown(void **state)
{
    (void)state;
    locks_asked = 0;
    munmap(shared, sizeof *shared);
    return remove_folder(directory);
}

static void one_of_two_starts_gets_the_prefix(void **state)
{
    (void)state;
    sp_file files[2] = {{.fd = -1}, {.fd = -1}};
    sp_export_config config;
    int status;
    pid_t second = fork_second();
    bool first_has_prefix = start(files, &config);
    assert_int_equal(waitpid(second, &status, 0), second);
    assert_int_equal(status, 0);
    end(files, &config);
    assert_int_equal(first_has_prefix + shared->second_has_prefix, 1);
}

/* As below `flock . ./server`. */
static void lock_of_another_program_does_not_stop_a_start(void **state)
{
    (void)state;
    sp_file files[2] = {{.fd = -1}, {.fd = -1}};
    sp_export_config config;
    int held = open(directory, O_RDONLY | O_DIRECTORY);
    assert_true(held >= 0);
    assert_int_equal(syscall(SYS_flock, held, LOCK_EX), 0);
    atomic_store(&shared->second, DONE); /* nobody holds this start */
    sp_log_configure(SPANPROF_LOG_INFO, log_line, NULL);
    assert_true(start(files, &config));
    assert_int_equal(log_count("holds a lock on the directory: not waited for"), 1);
    end(files, &config);
    close(held);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(one_of_two_starts_gets_the_prefix, setup, teardown),
        cmocka_unit_test_setup_teardown(lock_of_another_program_does_not_stop_a_start, setup,
                                        teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
