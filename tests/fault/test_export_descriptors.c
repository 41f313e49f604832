/* SPDX-License-Identifier: Apache-2.0 */
/* The exporter's descriptors and the host's have nothing to do with each other: none of ours is
 * inherited or closed by the host, and none of the host's is kept open by us. Some cases need a
 * process of their own: the test runs itself in a role. */
#include "fault/export_fixture.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/log.h"
#include "refuse_close_range.h"

enum { DESCRIPTORS = 256, PATIENCE_MS = 300000 };

extern char **environ;
static const char *program;

/* --- looking at descriptors ------------------------------------------------------------------- */

typedef struct table {
    char files[DESCRIPTORS][128]; /* what each number stands for; empty: nothing */
} table;

/* Connections that the receiver, a part of this process, has accepted come and go. */
static bool is_the_receivers(int fd, unsigned port)
{
    struct sockaddr_in own = {0}, peer;
    socklen_t length = sizeof own, peer_length = sizeof peer;
    return getsockname(fd, (struct sockaddr *)&own, &length) == 0 && ntohs(own.sin_port) == port &&
           getpeername(fd, (struct sockaddr *)&peer, &peer_length) == 0;
}

/* Without the C library's buffers, for forked children look, too. */
static void look(table *out, unsigned port)
{
    memset(out, 0, sizeof *out);
    for (int fd = 0; fd < DESCRIPTORS; fd++) {
        char path[64];
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        bool was_the_receivers = is_the_receivers(fd, port);
        if (readlink(path, out->files[fd], sizeof out->files[fd] - 1) < 0 || was_the_receivers ||
            is_the_receivers(fd, port))
            memset(out->files[fd], 0, sizeof out->files[fd]);
    }
}

static unsigned differences(const table *before, unsigned port)
{
    table now;
    unsigned count = 0;
    look(&now, port);
    for (int fd = 0; fd < DESCRIPTORS; fd++)
        count += strcmp(before->files[fd], now.files[fd]) != 0;
    return count;
}

/* --- other processes -------------------------------------------------------------------------- */

static pid_t spawn_role(const char *role, unsigned port, const posix_spawn_file_actions_t *actions)
{
    char text[16];
    pid_t child;
    snprintf(text, sizeof text, "%u", port);
    char *arguments[] = {(char *)program, (char *)role, text, NULL};
    assert_int_equal(posix_spawn(&child, program, actions, NULL, arguments, environ), 0);
    return child;
}

