/* SPDX-License-Identifier: Apache-2.0 */
/* Start, flush, stop, fork and bad configuration, as an application sees them. */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include <spanprof/spanprof.h>
#include "remove_folder.h"
#include "sanitizers.h"
#include "unit/sdk/ticks.h"
#include "verdict.h"

#define SECOND UINT64_C(1000000000)

static char directory[64], prefix[80];
static char log_text[65536];
static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;

static void keep_log(spanprof_log_level level, const char *line, void *user)
{
    (void)level;
    (void)user;
    pthread_mutex_lock(&log_lock);
    strncat(log_text, line, sizeof log_text - strlen(log_text) - 2);
    strcat(log_text, "\n");
    pthread_mutex_unlock(&log_lock);
}

static int count_lines_with(const char *text)
{
    int count = 0;
    for (const char *at = log_text; (at = strstr(at, text)) != NULL; at++)
        count++;
    return count;
}

static spanprof_options file_options(void)
{
    spanprof_options options = SPANPROF_OPTIONS_INIT;
    options.exporter = "file";
    options.file = prefix;
    options.log = keep_log;
    return options;
}

static spanprof_stats stats_now(void)
{
    spanprof_stats stats = SPANPROF_STATS_INIT;
    spanprof_stats_get(&stats);
    return stats;
}

static int setup(void **state)
{
    (void)state;
    strcpy(directory, "/tmp/spanprof-life-XXXXXX");
    if (!mkdtemp(directory))
        return -1;
    snprintf(prefix, sizeof prefix, "%s/p", directory);
    log_text[0] = 0;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    spanprof_stop(60 * SECOND);
    return remove_folder(directory);
}

static void start_twice_is_an_error_and_stop_twice_too(void **state)
{
    (void)state;
    spanprof_options options = file_options();
    spanprof_error error = {0};
    assert_int_equal(spanprof_start(&options, &error), SPANPROF_OK);
    assert_int_equal(spanprof_start(&options, &error), SPANPROF_ERROR_ALREADY_STARTED);
    assert_int_equal(error.status, SPANPROF_ERROR_ALREADY_STARTED);
    assert_non_null(strstr(error.message, "spanprof_stop"));
    assert_int_equal(stats_now().running, 1);
    assert_int_equal(spanprof_stop(60 * SECOND), SPANPROF_OK);
    assert_int_equal(spanprof_stop(60 * SECOND), SPANPROF_ERROR_NOT_STARTED);
    assert_int_equal(spanprof_flush(60 * SECOND), SPANPROF_ERROR_NOT_STARTED);
    assert_int_equal(stats_now().running, 0);
}

static void start_after_stop_samples_again(void **state)
{
    (void)state;
    spanprof_options options = file_options();
    static const uint32_t rates[] = {99, 5000, 200}; /* rings of another size each time */
    for (int round = 0; round < 3; round++) {
        options.cpu_hz = rates[round];
        assert_int_equal(spanprof_start(&options, NULL), SPANPROF_OK);
        double began = clock_seconds(CLOCK_MONOTONIC);
        SPANPROF_SPAN("burn")
#if defined(__SANITIZE_THREAD__)
            burn(0.2);
#else
            assert_true(burn_until_linked(0.2));
#endif
        double passed = clock_seconds(CLOCK_MONOTONIC) - began;
        assert_int_equal(spanprof_stop(60 * SECOND), SPANPROF_OK);
        spanprof_stats stats = stats_now();
#if !defined(__SANITIZE_THREAD__)
        /* An event also counts what a hypervisor takes away, but no more than all the time that
         * passed. */
        assert_in_range(stats.weights, 1, (uint64_t)(rates[round] * (passed + 0.1)));
        if (stats.weights < rates[round] / 10) /* half of what 0.2 s are */
            verdict_unsure("%lu periods at %u Hz in 0.2 s", (unsigned long)stats.weights,
                           rates[round]);
#else
        (void)passed;
#endif
        assert_int_equal(stats.ticks, stats.samples_linked + stats.samples_none +
                                          stats.samples_unknown + stats.dropped_samples_ring_full +
                                          stats.dropped_samples_memory);
        assert_int_equal(stats.spans_started, 1);
        assert_int_equal(stats.exported_spans, 1);
    }
}

