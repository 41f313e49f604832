/* SPDX-License-Identifier: Apache-2.0 */
/* Which threads run the host's log function: those inside start, flush and stop, and the SDK's.
 * Never one that the application has do its own work, for it may hold the lock that the function
 * takes. And what happens when the function does not return. */
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include <spanprof/spanprof.h>
#include "core/clock.h"
#include "sanitizers.h"

/* In a forked child, where cmocka's assertions would go on with the next case. */
#define CHECK(condition)                                                                           \
    ((condition) ? (void)0                                                                         \
                 : (fprintf(stdout, "line %d: %s\nsaid:\n%s", __LINE__, #condition, host.text),    \
                    fflush(stdout), _exit(1)))

static _Thread_local bool works; /* this thread is inside a call of the application's own work */

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    char text[65536]; /* all lines */
    bool from_work;   /* a line came on a thread that works */
    bool hangs, is_inside;
} host = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static void hosts_log(spanprof_log_level level, const char *line, void *user)
{
    (void)level;
    (void)user;
    pthread_mutex_lock(&host.lock);
    size_t length = strlen(host.text);
    snprintf(host.text + length, sizeof host.text - length, "%s\n", line);
    host.from_work |= works;
    host.is_inside = true;
    pthread_cond_broadcast(&host.changed);
    while (host.hangs)
        pthread_cond_wait(&host.changed, &host.lock);
    host.is_inside = false;
    pthread_mutex_unlock(&host.lock);
}

static void set_hangs(bool hangs)
{
    pthread_mutex_lock(&host.lock);
    host.hangs = hangs;
    pthread_cond_broadcast(&host.changed);
    pthread_mutex_unlock(&host.lock);
}

static unsigned lines_with(const char *text)
{
    unsigned count = 0;
    pthread_mutex_lock(&host.lock);
    for (const char *at = host.text; (at = strstr(at, text)); at++)
        count++;
    pthread_mutex_unlock(&host.lock);
    return count;
}

static char directory[64];

static void start(const spanprof_sampler *sampler)
{
    char prefix[96];
    spanprof_options options = SPANPROF_OPTIONS_INIT;
    snprintf(prefix, sizeof prefix, "%s/%d", directory, (int)getpid());
    options.exporter = "file";
    options.file = prefix;
    options.log = hosts_log;
    options.sampler = sampler;
    CHECK(spanprof_start(&options, NULL) == SPANPROF_OK);
}

/* --- what has something to say on the application's threads ----------------------------------- */

#define E_ACUTES                                                                                   \
    "\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3" \
    "\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9"

/* A hundred bytes of it are shown, which end in a character. */
static const char crowded[] = "crowded\nERROR root: forged \x1b[31m " E_ACUTES E_ACUTES E_ACUTES;

static void end_a_span_with_too_much(void)
{
    spanprof_span span = spanprof_span_start(NULL, crowded, NULL);
    for (int i = 0; i < 140; i++) {
        char key[16];
        snprintf(key, sizeof key, "key %d", i);
        spanprof_span_set_int(span, key, i);
    }
    spanprof_span_end(span);
}

/* Also heard while the SDK does not run. */
static void pass_options_without_size(void)
{
    spanprof_tracer_options options = {0};
    spanprof_tracer_get_with(&options);
}

static void pass_options_of_a_later_version(void)
{
    struct {
        spanprof_span_options known;
        uint64_t later;
    } options = {.known = SPANPROF_SPAN_OPTIONS_INIT, .later = 1};
    options.known.struct_size = sizeof options;
    spanprof_span_end(spanprof_span_start(NULL, "later", &options.known));
}

static void have_the_ratio_decide(void)
{
    spanprof_context parent = {.trace_flags = SPANPROF_TRACE_FLAG_SAMPLED, .remote = 1};
    memset(parent.trace_id, 7, sizeof parent.trace_id);
    memset(parent.span_id, 7, sizeof parent.span_id);
    spanprof_span_options options = SPANPROF_SPAN_OPTIONS_INIT;
    options.parent = &parent;
    spanprof_span_end(spanprof_span_start(NULL, "by ratio", &options));
}