static int exit_code(pid_t child)
{
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* Whether FD reads as ended before the test's patience is over. */
static bool ends(int fd)
{
    char byte;
    struct pollfd readable = {.fd = fd, .events = POLLIN};
    return poll(&readable, 1, PATIENCE_MS) == 1 && read(fd, &byte, 1) == 0;
}

static int role_counts_descriptors(void)
{
    for (int fd = 3; fd < DESCRIPTORS; fd++)
        if (fcntl(fd, F_GETFD) >= 0)
            return 1;
    return 0;
}

/* As daemons do; and then the numbers are the host's. */
static int role_closes_everything(unsigned port)
{
    fixture f = {0};
    fixture_prepare(&f, port);
    fixture_start(&f);
    submit(&f, "before");
    assert_int_equal(flush(&f), SPANPROF_OK);
    assert_int_equal(syscall(SYS_close_range, 3, ~0U, 0), 0);
    int both[2];
    for (int i = 0; i < 8; i++)
        assert_int_equal(pipe2(both, O_CLOEXEC), 0);
    submit(&f, "after");
    end_spans(&f, "after", 3);
    assert_int_equal(flush(&f), SPANPROF_OK);
    assert_int_equal(fixture_stop(&f, PATIENCE_NS), SPANPROF_OK);
    for (int fd = 3; fd < 3 + 16; fd++)
        assert_int_not_equal(fcntl(fd, F_GETFD), -1);
    assert_int_equal(f.counted.spans, 3);
    assert_int_equal(f.counted.samples, 2);
    assert_int_equal(log_count(""), 0);
    fixture_end(&f);
    return 0;
}

/* Leaves its standard output and error behind, and goes on until its standard input ends. */
static int role_becomes_a_daemon(unsigned port)
{
    fixture f = {0};
    fixture_prepare(&f, port);
    fixture_start(&f);
    submit(&f, "profile");
    assert_int_equal(flush(&f), SPANPROF_OK);
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    assert_int_equal(dup2(null, STDOUT_FILENO), STDOUT_FILENO);
    assert_int_equal(dup2(null, STDERR_FILENO), STDERR_FILENO);
    assert_true(ends(STDIN_FILENO));
    assert_int_equal(fixture_stop(&f, PATIENCE_NS), SPANPROF_OK);
    fixture_end(&f);
    return 0;
}

static unsigned debug_lines;

static void count_debug(spanprof_log_level level, const char *line, void *user)
{
    (void)user;
    debug_lines += level == SPANPROF_LOG_DEBUG && strstr(line, "it uses the host's");
}

/* An old kernel, or a filter: the exporter works, with descriptors among the host's, its connection
 * close-on-exec. */
static int role_has_no_table_of_its_own(unsigned port)
{
    fixture f = {0};
    table before;
    if (!refuse_close_range())
        return 77;
    fixture_prepare(&f, port);
    sp_log_configure(SPANPROF_LOG_DEBUG, count_debug, NULL);
    look(&before, 0);
    fixture_start(&f);
    submit(&f, "profile");
    end_spans(&f, "span", 3);
    assert_int_equal(flush(&f), SPANPROF_OK);
    assert_int_not_equal(differences(&before, 0), 0);
    for (int fd = 3; fd < DESCRIPTORS; fd++) {
        struct sockaddr_in peer = {0};
        socklen_t length = sizeof peer;
        if (getpeername(fd, (struct sockaddr *)&peer, &length) == 0 && peer.sin_family == AF_INET)
            assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    }
    assert_int_equal(fixture_stop(&f, PATIENCE_NS), SPANPROF_OK);
    assert_int_equal(differences(&before, 0), 0);
    assert_int_equal(f.counted.spans, 3);
    assert_int_equal(debug_lines, 1);
    fixture_end(&f);
    return 0;
}

/* --- cases ------------------------------------------------------------------------------------ */

static void host_has_the_same_descriptors_from_start_to_stop(void **state)
{
    fixture *f = *state;
    static const server_step step = {.kind = STEP_HANG};
    table before;
    unsigned port = server_port(f->server);
    server_script(f->server, TRACES, &step, 1);
    look(&before, port);
    fixture_start(f);
    assert_int_equal(differences(&before, port), 0);
    submit(f, "profile");
    assert_int_equal(flush(f), SPANPROF_OK);
    assert_int_equal(differences(&before, port), 0);
    end_spans(f, "span", 3);
    sp_exporter_flush(f->exporter, 0);
    server_wait(f->server, TRACES, 1); /* and now this transfer is under way */
    assert_int_equal(differences(&before, port), 0);
    fixture_stop(f, 0);
    assert_int_equal(differences(&before, port), 0);
}

static void files_are_not_among_the_hosts_descriptors(void **state)
{
    fixture *f = *state;
    table before;
    char directory[] = "/tmp/spanprof-test-XXXXXX", prefix[64], path[96];
    assert_non_null(mkdtemp(directory));
    snprintf(prefix, sizeof prefix, "%s/out", directory);
    f->config.http[SP_TRACES].enabled = f->config.http[SP_PROFILES].enabled = false;
    f->config.file_enabled = true;
    f->config.file_prefix = prefix;
    look(&before, 0);
    fixture_start(f);
    static const char *const signals[] = {"traces", "profiles"};
    for (int i = 0; i < 2; i++) { /* made before the start returned */
        snprintf(path, sizeof path, "%s.%s.binpb", prefix, signals[i]);
        assert_int_equal(unlink(path), 0);
    }
    submit(f, "profile");
    assert_int_equal(flush(f), SPANPROF_OK);
    assert_int_equal(differences(&before, 0), 0);
    fixture_stop(f, PATIENCE_NS);
    assert_int_equal(differences(&before, 0), 0);
    assert_int_equal(rmdir(directory), 0);
}

static void programs_started_while_sending_have_three_descriptors(void **state)
{
    fixture *f = *state;
    static const server_step step = {.kind = STEP_HANG};
    server_script(f->server, TRACES, &step, 1);
    fixture_start(f);
    submit(f, "profile");
    assert_int_equal(flush(f), SPANPROF_OK);
    end_spans(f, "span", 3);
    sp_exporter_flush(f->exporter, 0);
    server_wait(f->server, TRACES, 1);
    assert_int_equal(exit_code(spawn_role("count", 0, NULL)), 0);
    pid_t child = fork();
    if (child == 0) {
        execl(program, program, "count", "0", NULL);
        _exit(127);
    }
    assert_int_equal(exit_code(child), 0);
    fixture_stop(f, 0);
}

static void pipe_that_the_host_closes_ends(void **state)
{
    fixture *f = *state;
    int both[2];
    assert_int_equal(pipe2(both, O_CLOEXEC), 0);
    fixture_start(f);
    submit(f, "profile");
    assert_int_equal(flush(f), SPANPROF_OK);
    close(both[1]);
    assert_true(ends(both[0]));
    close(both[0]);
    fixture_stop(f, PATIENCE_NS);
}

static void host_closes_all_descriptors_later_data_arrives(void **state)
{
    fixture *f = *state;
    assert_int_equal(exit_code(spawn_role("close", server_port(f->server), NULL)), 0);
    assert_int_equal(server_count(f->server, PROFILES), 2);
    assert_int_equal(server_count(f->server, TRACES), 1);
}

static void daemon_leaves_its_output_and_error_their_reader_sees_the_end(void **state)
{
    fixture *f = *state;
    int in[2], out[2];
    posix_spawn_file_actions_t actions;
    assert_int_equal(pipe2(in, O_CLOEXEC), 0);
    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, in[0], STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, out[1], STDERR_FILENO);
    pid_t child = spawn_role("daemon", server_port(f->server), &actions);
    posix_spawn_file_actions_destroy(&actions);
    close(in[0]);
    close(out[1]);
    assert_true(ends(out[0]));
    close(out[0]);
    close(in[1]); /* the daemon has been running until now */
    assert_int_equal(exit_code(child), 0);
}

