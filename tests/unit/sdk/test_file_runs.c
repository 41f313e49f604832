/* SPDX-License-Identifier: Apache-2.0 */
/* Several runs with one SPANPROF_FILE: each leaves the files of the others as they are. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include <spanprof/spanprof.h>
#include "core/run_files.h"
#include "refuse_close_range.h"
#include "remove_folder.h"

enum { SKIPPED = 77 };

static const char *program;
static char directory[64], prefix[80], said[8192];

static void keep_log(spanprof_log_level level, const char *line, void *user)
{
    (void)level;
    (void)user;
    size_t length = strlen(said);
    snprintf(said + length, sizeof said - length, "%s\n", line);
}

static int setup(void **state)
{
    (void)state;
    strcpy(directory, "/tmp/spanprof-runs-XXXXXX");
    assert_non_null(mkdtemp(directory));
    snprintf(prefix, sizeof prefix, "%s/p", directory);
    said[0] = 0;
    return 0;
}

/* The path of PREFIX with ENDING; valid until the next call but one. */
static const char *path_of(const char *ending)
{
    static char paths[2][160];
    static unsigned turn;
    char *path = paths[turn++ % 2];
    snprintf(path, sizeof paths[0], "%s%s", prefix, ending);
    return path;
}

static int teardown(void **state)
{
    (void)state;
    return remove_folder(directory);
}

static void start(const char *format)
{
    spanprof_options options = SPANPROF_OPTIONS_INIT;
    options.exporter = "file";
    options.file = prefix;
    options.file_format = format;
    options.profiles = "none";
    options.log = keep_log;
    options.log_level = SPANPROF_LOG_INFO;
    said[0] = 0;
    assert_int_equal(spanprof_start(&options, NULL), SPANPROF_OK);
}

/* A run that writes one span, called NAME. */
static void run(const char *name, const char *format)
{
    start(format);
    spanprof_span_end(spanprof_span_start(NULL, name, NULL));
    assert_int_equal(spanprof_stop(UINT64_MAX), SPANPROF_OK);
}

static bool exists(const char *ending)
{
    return access(path_of(ending), F_OK) == 0;
}

static bool has(const char *ending, const char *text)
{
    char content[16384];
    FILE *file = fopen(path_of(ending), "r");
    if (!file)
        return false;
    size_t length = fread(content, 1, sizeof content, file);
    fclose(file);
    return memmem(content, length, text, strlen(text)) != NULL;
}

/* Lines of the last run's log that have TEXT. */
static unsigned lines_with(const char *text)
{
    unsigned count = 0;
    for (const char *at = said; (at = strstr(at, text)); at++)
        count++;
    return count;
}