static const struct {
    void (*work)(void);
    const char *said;
} works_that_speak[] = {
    {end_a_span_with_too_much, "had more than it may keep"},
    {pass_options_without_size, "with struct_size 0"},
    {pass_options_of_a_later_version, "has fields set that this version"},
    {have_the_ratio_decide, "presumes that trace ids are random"},
};

static void do_work(unsigned i)
{
    works = true;
    works_that_speak[i].work();
    works = false;
}

/* Each case in a process of its own, because most messages are said once. */
static void in_a_child(void (*run)(void))
{
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        alarm(300);
        run();
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void work_while_the_sdk_runs(void)
{
    spanprof_sampler ratio = SPANPROF_SAMPLER_INIT, sampler = SPANPROF_SAMPLER_INIT;
    ratio.kind = SPANPROF_SAMPLER_TRACE_ID_RATIO;
    ratio.ratio = 0.5;
    sampler.remote_sampled = &ratio;
    start(&sampler);
    for (unsigned i = 0; i < 4; i++)
        do_work(i);
    CHECK(spanprof_flush(UINT64_MAX) == SPANPROF_OK);
    for (unsigned i = 0; i < 4; i++)
        CHECK(lines_with(works_that_speak[i].said) == 1);
    CHECK(!host.from_work);
    CHECK(lines_with("crowded?ERROR root: forged ?[31m \xc3\xa9") == 1);
    CHECK(lines_with("\xc3\xa9...\" had more") == 1);
    spanprof_stop(UINT64_MAX);
}

static void work_after_a_stop(void)
{
    start(NULL);
    spanprof_stop(UINT64_MAX);
    do_work(1);
    CHECK(lines_with(works_that_speak[1].said) == 0);
    start(NULL); /* a call in which the host expects to be told */
    CHECK(lines_with(works_that_speak[1].said) == 1);
    CHECK(!host.from_work);
    spanprof_stop(UINT64_MAX);
}

/* What the parent's threads had to say is the parent's to say. */
static void fork_with_lines_that_wait(void)
{
    start(NULL);
    set_hangs(true);
    do_work(0);
    do_work(1);
    pid_t child = fork();
    if (child == 0) {
        host.text[0] = 0;
        host.hangs = false;
        pthread_mutex_init(&host.lock, NULL);
        pthread_cond_init(&host.changed, NULL);
        start(NULL);
        do_work(2);
        spanprof_flush(UINT64_MAX);
        bool fine = lines_with(works_that_speak[2].said) == 1 &&
                    lines_with(works_that_speak[1].said) == 0 && !host.from_work;
        spanprof_stop(UINT64_MAX);
        _exit(fine ? 0 : 1);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(status == 0);
    set_hangs(false);
    spanprof_stop(UINT64_MAX);
    CHECK(lines_with(works_that_speak[1].said) == 1);
}

static void forked_child_does_not_say_what_is_its_parents(void **state)
{
    const char *why = why_forked_child_cannot_start();
    (void)state;
    if (why) {
        print_message("skipped: %s\n", why);
        skip();
    }
    in_a_child(fork_with_lines_that_wait);
}

static void expect_no_long_wait(uint64_t before_ns)
{
    CHECK(sp_clock_monotonic_ns() - before_ns < 100 * SP_NS_PER_S);
}

static void stop_while_the_function_does_not_return(void)
{
    start(NULL);
    set_hangs(true);
    do_work(0);
    pthread_mutex_lock(&host.lock);
    while (!host.is_inside)
        pthread_cond_wait(&host.changed, &host.lock);
    pthread_mutex_unlock(&host.lock);
    do_work(1);
    uint64_t before_ns = sp_clock_monotonic_ns();
    spanprof_stop(SP_NS_PER_S / 10);
    expect_no_long_wait(before_ns);
    set_hangs(false);
    start(NULL); /* what waited is said by the next thread */
    CHECK(lines_with(works_that_speak[1].said) == 1);
    spanprof_stop(UINT64_MAX);
}

/* Standard error is a pipe that is full, and its reader sleeps. */
static void stop_while_standard_error_is_full(void)
{
    static const char page[4096];
    int ends[2];
    spanprof_options options = SPANPROF_OPTIONS_INIT;
    options.exporter = "none";
    CHECK(pipe(ends) == 0);
    CHECK(fcntl(ends[1], F_SETFL, O_NONBLOCK) == 0);
    while (write(ends[1], page, sizeof page) > 0)
        continue;
    fcntl(ends[1], F_SETFL, 0);
    dup2(ends[1], STDERR_FILENO);
    CHECK(spanprof_start(&options, NULL) == SPANPROF_OK);
    do_work(0);
    do_work(1);
    uint64_t before_ns = sp_clock_monotonic_ns();
    spanprof_stop(SP_NS_PER_S / 10);
    expect_no_long_wait(before_ns);
}

#define IN_A_CHILD(name, function)                                                                 \
    static void name(void **state)                                                                 \
    {                                                                                              \
        (void)state;                                                                               \
        in_a_child(function);                                                                      \
    }

IN_A_CHILD(application_thread_has_something_to_say_another_says_it, work_while_the_sdk_runs)
IN_A_CHILD(application_thread_speaks_after_a_stop_the_next_start_says_it, work_after_a_stop)
IN_A_CHILD(function_does_not_return_stop_does, stop_while_the_function_does_not_return)
IN_A_CHILD(standard_error_is_full_stop_returns, stop_while_standard_error_is_full)

static int make_directory(void **state)
{
    (void)state;
    strcpy(directory, "/tmp/spanprof-test-XXXXXX");
    return mkdtemp(directory) == NULL;
}

static int remove_directory(void **state)
{
    (void)state;
    char command[96];
    snprintf(command, sizeof command, "rm -r %s", directory);
    return system(command); // NOLINT(cert-env33-c)
}

/* What a forked child says on standard error when it starts spans, in OUT. */
static void forked_child_says(spanprof_log_function function, bool starts, char *out, size_t size)
{
    int ends[2];
    spanprof_options options = SPANPROF_OPTIONS_INIT;
    options.exporter = "none";
    options.profiles = "none";
    options.log = function;
    assert_int_equal(spanprof_start(&options, NULL), SPANPROF_OK);
    assert_int_equal(pipe(ends), 0);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        if (starts && spanprof_start(&options, NULL) != SPANPROF_OK)
            _exit(1);
        for (int i = 0; i < 3; i++)
            spanprof_span_end(spanprof_span_start(NULL, "work", NULL));
        _exit(0);
    }
    close(ends[1]);
    size_t length = 0;
    for (ssize_t got; (got = read(ends[0], out + length, size - 1 - length)) > 0;)
        length += (size_t)got;
    out[length] = 0;
    close(ends[0]);
    waitpid(child, NULL, 0);
    assert_int_equal(spanprof_stop(UINT64_MAX), SPANPROF_OK);
}

static void forked_child_that_did_not_start_says_so_once(void **state)
{
    (void)state;
    char said[4096];
    forked_child_says(NULL, false, said, sizeof said);
    const char *found = strstr(said, "forked from one that runs the SDK");
    assert_non_null(found);
    assert_non_null(strstr(found, "spanprof_start in the child"));
    assert_null(strstr(found + 1, "forked from"));
    forked_child_says(hosts_log, false, said, sizeof said);
    assert_string_equal(said, ""); /* the host's own function is not for threads that work */
    if (why_forked_child_cannot_start())
        return;
    forked_child_says(NULL, true, said, sizeof said);
    assert_null(strstr(said, "forked from"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forked_child_that_did_not_start_says_so_once),
        cmocka_unit_test(application_thread_has_something_to_say_another_says_it),
        cmocka_unit_test(application_thread_speaks_after_a_stop_the_next_start_says_it),
        cmocka_unit_test(forked_child_does_not_say_what_is_its_parents),
        cmocka_unit_test(function_does_not_return_stop_does),
        cmocka_unit_test(standard_error_is_full_stop_returns),
    };
    return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