/* What a child of a fork has is the host's table, whenever it comes. */
static void host_forks_while_sending_everything_arrives(void **state)
{
    enum { ROUNDS = 30 };
    fixture *f = *state;
    table before;
    unsigned port = server_port(f->server);
    look(&before, port);
    fixture_start(f);
    for (int i = 0; i < ROUNDS; i++) {
        submit(f, "profile");
        pid_t child = fork();
        if (child == 0)
            _exit(differences(&before, port) ? 1 : 0);
        assert_int_equal(exit_code(child), 0);
    }
    assert_int_equal(fixture_stop(f, PATIENCE_NS), SPANPROF_OK);
    assert_int_equal(f->counted.samples, ROUNDS);
    assert_int_equal(server_count(f->server, PROFILES), ROUNDS);
}

static int log_pipe[2];

static void log_to_pipe(spanprof_log_level level, const char *line, void *user)
{
    (void)level;
    (void)user;
    ssize_t written = write(log_pipe[1], line, strlen(line));
    (void)written;
}

/* The number of its log file would be another file's on the exporter thread. */
static void hosts_log_function_has_the_hosts_descriptors(void **state)
{
    fixture *f = *state;
    static const server_step step = {.status = 400};
    char line[1100] = "";
    server_script(f->server, PROFILES, &step, 1);
    assert_int_equal(pipe2(log_pipe, O_CLOEXEC | O_NONBLOCK), 0);
    sp_log_configure(SPANPROF_LOG_WARN, log_to_pipe, NULL);
    fixture_start(f);
    submit(f, "refused");
    assert_int_equal(flush(f), SPANPROF_ERROR_EXPORT);
    assert_true(read(log_pipe[0], line, sizeof line - 1) > 0);
    assert_non_null(strstr(line, "HTTP 400"));
    fixture_stop(f, PATIENCE_NS);
    close(log_pipe[0]);
    close(log_pipe[1]);
}