static void options_of_unknown_size_are_refused(void **state)
{
    (void)state;
    struct {
        spanprof_options known;
        uint64_t later;
    } newer = {.known = SPANPROF_OPTIONS_INIT, .later = 1};
    spanprof_error error = {0};
    newer.known.struct_size = sizeof newer;
    assert_int_equal(spanprof_start(&newer.known, &error), SPANPROF_ERROR_INVALID_ARGUMENT);
    assert_non_null(strstr(error.message, "does not know"));
    newer.known.struct_size = 0;
    assert_int_equal(spanprof_start(&newer.known, &error), SPANPROF_ERROR_INVALID_ARGUMENT);
    assert_int_equal(stats_now().running, 0);
}

static void start_with(const char *variable, const char *value)
{
    spanprof_options options = file_options();
    log_text[0] = 0;
    setenv(variable, value, 1);
    assert_int_equal(spanprof_start(&options, NULL), SPANPROF_OK);
    unsetenv(variable);
}

static void rate_that_cannot_be_used_is_named_once_with_what_is_used(void **state)
{
    (void)state;
    static const char *const values[] = {"abc", "0",    "1000000",
                                         "-5",  "99.5", "18446744073709551700"};
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        start_with("SPANPROF_CPU_HZ", values[i]);
        assert_int_equal(stats_now().cpu_hz, 99);
        assert_int_equal(spanprof_stop(60 * SECOND), SPANPROF_OK);
        assert_int_equal(count_lines_with("SPANPROF_CPU_HZ"), 1);
        assert_non_null(strstr(log_text, values[i]));
        assert_non_null(strstr(log_text, "using 99"));
    }
}

static void names_setting_that_cannot_be_used_is_named_once(void **state)
{
    static const char *const settings[][3] = {{"SPANPROF_DEMANGLE", "loud", "using short"},
                                              {"SPANPROF_DEBUGINFOD", "yes", "using 0"},
                                              {"SPANPROF_TIMESTAMPS", "often", "using 0"}};
    (void)state;
    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++) {
        start_with(settings[i][0], settings[i][1]);
        assert_int_equal(spanprof_stop(60 * SECOND), SPANPROF_OK);
        assert_int_equal(count_lines_with(settings[i][0]), 1);
        assert_int_equal(count_lines_with(settings[i][2]), 1);
    }
    start_with("SPANPROF_TIMESTAMPS", "1");
    assert_int_equal(spanprof_stop(60 * SECOND), SPANPROF_OK);
    assert_int_equal(count_lines_with("SPANPROF_TIMESTAMPS"), 0);
    start_with("SPANPROF_DEMANGLE", "Folded");
    assert_int_equal(spanprof_stop(60 * SECOND), SPANPROF_OK);
    assert_int_equal(count_lines_with("SPANPROF_DEMANGLE"), 0);
}

static void options_not_built_yet_are_named_once(void **state)
{
    (void)state;
    start_with("SPANPROF_SPAN_NAME", "root");
    spanprof_stop(60 * SECOND);
    assert_int_equal(count_lines_with("SPANPROF_SPAN_NAME is not built yet"), 1);
    start_with("SPANPROF_SIGNAL", "SIGKILL");
    spanprof_stop(60 * SECOND);
    assert_int_equal(count_lines_with("SPANPROF_SIGNAL=SIGKILL"), 1);
}

/* This program is not started with the library that sees allocations. */
static void allocations_that_are_not_seen_are_named_once(void **state)
{
    (void)state;
    start_with("SPANPROF_PROFILES", "alloc,heap");
    assert_int_equal(spanprof_flush(60 * SECOND), SPANPROF_OK);
    spanprof_stats stats = SPANPROF_STATS_INIT;
    spanprof_stats_get(&stats);
    assert_int_equal(stats.ticks, 0);
    assert_int_equal(stats.unattributed_ns, 0);
    assert_string_equal(stats.engine, "");
    spanprof_stop(60 * SECOND);
    assert_int_equal(count_lines_with("allocations are not seen"), 1);
    start_with("SPANPROF_PROFILES", "cpu");
    spanprof_stop(60 * SECOND);
    assert_int_equal(count_lines_with("allocations are not seen"), 0);
}

static void disabled_sdk_does_not_start_and_spans_are_no_ops(void **state)
{
    (void)state;
    setenv("OTEL_SDK_DISABLED", "true", 1);
    spanprof_options options = file_options();
    assert_int_equal(spanprof_start(&options, NULL), SPANPROF_ERROR_DISABLED);
    unsetenv("OTEL_SDK_DISABLED");
    assert_int_equal(spanprof_span_start(NULL, "nothing", NULL).slot, 0);
}

