/* SPDX-License-Identifier: Apache-2.0 */
/* A program that ends without spanprof_stop still delivers its last spans and samples. The test
 * runs itself as such programs. */
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include <spanprof/spanprof.h>
#include "remove_folder.h"
#include "unit/sdk/ticks.h"

static const char *program;

static void *exit_here(void *unused)
{
    (void)unused;
    exit(0);
}

static void work(void)
{
    SPANPROF_SPAN("last words")
#if defined(__SANITIZE_THREAD__) /* which delivers ticks late, or never */
        burn(0.2);
#else
        if (!burn_until_linked(0.2))
            _exit(5);
#endif
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

/* What sends has begun to speak TLS; and this process has begun to end. */
static _Atomic bool hello_came, has_begun_to_end;

/* A receiver that takes the first byte of each connection and hangs up, and is gone after the first
 * hello: nothing is tried again. */
static void *take_hello(void *listener)
{
    while (!hello_came) {
        char byte = 0;
        int fd = accept4(*(int *)listener, NULL, NULL, SOCK_CLOEXEC);
        if (fd >= 0 && recv(fd, &byte, 1, 0) == 1 && byte == 0x16) { /* RFC 8446: handshake */
            if (!has_begun_to_end) /* what is sent has to be sent at the exit */
                _exit(2);
            close(*(int *)listener);
            hello_came = true;
        }
        close(fd);
    }
    return NULL;
}

/* Returns its port. */
static unsigned start_receiver(void)
{
    static int listener;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    pthread_t thread;
    listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(listener, (struct sockaddr *)&address, sizeof address) != 0 ||
        listen(listener, 64) != 0 ||
        getsockname(listener, (struct sockaddr *)&address, &length) != 0 ||
        pthread_create(&thread, NULL, take_hello, &listener) != 0 || pthread_detach(thread) != 0)
        exit(1);
    return ntohs(address.sin_port);
}

/* What was sent may not have been read yet. */
static void tell_hello(void)
{
    for (int i = 0; i < 6000 && !hello_came; i++)
        usleep(10000);
    _exit(hello_came ? 0 : 3);
}

/* The first start loads no TLS library and the second one does, whose handler for the exit is then
 * called before all that were there. */
static int run_none_then_network(void)
{
    char endpoint[64];
    spanprof_options options = SPANPROF_OPTIONS_INIT;
    atexit(tell_hello); /* the last to be called */
    options.exporter = "none";
    if (spanprof_start(&options, NULL) != SPANPROF_OK || spanprof_stop(UINT64_MAX) != SPANPROF_OK)
        _exit(1);
    snprintf(endpoint, sizeof endpoint, "https://127.0.0.1:%u", start_receiver());
    options.exporter = "otlp";
    options.endpoint = endpoint;
    options.profiles = "none";
    options.log_level = SPANPROF_LOG_OFF;
    setenv("OTEL_BSP_SCHEDULE_DELAY", "1000000000", 1);
    if (spanprof_start(&options, NULL) != SPANPROF_OK)
        _exit(1);
    SPANPROF_SPAN("last words")
        burn(0.001);
    has_begun_to_end = true;
    return 0;
}

/* --- out of a callback ------------------------------------------------------------------------ */

/* The thread that exits may have given up waiting for the one that stops. */
static _Atomic int shutdowns;
static sem_t is_inside;
static _Atomic bool is_stopping;

static void exit_at_end(void *user, const spanprof_span_view *view)
{
    (void)user;
    if (strcmp(view->name, "fatal") == 0)
        exit(0);
}

/* The letter that the kernel has for the main thread: S when it waits. */
static char state_of_main_thread(void)
{
    char path[64], text[256] = "";
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", (int)getpid());
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (read(fd, text, sizeof text - 1) < 0)
        _exit(1);
    close(fd);
    const char *name_end = strrchr(text, ')');
    return name_end ? name_end[2] : 0;
}

/* Inside, while the main thread waits in spanprof_stop for this callback. */
static void exit_while_stopped(void *user, const spanprof_span_view *view)
{
    (void)user;
    if (strcmp(view->name, "fatal") != 0)
        return;
    sem_post(&is_inside);
    while (!is_stopping || state_of_main_thread() != 'S')
        usleep(1000);
    exit(0);
}

static spanprof_status exit_there(void *user, uint64_t timeout_ns)
{
    (void)user, (void)timeout_ns;
    exit(0);
}

static spanprof_status count_shutdown(void *user, uint64_t timeout_ns)
{
    (void)user, (void)timeout_ns;
    shutdowns++;
    return SPANPROF_OK;
}

/* Runs after the SDK's own handler: each processor was shut down once. */
static void check_shutdowns(void)
{
    if (shutdowns != 1)
        _exit(4);
}

static void *end_fatal_span(void *unused)
{
    (void)unused;
    spanprof_span_end(spanprof_span_start(NULL, "fatal", NULL));
    return NULL;
}