static void kernel_refuses_a_table_it_works_with_the_hosts(void **state)
{
    fixture *f = *state;
    int code = exit_code(spawn_role("refused", server_port(f->server), NULL));
    if (code == 77) {
        print_message("SKIPPED: no system call can be filtered here\n");
        skip();
    }
    assert_int_equal(code, 0);
    assert_int_equal(server_count(f->server, PROFILES), 1);
    assert_int_equal(server_count(f->server, TRACES), 1);
}

/* How often the exporter thread went to sleep so far. */
static unsigned long sleeps(void)
{
    unsigned long count = 0;
    DIR *tasks = opendir("/proc/self/task");
    for (struct dirent *task; (task = readdir(tasks));) {
        char path[300], line[256], name[64] = "";
        snprintf(path, sizeof path, "/proc/self/task/%s/status", task->d_name);
        FILE *status = fopen(path, "r");
        while (status && fgets(line, sizeof line, status)) {
            sscanf(line, "Name: %63s", name);
            if (strcmp(name, "spanprof-export") == 0)
                sscanf(line, "voluntary_ctxt_switches: %lu", &count);
        }
        if (status)
            fclose(status);
    }
    closedir(tasks);
    return count;
}

/* A thread that looks up every 50 ms would have done so in each of the periods. */
static void thread_without_work_sleeps(void **state)
{
    fixture *f = *state;
    bool slept = false;
    fixture_start(f);
    submit(f, "profile");
    assert_int_equal(flush(f), SPANPROF_OK);
    while (sleeps() == 0) /* it has had work until now */
        usleep(10000);
    for (int i = 0; i < 20 && !slept; i++) {
        unsigned long before = sleeps();
        usleep(300000);
        slept = sleeps() == before;
    }
    assert_true(slept);
    fixture_stop(f, PATIENCE_NS);
}

#define CASE(function) cmocka_unit_test_setup_teardown(function, fixture_setup, fixture_teardown)

static int run_role(const char *role, unsigned port)
{
    if (strcmp(role, "count") == 0)
        return role_counts_descriptors();
    if (strcmp(role, "close") == 0)
        return role_closes_everything(port);
    if (strcmp(role, "daemon") == 0)
        return role_becomes_a_daemon(port);
    return role_has_no_table_of_its_own(port);
}

int main(int argc, char **argv)
{
    program = argv[0];
    if (argc > 2)
        return run_role(argv[1], (unsigned)atoi(argv[2]));
#if defined(__SANITIZE_THREAD__)
    printf("SKIPPED: under ThreadSanitizer the exporter has no table of its own\n");
    return 77;
#endif
    if (syscall(SYS_close_range, ~0U, ~0U, 0) != 0) {
        printf("SKIPPED: this kernel has no close_range (Linux 5.9)\n");
        return 77;
    }
    for (int fd = 3; fd < DESCRIPTORS; fd++) /* what we inherited is not the cases' business */
        fcntl(fd, F_SETFD, FD_CLOEXEC);
    const struct CMUnitTest tests[] = {
        CASE(host_has_the_same_descriptors_from_start_to_stop),
        CASE(files_are_not_among_the_hosts_descriptors),
        CASE(programs_started_while_sending_have_three_descriptors),
        CASE(pipe_that_the_host_closes_ends),
        CASE(host_closes_all_descriptors_later_data_arrives),
        CASE(daemon_leaves_its_output_and_error_their_reader_sees_the_end),
        CASE(host_forks_while_sending_everything_arrives),
        CASE(hosts_log_function_has_the_hosts_descriptors),
        CASE(kernel_refuses_a_table_it_works_with_the_hosts),
        CASE(thread_without_work_sleeps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
