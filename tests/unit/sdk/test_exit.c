/* SPDX-License-Identifier: Apache-2.0 */
/* A program that ends without spanprof_stop still delivers its last spans and samples. The test runs itself as such programs. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include <spanprof/spanprof.h>

static const char *program;

static void *exit_here(void *unused)
{
    (void)unused;
    exit(0);
}

static void work(void)
{
    SPANPROF_SPAN("last words") {
        clock_t end = clock() + CLOCKS_PER_SEC / 5;
        while (clock() < end)
            ;
    }
}

/* A server that attaches before it forks, and whose worker is the one that starts the SDK. */
static int run_worker(void)
{
    spanprof_context context = {.trace_flags = SPANPROF_TRACE_FLAG_SAMPLED};
    memset(context.trace_id, 1, sizeof context.trace_id);
    memset(context.span_id, 1, sizeof context.span_id);
    spanprof_scope scope = spanprof_context_attach(&context);
    spanprof_scope_detach(&scope);
    pid_t worker = fork();
    if (worker == 0) {
        if (spanprof_start(NULL, NULL) != SPANPROF_OK)
            exit(1);
        work();
        exit(0);
    }
    int status;
    return waitpid(worker, &status, 0) == worker ? status : 1;
}

/* The README's program, which then ends as MODE says. */
static int run_as(const char *mode)
{
    if (strcmp(mode, "worker") == 0)
        return run_worker();
    if (spanprof_start(NULL, NULL) != SPANPROF_OK)
        return 1;
    work();
    if (strcmp(mode, "exit") == 0)
        exit(0);
    if (strcmp(mode, "thread") == 0) {
        pthread_t thread;
        pthread_create(&thread, NULL, exit_here, NULL);
        pthread_join(thread, NULL);
    }
    return 0;
}

static bool file_contains(const char *path, const char *text)
{
    char content[65536];
    FILE *file = fopen(path, "r");
    if (!file)
        return false;
    size_t length = fread(content, 1, sizeof content - 1, file);
    content[length] = 0;
    fclose(file);
    return strstr(content, text) != NULL;
}

static void program_that_ends_by(const char *mode)
{
    char directory[] = "/tmp/spanprof-exit-XXXXXX", prefix[64], path[96];
    assert_non_null(mkdtemp(directory));
    snprintf(prefix, sizeof prefix, "%s/p", directory);
    pid_t child = fork();
    if (child == 0) {
        setenv("SPANPROF_EXPORTER", "file", 1);
        setenv("SPANPROF_FILE", prefix, 1);
        execl(program, program, mode, NULL);
        _exit(127);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    snprintf(path, sizeof path, "%s.traces.jsonl", prefix);
    assert_true(file_contains(path, "last words"));
    assert_int_equal(unlink(path), 0);
    snprintf(path, sizeof path, "%s.profiles.jsonl", prefix);
#if !defined(__SANITIZE_THREAD__) /* which delivers ticks late, or never */
    assert_true(file_contains(path, "linkIndex"));
#endif
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(directory), 0);
}

static void return_from_main_flushes(void **state)
{
    (void)state;
    program_that_ends_by("return");
}

static void exit_flushes(void **state)
{
    (void)state;
    program_that_ends_by("exit");
}

static void exit_on_another_thread_flushes(void **state)
{
    (void)state;
    program_that_ends_by("thread");
}

static void worker_of_a_parent_that_only_attached_is_sampled(void **state)
{
    (void)state;
    program_that_ends_by("worker");
}

int main(int argc, char **argv)
{
    if (argc > 1)
        return run_as(argv[1]);
    program = argv[0];
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(return_from_main_flushes),
        cmocka_unit_test(exit_flushes),
        cmocka_unit_test(exit_on_another_thread_flushes),
        cmocka_unit_test(worker_of_a_parent_that_only_attached_is_sampled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
