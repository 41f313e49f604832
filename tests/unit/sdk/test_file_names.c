/* SPDX-License-Identifier: Apache-2.0 */
/* Names of the files of one process among several, also where PIDs are as small as the numbers of
 * earlier runs, as in a container. */
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include <spanprof/spanprof.h>
#include "export/exporter.h"
#include "remove_folder.h"
#include "sanitizers.h"

enum { SKIPPED = 77, PATIENCE_S = 120 };

static const char *program;
static char directory[64], prefix[80];

static void small_pids_have_names_that_no_run_has(void **state)
{
    (void)state;
    static const struct {
        long pid;
        const char *name;
    } rows[] = {{1, "p.pid1"}, {2, "p.pid2"}, {3, "p.pid3"}, {4, "p.4"}, {4194304, "p.4194304"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char name[32];
        sp_file_own_prefix(name, sizeof name, "p", rows[i].pid);
        assert_string_equal(name, rows[i].name);
    }
}

static void start(const char *file)
{
    spanprof_options options = SPANPROF_OPTIONS_INIT;
    options.exporter = "file";
    options.file = file;
    options.profiles = "none";
    if (spanprof_start(&options, NULL) != SPANPROF_OK)
        _exit(1);
}

static void stop_with_span(const char *name)
{
    spanprof_span_end(spanprof_span_start(NULL, name, NULL));
    if (spanprof_stop(UINT64_C(60000000000)) != SPANPROF_OK)
        _exit(2);
}

static void run(const char *file, const char *name)
{
    start(file);
    stop_with_span(name);
}

/* Whether the traces at PREFIX with ENDING have TEXT in them. */
static bool has(const char *ending, const char *text)
{
    char path[160], content[16384];
    snprintf(path, sizeof path, "%s%s.traces.jsonl", prefix, ending);
    FILE *file = fopen(path, "r");
    if (!file)
        return false;
    size_t length = fread(content, 1, sizeof content, file);
    fclose(file);
    return memmem(content, length, text, strlen(text)) != NULL;
}

/* The exit code of CHILD. */
static int end_of(pid_t child)
{
    int status;
    if (child < 0 || waitpid(child, &status, 0) != child)
        return 128;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* PID 2, another program with the prefix that PID 1 writes to. */
static int role_second(void)
{
    if (getpid() != 2)
        return 3;
    run(prefix, "second");
    return 0;
}

/* The next process of this namespace gets PID, if that is free. SKIPPED where this is not
 * permitted; threads have used up the numbers. */
static void expect_pid(int pid)
{
    FILE *file = fopen("/proc/sys/kernel/ns_last_pid", "w");
    if (!file || fprintf(file, "%d", pid - 1) < 0 || fclose(file) != 0)
        _exit(SKIPPED);
}

static pid_t start_second(void)
{
    expect_pid(2);
    pid_t child = fork();
    if (child == 0) {
        execl(program, program, "second", directory, NULL);
        _exit(127);
    }
    return child;
}

/* PID 3, forked by the SDK's process. */
static pid_t fork_third(void)
{
    expect_pid(3);
    pid_t child = fork();
    if (child == 0) {
        setenv("SPANPROF_FILE", prefix, 1);
        run(NULL, "third");
        _exit(getpid() != 3);
    }
    return child;
}

/* PID 1, with three earlier runs. */
static int role_first(void)
{
    static const char *const names[] = {"oldest", "older", "old"};
    if (getpid() != 1)
        return 4;
    mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL);
    mount("proc", "/proc", "proc", 0, NULL);
    alarm(PATIENCE_S);
    for (int i = 0; i < 3; i++)
        run(prefix, names[i]);
    start(prefix);
    int failed = end_of(start_second());
    if (!failed && !why_forked_child_cannot_start())
        failed = end_of(fork_third());
    stop_with_span("first");
    return failed;
}

/* In namespaces of its own, whose first process is forked here. */
static int role_outside(void)
{
    if (unshare(CLONE_NEWPID | CLONE_NEWNS) != 0 &&
        unshare(CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS) != 0)
        return SKIPPED;
    pid_t child = fork();
    if (child == 0) {
        execl(program, program, "first", directory, NULL);
        _exit(127);
    }
    return end_of(child);
}

static void processes_of_a_container_leave_the_runs_as_they_are(void **state)
{
    (void)state;
    strcpy(directory, "/tmp/spanprof-names-XXXXXX");
    assert_non_null(mkdtemp(directory));
    snprintf(prefix, sizeof prefix, "%s/p", directory);
    pid_t outside = fork();
    if (outside == 0) {
        execl(program, program, "outside", directory, NULL);
        _exit(127);
    }
    int code = end_of(outside);
    if (code == SKIPPED) {
        assert_int_equal(remove_folder(directory), 0);
        print_message("SKIPPED: no PID namespace can be made and numbered here\n");
        skip();
    }
    assert_int_equal(code, 0);
    assert_true(has(".1", "\"old\"") && has(".2", "\"older\"") && has(".3", "\"oldest\""));
    assert_true(has("", "\"first\"") && has(".pid2", "\"second\""));
    if (!why_forked_child_cannot_start())
        assert_true(has(".pid3", "\"third\""));
    assert_int_equal(remove_folder(directory), 0);
}

/* Starts only when the parent's files are free to be taken: its end of PIPES is closed then. */
static int start_twice(const int pipes[2])
{
    char byte;
    close(pipes[1]);
    if (read(pipes[0], &byte, 1) != 0)
        return 5;
    setenv("SPANPROF_FILE", prefix, 1);
    run(NULL, "child");
    run(NULL, "child again");
    return 0;
}

static void forked_child_keeps_its_name_at_each_start(void **state)
{
    (void)state;
    if (why_forked_child_cannot_start())
        skip();
    int pipes[2];
    char ending[32], earlier[40];
    strcpy(directory, "/tmp/spanprof-names-XXXXXX");
    assert_non_null(mkdtemp(directory));
    snprintf(prefix, sizeof prefix, "%s/p", directory);
    assert_int_equal(pipe(pipes), 0);
    start(prefix);
    pid_t child = fork();
    if (child == 0)
        _exit(start_twice(pipes));
    stop_with_span("parent");
    close(pipes[0]);
    close(pipes[1]);
    assert_int_equal(end_of(child), 0);
    snprintf(ending, sizeof ending, ".%d", (int)child);
    snprintf(earlier, sizeof earlier, "%s.1", ending);
    assert_true(has("", "\"parent\""));
    assert_true(has(ending, "\"child again\"") && has(earlier, "\"child\""));
    assert_int_equal(remove_folder(directory), 0);
}

int main(int argc, char **argv)
{
    program = argv[0];
    if (argc > 2) {
        snprintf(directory, sizeof directory, "%s", argv[2]);
        snprintf(prefix, sizeof prefix, "%s/p", directory);
        /* LeakSanitizer, which exit() starts, does not work in a PID namespace of its own. */
        _exit(strcmp(argv[1], "outside") == 0 ? role_outside()
              : strcmp(argv[1], "first") == 0 ? role_first()
                                              : role_second());
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_pids_have_names_that_no_run_has),
        cmocka_unit_test(processes_of_a_container_leave_the_runs_as_they_are),
        cmocka_unit_test(forked_child_keeps_its_name_at_each_start),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