/* A callback of WHICH kind calls exit. Returns only when it was never called, or came back. */
static int run_callback(const char *which)
{
    spanprof_processor exits = SPANPROF_PROCESSOR_INIT, counts = SPANPROF_PROCESSOR_INIT;
    counts.shutdown = count_shutdown;
    if (strcmp(which, "flush") == 0)
        exits.flush = exit_there;
    else if (strcmp(which, "shutdown") == 0)
        exits.shutdown = exit_there;
    else
        exits.on_end = strcmp(which, "stopped") == 0 ? exit_while_stopped : exit_at_end;
/* To ThreadSanitizer a tick in the thread that waits for the stop looks like a race. */
#if defined(__SANITIZE_THREAD__)
    if (strcmp(which, "stopped") == 0)
        setenv("SPANPROF_PROFILES", "none", 1);
#endif
    atexit(check_shutdowns);
    if (spanprof_processor_add(&counts) != SPANPROF_OK ||
        spanprof_processor_add(&exits) != SPANPROF_OK || spanprof_start(NULL, NULL) != SPANPROF_OK)
        _exit(1);
    work();
    if (strcmp(which, "end") == 0)
        end_fatal_span(NULL);
    if (strcmp(which, "stopped") == 0) {
        pthread_t thread;
        sem_init(&is_inside, 0, 0);
        pthread_create(&thread, NULL, end_fatal_span, NULL);
        sem_wait(&is_inside);
    }
    if (strcmp(which, "flush") == 0)
        spanprof_flush(UINT64_MAX);
    is_stopping = true;
    spanprof_stop(UINT64_MAX);
    if (strcmp(which, "stopped") != 0)
        _exit(2);
    for (;;)
        pause();
}

/* The README's program, which then ends as MODE says. */
static int run_as(const char *mode)
{
    if (strcmp(mode, "worker") == 0)
        return run_worker();
    if (strcmp(mode, "network") == 0)
        return run_none_then_network();
    if (strncmp(mode, "callback ", 9) == 0)
        return run_callback(mode + 9);
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

/* The exit code of this program, run as MODE with files at PREFIX (NULL: none), or -1 when a signal
 * ended it. An exit gives the SDK five seconds, so what is missing after a longer run says nothing:
 * IN_TIME is false then. */
static int run_program(const char *mode, const char *prefix, bool *in_time)
{
    enum { EXIT_SECONDS = 5 };
    int status;
    double begin = clock_seconds(CLOCK_MONOTONIC);
    pid_t child = fork();
    if (child == 0) {
        if (prefix) {
            setenv("SPANPROF_EXPORTER", "file", 1);
            setenv("SPANPROF_FILE", prefix, 1);
        }
        execl(program, program, mode, NULL);
        _exit(127);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    *in_time = clock_seconds(CLOCK_MONOTONIC) - begin < EXIT_SECONDS;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static bool leaves_all(const char *mode, bool *in_time)
{
    char directory[] = "/tmp/spanprof-exit-XXXXXX", prefix[64], path[96];
    assert_non_null(mkdtemp(directory));
    snprintf(prefix, sizeof prefix, "%s/p", directory);
    int code = run_program(mode, prefix, in_time);
    snprintf(path, sizeof path, "%s.traces.jsonl", prefix);
    bool has_spans = file_contains(path, "last words"), has_samples = true;
#if !defined(__SANITIZE_THREAD__) /* which delivers ticks late, or never */
    snprintf(path, sizeof path, "%s.profiles.jsonl", prefix);
    has_samples = file_contains(path, "linkIndex");
#endif
    print_message("%s: exit code %d, %s spans, %s samples%s\n", mode, code,
                  has_spans ? "has" : "no", has_samples ? "has" : "no",
                  *in_time ? "" : ", too slow to be sure");
    assert_int_equal(remove_folder(directory), 0);
    return code == 0 && has_spans && has_samples;
}

enum { TRIES = 5 }; /* as long as the machine is too busy */

static void program_that_ends_by(const char *mode)
{
    bool well = false, in_time = false;
    for (int i = 0; i < TRIES && !well && !in_time; i++)
        well = leaves_all(mode, &in_time);
    assert_true(well);
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

static void exit_in_on_end_flushes(void **state)
{
    (void)state;
    program_that_ends_by("callback end");
}

static void exit_in_flush_and_shutdown_flushes(void **state)
{
    (void)state;
    program_that_ends_by("callback flush");
    program_that_ends_by("callback shutdown");
}

static void exit_in_a_callback_that_a_stop_waits_for_flushes(void **state)
{
    (void)state;
    program_that_ends_by("callback stopped");
}

static void worker_of_a_parent_that_only_attached_is_sampled(void **state)
{
    (void)state;
    program_that_ends_by("worker");
}

static void return_from_main_after_a_late_network_start_still_sends(void **state)
{
    (void)state;
    bool in_time = false;
    int code = -1;
    for (int i = 0; i < TRIES && code != 0 && !in_time; i++)
        code = run_program("network", NULL, &in_time);
    assert_int_equal(code, 0);
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
        cmocka_unit_test(exit_in_on_end_flushes),
        cmocka_unit_test(exit_in_flush_and_shutdown_flushes),
        cmocka_unit_test(exit_in_a_callback_that_a_stop_waits_for_flushes),
        cmocka_unit_test(worker_of_a_parent_that_only_attached_is_sampled),
        cmocka_unit_test(return_from_main_after_a_late_network_start_still_sends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