static void every_call_takes_zero_and_ended_handles(void **state)
{
    (void)state;
    spanprof_options options = file_options();
    assert_int_equal(spanprof_start(&options, NULL), SPANPROF_OK);
    spanprof_span ended = spanprof_span_start(NULL, NULL, NULL), zero = {0};
    spanprof_span_end(ended);
    spanprof_span handles[] = {ended, zero};
    for (int i = 0; i < 2; i++) {
        uint64_t before = stats_now().misuse_dead_span;
        spanprof_span span = handles[i];
        spanprof_span_set_string(span, "k", "v");
        spanprof_span_set_int(span, "k", 1);
        spanprof_span_set_double(span, "k", 1);
        spanprof_span_set_bool(span, "k", true);
        spanprof_span_set_status(span, SPANPROF_SPAN_STATUS_ERROR, "d");
        spanprof_span_end(span);
        spanprof_context context = spanprof_span_context(span);
        assert_int_equal(context.span_id[0] | context.trace_id[0], 0);
        spanprof_scope scope = spanprof_span_attach(span);
        assert_int_equal(spanprof_context_current().span_id[0], 0);
        spanprof_scope_detach(&scope);
        assert_true(stats_now().misuse_dead_span >= before + 7);
    }
    spanprof_stats_get(NULL);
    spanprof_scope_detach(NULL);
    spanprof_context_attach(NULL);
    assert_int_equal(spanprof_stop(60 * SECOND), SPANPROF_OK);
}

enum { FEW_PERIODS = 8 };

/* In the child: nothing samples or sends, and it may start its own. Returns 0 when all holds,
 * FEW_PERIODS when all but their number does. */
static int run_child(void)
{
    spanprof_stats stats = stats_now();
    if (!stats.forked || stats.running)
        return 1;
    SPANPROF_SPAN("child")
        burn(0.1);
    if (stats_now().ticks != 0 || spanprof_stop(SECOND) != SPANPROF_ERROR_NOT_STARTED)
        return 2;
    const char *why = why_forked_child_cannot_start();
    if (why) {
        print_message("skipped in the child: its own start. %s\n", why);
        return 0;
    }
    char own[128];
    snprintf(own, sizeof own, "%s.%d", prefix, (int)getpid());
    setenv("SPANPROF_FILE", prefix, 1); /* the parent's */
    spanprof_options options = file_options();
    options.file = NULL;
    if (spanprof_start(&options, NULL) != SPANPROF_OK || stats_now().forked)
        return 3;
    bool is_linked = false;
    SPANPROF_SPAN("child")
        is_linked = burn_until_linked(0.2);
    if (spanprof_stop(60 * SECOND) != SPANPROF_OK)
        return 4;
    stats = stats_now();
    if (stats.exported_spans != 1)
        return 5;
    if (!is_linked)
        return 6;
    char path[160];
    snprintf(path, sizeof path, "%s.traces.jsonl", own);
    int missing = unlink(path);
    snprintf(path, sizeof path, "%s.profiles.jsonl", own);
    unlink(path);
    return missing ? 7 : stats.weights < 5 ? FEW_PERIODS : 0;
}

static void forked_child_is_silent_until_it_starts_its_own(void **state)
{
    (void)state;
    spanprof_options options = file_options();
    assert_int_equal(spanprof_start(&options, NULL), SPANPROF_OK);
    spanprof_span span = spanprof_span_start(NULL, "parent", NULL);
    spanprof_scope scope = spanprof_span_attach(span);
    burn(0.1);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit(run_child());
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == FEW_PERIODS)
        verdict_unsure("the child has fewer than 5 periods in 0.2 s");
    else
        assert_int_equal(WEXITSTATUS(status), 0);
    burn(0.1);
    spanprof_scope_detach(&scope);
    spanprof_span_end(span);
    assert_int_equal(spanprof_stop(60 * SECOND), SPANPROF_OK);
    assert_int_equal(stats_now().forked, 0);
    assert_int_equal(stats_now().exported_spans, 1);
}

static volatile sig_atomic_t host_signals;

static void host_handler(int signal)
{
    (void)signal;
    host_signals++;
}