static void write_text(const char *ending, const char *text)
{
    FILE *file = fopen(path_of(ending), "w");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

static void second_run_keeps_the_files_of_the_first(void **state)
{
    (void)state;
    run("first", NULL);
    assert_int_equal(lines_with("kept"), 0);
    run("second", NULL);
    assert_true(has(".traces.jsonl", "second"));
    assert_false(has(".traces.jsonl", "first"));
    assert_true(has(".1.traces.jsonl", "first"));
    assert_true(exists(".1.profiles.jsonl"));
    assert_int_equal(lines_with("kept as"), 1);
}

/* The parent of a server makes no spans. When its files were made is when its run began. */
static void run_after_one_without_spans_makes_new_files(void **state)
{
    (void)state;
    static const struct timespec long_ago[2] = {{.tv_sec = 1}, {.tv_sec = 1}};
    struct stat status;
    for (int i = 0; i < 2; i++) {
        start(NULL);
        assert_int_equal(spanprof_stop(UINT64_MAX), SPANPROF_OK);
        assert_int_equal(stat(path_of(".traces.jsonl"), &status), 0);
        assert_int_equal(status.st_size, 0);
        assert_true(status.st_mtim.tv_sec > 1);
        assert_int_equal(utimensat(AT_FDCWD, path_of(".traces.jsonl"), long_ago, 0), 0);
    }
    assert_false(exists(".1.traces.jsonl"));
    assert_int_equal(link(path_of(".traces.jsonl"), path_of(".other")), 0);
    run("span", NULL);
    assert_true(has(".other", "span")); /* a file with a second name is used as it is */
}

static void fifth_run_removes_the_first(void **state)
{
    (void)state;
    static const char *const names[] = {"first", "second", "third", "fourth", "fifth"};
    for (int i = 0; i < 5; i++) {
        run(names[i], NULL);
        assert_int_equal(lines_with("removed"), i == 4);
    }
    assert_true(has(".traces.jsonl", "fifth"));
    assert_true(has(".1.traces.jsonl", "fourth"));
    assert_true(has(".2.traces.jsonl", "third"));
    assert_true(has(".3.traces.jsonl", "second"));
    assert_false(exists(".4.traces.jsonl"));
}

static void run_in_the_other_format_is_kept_as_well(void **state)
{
    (void)state;
    run("first", "jsonl");
    run("second", "proto");
    assert_false(exists(".traces.jsonl"));
    assert_false(exists(".profiles.jsonl"));
    assert_true(has(".1.traces.jsonl", "first"));
    assert_true(has(".traces.binpb", "second"));
    run("third", "jsonl");
    assert_true(has(".1.traces.binpb", "second"));
    assert_true(has(".2.traces.jsonl", "first"));
    assert_false(exists(".traces.binpb"));
}

static void prefix_that_another_process_writes_is_left_to_it(void **state)
{
    (void)state;
    char own[32];
    write_text(".traces.jsonl", "theirs");
    int theirs = open(path_of(".traces.jsonl"), O_WRONLY | O_CLOEXEC);
    assert_int_equal(flock(theirs, LOCK_EX | LOCK_NB), 0);
    for (int format = 0; format < 2; format++) {
        run("ours", format ? "proto" : "jsonl");
        snprintf(own, sizeof own, ".%d.traces.%s", (int)getpid(), format ? "binpb" : "jsonl");
        assert_true(has(own, "ours"));
        assert_true(has(".traces.jsonl", "theirs"));
        assert_false(exists(".1.traces.jsonl"));
        assert_false(exists(".traces.binpb"));
        assert_int_equal(lines_with("another process"), 1);
    }
    close(theirs);
}

static void file_that_another_process_writes_is_not_removed(void **state)
{
    (void)state;
    char own[32];
    write_text(".traces.jsonl", "0");
    write_text(".1.traces.jsonl", "1");
    write_text(".2.traces.jsonl", "2");
    write_text(".3.traces.jsonl", "theirs");
    int theirs = open(path_of(".3.traces.jsonl"), O_WRONLY | O_CLOEXEC);
    assert_int_equal(flock(theirs, LOCK_EX | LOCK_NB), 0);
    run("ours", NULL);
    snprintf(own, sizeof own, ".%d.traces.jsonl", (int)getpid());
    assert_true(has(own, "ours"));
    assert_true(has(".3.traces.jsonl", "theirs"));
    assert_true(has(".traces.jsonl", "0"));
    close(theirs);
}

static void run_that_cannot_be_moved_is_not_overwritten(void **state)
{
    (void)state;
    char own[32];
    write_text(".traces.jsonl", "0");
    write_text(".1.traces.jsonl", "1");
    write_text(".2.traces.jsonl", "2");
    assert_int_equal(mkdir(path_of(".3.traces.jsonl"), 0700), 0);
    run("ours", NULL);
    snprintf(own, sizeof own, ".%d.traces.jsonl", (int)getpid());
    assert_true(has(own, "ours"));
    assert_true(has(".traces.jsonl", "0"));
    assert_true(has(".2.traces.jsonl", "2"));
    assert_int_equal(lines_with("cannot be moved"), 1);
}

/* How many files of spans the run called NAME has. */
static unsigned trace_files(const char *name)
{
    sp_run_files files;
    unsigned count = 0;
    assert_true(sp_run_files_find(&files, path_of(name)));
    for (size_t i = 0; i < files.count; i++)
        count += files.items[i].signal == 0;
    sp_run_files_deinit(&files);
    return count;
}

/* Two thousand spans, a few in each batch. */
static void run_with_small_files(void)
{
    spanprof_options options = SPANPROF_OPTIONS_INIT;
    options.exporter = "file";
    options.file = prefix;
    options.profiles = "none";
    options.file_maximum_bytes = 64 * 1024;
    options.file_maximum_parts = 3;
    assert_int_equal(spanprof_start(&options, NULL), SPANPROF_OK);
    for (int i = 0; i < 2000; i++) {
        spanprof_span_end(spanprof_span_start(NULL, "small", NULL));
        if (i % 100 == 99)
            assert_int_equal(spanprof_flush(UINT64_MAX), SPANPROF_OK);
    }
    assert_int_equal(spanprof_stop(UINT64_MAX), SPANPROF_OK);
}

static void limited_files_are_kept_with_their_parts(void **state)
{
    (void)state;
    run_with_small_files();
    assert_false(exists(".traces.0001.jsonl"));
    assert_int_equal(trace_files(""), 3);
    run("next", NULL);
    assert_int_equal(trace_files(".1"), 3);
    assert_int_equal(trace_files(""), 1);
    assert_true(has(".traces.jsonl", "next"));
}

static void empty_files_are_no_run(void **state)
{
    (void)state;
    write_text(".traces.jsonl", "");
    write_text(".profiles.jsonl", "");
    run("first", NULL);
    assert_true(has(".traces.jsonl", "first"));
    assert_false(exists(".1.traces.jsonl"));
}

/* A child that lives on when the run has ended, until WAIT ends. It has the parent's files until
 * the handlers of the fork have run in it, which this waits for. */
static pid_t fork_child(const int wait[2])
{
    char byte = 0;
    int ready[2];
    pid_t child = pipe2(ready, O_CLOEXEC) == 0 ? fork() : -1;
    if (child == 0) {
        close(wait[1]);
        _exit(write(ready[1], &byte, 1) != 1 || read(wait[0], &byte, 1) != 0);
    }
    close(ready[1]);
    if (child > 0 && read(ready[0], &byte, 1) != 1)
        child = -1;
    close(ready[0]);
    return child;
}

static int role_forks(void)
{
    int wait[2], status = 0;
    if (!refuse_close_range())
        return SKIPPED;
    setup(NULL);
    if (pipe2(wait, O_CLOEXEC) != 0)
        return 1;
    start(NULL);
    pid_t child = fork_child(wait);
    spanprof_span_end(spanprof_span_start(NULL, "first", NULL));
    spanprof_stop(UINT64_MAX);
    run("second", NULL);
    bool is_right = has(".traces.jsonl", "second") && has(".1.traces.jsonl", "first");
    close(wait[1]);
    waitpid(child, &status, 0);
    return teardown(NULL) != 0 || status != 0 || !is_right;
}

/* The exit status of this program as ROLE with ARGUMENT. */
static int status_of(const char *role, const char *argument)
{
    int status;
    pid_t child = fork();
    if (child == 0) {
        execl(program, program, role, argument, NULL);
        _exit(127);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

/* Ended by a signal that it cannot see, after a flush. */
static int role_is_killed(const char *file)
{
    snprintf(prefix, sizeof prefix, "%s", file);
    start(NULL);
    spanprof_span_end(spanprof_span_start(NULL, "flushed", NULL));
    if (spanprof_flush(UINT64_MAX) == SPANPROF_OK)
        kill(getpid(), SIGKILL);
    return 1;
}

static void killed_run_has_all_that_was_flushed(void **state)
{
    (void)state;
    int status = status_of("is killed", prefix);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    assert_true(has(".traces.jsonl", "flushed") && has(".traces.jsonl", "}\n"));
    run("next", NULL);
    assert_true(has(".1.traces.jsonl", "flushed"));
}

static void forked_child_keeps_no_lock(void **state)
{
    (void)state;
    int status = status_of("forks", NULL);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == SKIPPED)
        print_message("SKIPPED: no system call can be filtered here\n");
    else
        assert_int_equal(WEXITSTATUS(status), 0);
}

int main(int argc, char **argv)
{
    program = argv[0];
    if (argc > 2)
        return role_is_killed(argv[2]);
    if (argc > 1)
        return role_forks();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(second_run_keeps_the_files_of_the_first, setup, teardown),
        cmocka_unit_test_setup_teardown(run_after_one_without_spans_makes_new_files, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(fifth_run_removes_the_first, setup, teardown),
        cmocka_unit_test_setup_teardown(run_in_the_other_format_is_kept_as_well, setup, teardown),
        cmocka_unit_test_setup_teardown(prefix_that_another_process_writes_is_left_to_it, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(file_that_another_process_writes_is_not_removed, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(run_that_cannot_be_moved_is_not_overwritten, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(killed_run_has_all_that_was_flushed, setup, teardown),
        cmocka_unit_test(forked_child_keeps_no_lock),
        cmocka_unit_test_setup_teardown(limited_files_are_kept_with_their_parts, setup, teardown),
        cmocka_unit_test_setup_teardown(empty_files_are_no_run, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
