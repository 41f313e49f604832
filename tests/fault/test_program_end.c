/* SPDX-License-Identifier: Apache-2.0 */
/* What a program does and says that has only the environment and ends by returning from main, while
 * its destination fails. The test runs itself as that program. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include <spanprof/spanprof.h>
#include "core/clock.h"
#include "fault/scripted_server.h"
#include "remove_folder.h"

#define TRACES "/v1/traces"

/* A hang ends here, far beyond the five seconds that an exit may take. */
enum { PATIENCE_S = 120 };

extern char **environ;
static const char *program;
static char said[65536]; /* the program's standard error */

/* As the program. */
static int end_with_a_span(void)
{
    alarm(PATIENCE_S);
    if (spanprof_start(NULL, NULL) != SPANPROF_OK)
        return 1;
    SPANPROF_SPAN("last words") {
    }
    return 0;
}

static void read_all(int fd)
{
    size_t length = 0;
    for (ssize_t got; (got = read(fd, said + length, sizeof said - 1 - length)) != 0;)
        length += got > 0 ? (size_t)got : 0;
    said[length] = '\0';
    close(fd);
}

/* Run the program until it has ended well; SAID has what it said. */
static void run_program(void)
{
    int ends[2], status;
    pid_t child;
    char *arguments[] = {(char *)program, "program", NULL};
    posix_spawn_file_actions_t actions;
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
    assert_int_equal(posix_spawn(&child, program, &actions, NULL, arguments, environ), 0);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    read_all(ends[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    if (status != 0)
        fail_msg("the program ended with status %#x and said:\n%s", (unsigned)status, said);
}

static void expect_said(const char *text)
{
    if (!strstr(said, text))
        fail_msg("\"%s\" is missing in:\n%s", text, said);
}

/* --- a receiver ------------------------------------------------------------------------------- */

/* The receiver answers the program's spans with STEP. Returns after the program's end. */
static scripted_server *run_with_receiver(const char *scheme, const server_step *step)
{
    char endpoint[64];
    scripted_server *server = server_start();
    if (step)
        server_script(server, TRACES, step, 1);
    snprintf(endpoint, sizeof endpoint, "%s127.0.0.1:%u", scheme, server_port(server));
    setenv("SPANPROF_EXPORTER", "otlp", 1);
    setenv("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint, 1);
    run_program();
    return server;
}

/* The sentence is said only by an exit that does not wait for its own deadline. */
static void receiver_asks_for_five_minutes_exit_does_not_wait(void **state)
{
    (void)state;
    const server_step busy = {.status = 503, .headers = "Retry-After: 300\r\n"};
    scripted_server *server = run_with_receiver("http://", &busy);
    expect_said("stopping with 1 request for http://127.0.0.1:");
    expect_said(" not delivered, because the next attempt is due in ");
    assert_int_equal(server_count(server, TRACES), 1);
    server_stop(server);
}

static void receiver_answers_with_controls_none_reaches_the_terminal(void **state)
{
    (void)state;
    static const char answer[] = "begin \xc2\x9b"
                                 "31m \xc2\x85 \xe2\x80\xae \x1b[31m end";
    static const char *const controls[] = {"\xc2\x9b", "\xc2\x85", "\xe2\x80\xae", "\x1b", "\x9b"};
    const server_step refusal = {.status = 400,
                                 .headers = "Content-Type: text/plain\r\n",
                                 .body = answer,
                                 .body_length = sizeof answer - 1};
    scripted_server *server = run_with_receiver("http://", &refusal);
    expect_said("begin ?31m ? ? ?[31m end");
    for (size_t i = 0; i < sizeof controls / sizeof *controls; i++)
        assert_null(strstr(said, controls[i]));
    server_stop(server);
}

static void endpoint_without_a_scheme_spans_come_to_its_port(void **state)
{
    (void)state;
    char warning[128];
    scripted_server *server = run_with_receiver("", NULL);
    assert_int_equal(server_count(server, TRACES), 1);
    assert_non_null(strstr(server_get(server, TRACES, 0)->head, "POST " TRACES " HTTP"));
    unsigned port = server_port(server);
    snprintf(warning, sizeof warning,
             "OTEL_EXPORTER_OTLP_ENDPOINT=127.0.0.1:%u has no scheme: write http:// or https:// in "
             "front of it: using http://127.0.0.1:%u",
             port, port);
    expect_said(warning);
    server_stop(server);
}

/* --- a file ----------------------------------------------------------------------------------- */

/* A FIFO at PATH that takes no byte more, with a reader that sleeps. */
static int make_full_fifo(const char *path)
{
    static const char bytes[4096];
    assert_int_equal(mkfifo(path, 0600), 0);
    int fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
    assert_true(fd >= 0);
    while (write(fd, bytes, sizeof bytes) > 0) {
    }
    assert_int_equal(errno, EAGAIN);
    return fd;
}

static void fifo_is_full_return_from_main_ends_the_program(void **state)
{
    (void)state;
    char directory[] = "/tmp/spanprof-end-XXXXXX", prefix[64], path[96];
    assert_non_null(mkdtemp(directory));
    snprintf(prefix, sizeof prefix, "%s/p", directory);
    snprintf(path, sizeof path, "%s.traces.jsonl", prefix);
    int fd = make_full_fifo(path);
    setenv("SPANPROF_EXPORTER", "file", 1);
    setenv("SPANPROF_FILE", prefix, 1);
    uint64_t before_ns = sp_clock_monotonic_ns();
    run_program();
    print_message("ended in %.1f s\n", (double)(sp_clock_monotonic_ns() - before_ns) / SP_NS_PER_S);
    expect_said("stopping with 1 request for ");
    close(fd);
    assert_int_equal(remove_folder(directory), 0);
}

int main(int argc, char **argv)
{
    if (argc > 1)
        return end_with_a_span();
    program = argv[0];
    setenv("SPANPROF_PROFILES", "none", 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(receiver_asks_for_five_minutes_exit_does_not_wait),
        cmocka_unit_test(receiver_answers_with_controls_none_reaches_the_terminal),
        cmocka_unit_test(endpoint_without_a_scheme_spans_come_to_its_port),
        cmocka_unit_test(fifo_is_full_return_from_main_ends_the_program),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