static void hosts_handler_is_served_and_put_back(void **state)
{
    (void)state;
    struct sigaction host = {.sa_handler = host_handler}, now;
    sigaction(SIGPROF, &host, NULL);
    spanprof_options options = file_options();
    assert_int_equal(spanprof_start(&options, NULL), SPANPROF_OK);
    /* An SDK that ran before may have sent one signal to find out whether the host's handler passes
     * on. */
    int before = host_signals;
    raise(SIGPROF);
    assert_int_equal(host_signals, before + 1);
    burn(0.1);
    assert_int_equal(host_signals, before + 1); /* our ticks are not passed on */
    assert_int_equal(spanprof_stop(60 * SECOND), SPANPROF_OK);
    sigaction(SIGPROF, NULL, &now);
    assert_ptr_equal(now.sa_handler, host_handler);
    signal(SIGPROF, SIG_DFL);
    assert_int_equal(spanprof_start(&options, NULL), SPANPROF_OK);
    assert_int_equal(spanprof_stop(60 * SECOND), SPANPROF_OK);
    raise(SIGPROF); /* the default would end us */
}

/* Our handler for the signal of the first run stays, and the host handles that of the second:
 * neither may get what belongs to the other. */
static void run_with_another_signal_sends_the_host_none(void **state)
{
    (void)state;
    struct sigaction host = {.sa_handler = host_handler}, now;
    spanprof_options options = file_options();
    assert_int_equal(spanprof_start(&options, NULL), SPANPROF_OK);
    assert_int_equal(spanprof_stop(60 * SECOND), SPANPROF_OK);
    sigaction(SIGUSR1, &host, NULL);
    host_signals = 0;
    options.signal = "SIGUSR1";
    assert_int_equal(spanprof_start(&options, NULL), SPANPROF_OK);
    assert_int_equal(host_signals, 0);
    raise(SIGPROF);
    assert_int_equal(host_signals, 0);
    raise(SIGUSR1);
    assert_int_equal(host_signals, 1);
    assert_int_equal(spanprof_stop(60 * SECOND), SPANPROF_OK);
    assert_int_equal(host_signals, 1);
    sigaction(SIGUSR1, NULL, &now);
    assert_ptr_equal(now.sa_handler, host_handler);
    signal(SIGUSR1, SIG_DFL);
}

static void stop_returns_by_its_deadline_with_a_dead_endpoint(void **state)
{
    (void)state;
    spanprof_options options = file_options();
    options.exporter = "otlp";
    options.endpoint = "http://127.0.0.1:1";
    allow_leaks(true); /* on a busy machine the stop abandons this run */
    assert_int_equal(spanprof_start(&options, NULL), SPANPROF_OK);
    allow_leaks(false);
    SPANPROF_SPAN("lost")
        for (int i = 0; i < 100 && stats_now().ticks == 0; i++)
            burn(0.1);
    spanprof_status status = spanprof_stop(SECOND / 2);
    assert_true(status == SPANPROF_ERROR_TIMEOUT || status == SPANPROF_ERROR_EXPORT);
    spanprof_stats stats = stats_now();
    assert_true(stats.dropped_exports_unreachable >= 1);
    /* Each of the two says once that nobody is there, or, when stop came first, once what was lost
     * by it. A profile that was not made yet by then is no request: its samples are counted. */
    int refused = count_lines_with("v1/traces: Connection refused");
    int lost = count_lines_with("v1/traces not delivered");
    assert_true(refused <= 1 && lost <= 1 && refused + lost >= 1);
    refused = count_lines_with("v1development/profiles: Connection refused");
    lost = count_lines_with("v1development/profiles not delivered");
    assert_true(refused <= 1 && lost <= 1);
    assert_true(refused + lost + stats.dropped_samples_at_stop >= 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(start_twice_is_an_error_and_stop_twice_too, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(start_after_stop_samples_again, setup, teardown),
        cmocka_unit_test_setup_teardown(options_of_unknown_size_are_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(rate_that_cannot_be_used_is_named_once_with_what_is_used,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(names_setting_that_cannot_be_used_is_named_once, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(options_not_built_yet_are_named_once, setup, teardown),
        cmocka_unit_test_setup_teardown(allocations_that_are_not_seen_are_named_once, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(disabled_sdk_does_not_start_and_spans_are_no_ops, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(every_call_takes_zero_and_ended_handles, setup, teardown),
        cmocka_unit_test_setup_teardown(forked_child_is_silent_until_it_starts_its_own, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(hosts_handler_is_served_and_put_back, setup, teardown),
        cmocka_unit_test_setup_teardown(run_with_another_signal_sends_the_host_none, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(stop_returns_by_its_deadline_with_a_dead_endpoint, setup,
                                        teardown),
    };
    return verdict_code(cmocka_run_group_tests(tests, NULL, NULL));
}
