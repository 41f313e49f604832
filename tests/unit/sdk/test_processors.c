/* SPDX-License-Identifier: Apache-2.0 */
/* Span processors as an application sees them: flush and stop reach them, and the batch and the
 * simple processor export when they should. */
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
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
#include "sdk/config.h"

#define SECOND UINT64_C(1000000000)

static char directory[64], prefix[80];

static const char *const variables[] = {"OTEL_BSP_MAX_QUEUE_SIZE", "OTEL_BSP_MAX_EXPORT_BATCH_SIZE",
                                        "OTEL_BSP_SCHEDULE_DELAY", "OTEL_BSP_EXPORT_TIMEOUT",
                                        "SPANPROF_SPAN_PROCESSOR", "OTEL_EXPORTER_OTLP_TIMEOUT"};

static int setup(void **state)
{
    (void)state;
    strcpy(directory, "/tmp/spanprof-processors-XXXXXX");
    if (!mkdtemp(directory))
        return -1;
    snprintf(prefix, sizeof prefix, "%s/p", directory);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    spanprof_stop(60 * SECOND);
    for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++)
        unsetenv(variables[i]);
    return remove_folder(directory);
}

static spanprof_stats stats_now(void)
{
    spanprof_stats stats = SPANPROF_STATS_INIT;
    spanprof_stats_get(&stats);
    return stats;
}

static spanprof_options file_options(void)
{
    spanprof_options options = SPANPROF_OPTIONS_INIT;
    options.exporter = "file";
    options.file = prefix;
    options.profiles = "none";
    return options;
}

static void start(void)
{
    spanprof_options options = file_options();
    assert_int_equal(spanprof_start(&options, NULL), SPANPROF_OK);
}

static void run_spans(int count)
{
    for (int i = 0; i < count; i++)
        spanprof_span_end(spanprof_span_start(NULL, "s", NULL));
}

static void add(spanprof_processor processor)
{
    processor.struct_size = sizeof processor;
    assert_int_equal(spanprof_processor_add(&processor), SPANPROF_OK);
}

/* --- flush and stop --------------------------------------------------------------------------- */

/* What a processor of these tests has been told. */
typedef struct told {
    int starts, ends, flushes, shutdowns;
    uint64_t timeout_ns;  /* of the last flush or shutdown */
    spanprof_status says; /* to both */
    spanprof_span held;   /* ended by the next of both */
} told;

static void count_start(void *user, spanprof_span span, const spanprof_span_view *view,
                        const spanprof_context *parent)
{
    (void)span, (void)view, (void)parent;
    ((told *)user)->starts++;
}

static void count_end(void *user, const spanprof_span_view *view)
{
    (void)view;
    ((told *)user)->ends++;
}

static spanprof_status finish(told *told, uint64_t timeout_ns)
{
    told->timeout_ns = timeout_ns;
    if (told->held.slot)
        spanprof_span_end(told->held);
    told->held = (spanprof_span){0};
    assert_int_equal(spanprof_start(NULL, NULL), SPANPROF_ERROR_IN_CALLBACK);
    assert_int_equal(spanprof_flush(UINT64_MAX), SPANPROF_ERROR_IN_CALLBACK);
    assert_int_equal(spanprof_stop(UINT64_MAX), SPANPROF_ERROR_IN_CALLBACK);
    assert_int_equal(stats_now().running, 1);
    return told->says;
}

static spanprof_status count_flush(void *user, uint64_t timeout_ns)
{
    ((told *)user)->flushes++;
    return finish(user, timeout_ns);
}

static spanprof_status count_shutdown(void *user, uint64_t timeout_ns)
{
    ((told *)user)->shutdowns++;
    return finish(user, timeout_ns);
}

static spanprof_processor counts(told *told)
{
    return (spanprof_processor){.user = told,
                                .on_start = count_start,
                                .on_end = count_end,
                                .flush = count_flush,
                                .shutdown = count_shutdown};
}

static void flush_and_stop_reach_every_processor(void **state)
{
    (void)state;
    told first = {0}, second = {0};
    add(counts(&first));
    add((spanprof_processor){0});
    start();
    add(counts(&second));
    run_spans(2);
    assert_int_equal(first.starts + second.starts + first.ends + second.ends, 8);
    assert_int_equal(spanprof_flush(60 * SECOND), SPANPROF_OK);
    assert_in_range(first.timeout_ns, 1, 60 * SECOND);
    assert_in_range(second.timeout_ns, 1, first.timeout_ns);
    assert_int_equal(spanprof_flush(UINT64_MAX), SPANPROF_OK);
    assert_int_equal(first.timeout_ns, UINT64_MAX);
    spanprof_flush(0);
    assert_int_equal(second.timeout_ns, 0);
    assert_int_equal(first.flushes + second.flushes, 6);
    assert_int_equal(spanprof_stop(60 * SECOND), SPANPROF_OK);
    assert_in_range(second.timeout_ns, 1, 60 * SECOND);
    assert_int_equal(spanprof_stop(60 * SECOND), SPANPROF_ERROR_NOT_STARTED);
    start();
    run_spans(1);
    assert_int_equal(spanprof_flush(UINT64_MAX), SPANPROF_OK);
    assert_int_equal(spanprof_stop(UINT64_MAX), SPANPROF_OK);
    assert_int_equal(first.shutdowns, 1);
    assert_int_equal(second.shutdowns, 1);
    assert_int_equal(first.starts + second.starts + first.ends + second.ends, 8);
    assert_int_equal(first.flushes + second.flushes, 6);
}

static void what_a_processor_says_becomes_the_status(void **state)
{
    (void)state;
    told good = {0}, bad = {.says = SPANPROF_ERROR_EXPORT}, late = {.says = SPANPROF_ERROR_TIMEOUT};
    start();
    add(counts(&good));
    add(counts(&bad));
    add(counts(&late));
    run_spans(1);
    assert_int_equal(spanprof_flush(60 * SECOND), SPANPROF_ERROR_EXPORT);
    assert_int_equal(stats_now().exported_spans, 1); /* ours goes all the same */
    run_spans(1);
    assert_int_equal(spanprof_stop(60 * SECOND), SPANPROF_ERROR_EXPORT);
    assert_int_equal(stats_now().exported_spans, 2);
    assert_int_equal(late.flushes + late.shutdowns, 2);
}

static void spans_that_flush_and_shutdown_end_are_delivered(void **state)
{
    (void)state;
    told told = {0};
    start();
    told.held = spanprof_span_start(NULL, "held", NULL);
    add(counts(&told));
    assert_int_equal(spanprof_flush(60 * SECOND), SPANPROF_OK);
    assert_int_equal(told.ends, 1);
    assert_int_equal(stats_now().exported_spans, 1);
    told.held = spanprof_span_start(NULL, "held", NULL);
    assert_int_equal(spanprof_stop(60 * SECOND), SPANPROF_OK);
    assert_int_equal(stats_now().exported_spans, 2);
    assert_int_equal(told.ends, 1); /* nothing more is told once it shuts down */
}

static void start_that_fails_leaves_processors_waiting(void **state)
{
    (void)state;
    told told = {0};
    add(counts(&told));
    setenv("OTEL_SDK_DISABLED", "true", 1);
    spanprof_options options = file_options();
    assert_int_equal(spanprof_start(&options, NULL), SPANPROF_ERROR_DISABLED);
    unsetenv("OTEL_SDK_DISABLED");
    assert_int_equal(spanprof_stop(SECOND), SPANPROF_ERROR_NOT_STARTED);
    assert_int_equal(told.shutdowns, 0);
    start();
    run_spans(1);
    assert_int_equal(spanprof_stop(60 * SECOND), SPANPROF_OK);
    assert_int_equal(told.starts + told.ends + told.shutdowns, 3);
}

static void processor_is_told_where_nobody_exports(void **state)
{
    (void)state;
    told told = {0};
    spanprof_options options = file_options();
    options.exporter = "none";
    assert_int_equal(spanprof_start(&options, NULL), SPANPROF_OK);
    run_spans(1);
    add(counts(&told));
    run_spans(3000); /* more than the queue holds */
    assert_int_equal(spanprof_stop(60 * SECOND), SPANPROF_OK);
    assert_int_equal(told.starts + told.ends, 6000);
    assert_int_equal(stats_now().exported_spans, 0);
    assert_int_equal(stats_now().dropped_spans_queue_full, 0);
}

/* --- a callback that does not return ---------------------------------------------------------- */

static sem_t is_inside, may_leave;

static void block(void *user, const spanprof_span_view *view)
{
    (void)user, (void)view;
    sem_post(&is_inside);
    while (sem_wait(&may_leave) != 0)
        ;
}

static void *run_one_span(void *unused)
{
    run_spans(1);
    return unused;
}

static void stop_does_not_wait_for_ever_for_a_callback(void **state)
{
    (void)state;
    told told = {0};
    pthread_t thread;
    sem_init(&is_inside, 0, 0);
    sem_init(&may_leave, 0, 0);
    add((spanprof_processor){.on_end = block});
    add(counts(&told));
    start();
    assert_int_equal(pthread_create(&thread, NULL, run_one_span, NULL), 0);
    while (sem_wait(&is_inside) != 0)
        ;
    assert_int_equal(spanprof_stop(SECOND / 10), SPANPROF_ERROR_TIMEOUT);
    assert_int_equal(told.shutdowns, 1);
    add((spanprof_processor){.user = &told, .on_end = count_end});
    start();
    sem_post(&may_leave);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(told.ends, 0); /* the span's session is over, and its processors are */
    run_spans(1);
    assert_int_equal(told.ends, 1);
    assert_int_equal(spanprof_stop(60 * SECOND), SPANPROF_OK);
    sem_destroy(&is_inside);
    sem_destroy(&may_leave);
}

/* --- fork ------------------------------------------------------------------------------------- */

static void forked_child_calls_nothing_of_its_parent(void **state)
{
    (void)state;
    told told = {0};
    add(counts(&told));
    start();
    run_spans(1);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        run_spans(1);
        bool stopped = spanprof_flush(SECOND) == SPANPROF_ERROR_NOT_STARTED &&
                       spanprof_stop(SECOND) == SPANPROF_ERROR_NOT_STARTED;
        _exit(stopped && told.starts == 1 && told.ends == 1 && told.flushes + told.shutdowns == 0
                  ? 0
                  : 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    assert_int_equal(spanprof_stop(60 * SECOND), SPANPROF_OK);
    assert_int_equal(told.shutdowns, 1);
}

static void fork_inside(void *child, const spanprof_span_view *view)
{
    (void)view;
    *(pid_t *)child = fork();
}

/* What the child's own SDK says of the one span that it has. */
static int run_child_of_callback(void)
{
    char path[128];
    spanprof_options options = file_options();
    snprintf(path, sizeof path, "%s-child", prefix);
    options.file = path;
    if (spanprof_start(&options, NULL) != SPANPROF_OK)
        return 1;
    run_spans(1);
    if (spanprof_stop(60 * SECOND) != SPANPROF_OK || stats_now().exported_spans != 1)
        return 2;
    snprintf(path, sizeof path, "%s-child.traces.jsonl", prefix);
    int failed = unlink(path);
    snprintf(path, sizeof path, "%s-child.profiles.jsonl", prefix);
    unlink(path);
    return failed ? 3 : 0;
}

static void child_of_a_callback_starts_anew(void **state)
{
    const char *why = why_forked_child_cannot_start();
    (void)state;
    if (why) {
        print_message("skipped: %s\n", why);
        skip();
    }
    pid_t child = -1;
    int status = -1;
    add((spanprof_processor){.user = &child, .on_end = fork_inside});
    start();
    run_spans(1);
    if (child == 0)
        _exit(run_child_of_callback());
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(spanprof_stop(60 * SECOND), SPANPROF_OK);
    assert_int_equal(stats_now().exported_spans, 1);
}

/* --- batch and simple ------------------------------------------------------------------------- */

/* For as long as a machine may take, which is no bound on how soon it should be. */
static void wait_for_spans(uint64_t count)
{
    for (int ms = 0; ms < 60000 && stats_now().exported_spans < count; ms++)
        usleep(1000);
    assert_int_equal(stats_now().exported_spans, count);
}

static void simple_processor_exports_each_span_at_once(void **state)
{
    (void)state;
    setenv("OTEL_BSP_SCHEDULE_DELAY", "1000000000", 1);
    setenv("SPANPROF_SPAN_PROCESSOR", "simple", 1);
    start();
    for (uint64_t i = 1; i <= 20; i++) {
        run_spans(1);
        wait_for_spans(i);
    }
    assert_int_equal(stats_now().exported_requests, 20);
    run_spans(1000);
    wait_for_spans(1020);
    assert_int_equal(spanprof_stop(60 * SECOND), SPANPROF_OK);
    assert_int_equal(stats_now().exported_spans, 1020);
}

static void batch_goes_when_it_is_full_and_no_larger(void **state)
{
    (void)state;
    setenv("OTEL_BSP_SCHEDULE_DELAY", "1000000000", 1);
    setenv("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "3", 1);
    start();
    run_spans(7);
    wait_for_spans(6);
    assert_int_equal(spanprof_flush(60 * SECOND), SPANPROF_OK);
    assert_int_equal(stats_now().exported_spans, 7);
    assert_int_equal(stats_now().exported_requests, 3);
}

static void batch_goes_after_the_delay(void **state)
{
    (void)state;
    setenv("OTEL_BSP_SCHEDULE_DELAY", "50", 1);
    start();
    run_spans(1);
    wait_for_spans(1);
}

static sp_config read_config(const spanprof_options *options)
{
    sp_config config;
    spanprof_options known;
    assert_int_equal(sp_options_check(options, &known, NULL), SPANPROF_OK);
    assert_true(sp_config_init(&config, &known));
    return config;
}

static void variables_of_the_batch_processor_are_read(void **state)
{
    (void)state;
    sp_config config = read_config(NULL);
    assert_int_equal(config.tracer.queue_spans, 2048);
    assert_int_equal(config.export.batch_spans, 512);
    assert_int_equal(config.export.batch_delay_ms, 5000);
    assert_false(config.export.spans_at_once);
    sp_config_deinit(&config);
    setenv("OTEL_BSP_MAX_QUEUE_SIZE", "40", 1);
    setenv("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "30", 1);
    setenv("OTEL_BSP_SCHEDULE_DELAY", "70", 1);
    setenv("OTEL_BSP_EXPORT_TIMEOUT", "20", 1);
    setenv("SPANPROF_SPAN_PROCESSOR", "simple", 1);
    config = read_config(NULL);
    assert_int_equal(config.tracer.queue_spans, 40);
    assert_int_equal(config.export.batch_spans, 30);
    assert_int_equal(config.export.batch_delay_ms, 70);
    assert_int_equal(config.export.http[SP_TRACES].timeout_ms, 20);
    assert_int_not_equal(config.export.http[SP_PROFILES].timeout_ms, 20);
    assert_true(config.export.spans_at_once);
    sp_config_deinit(&config);
    setenv("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "50", 1); /* at most the queue */
    spanprof_options options = SPANPROF_OPTIONS_INIT;
    options.span_processor = "batch";
    config = read_config(&options);
    assert_int_equal(config.export.batch_spans, 40);
    assert_false(config.export.spans_at_once);
    sp_config_deinit(&config);
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(flush_and_stop_reach_every_processor),
        CASE(what_a_processor_says_becomes_the_status),
        CASE(spans_that_flush_and_shutdown_end_are_delivered),
        CASE(start_that_fails_leaves_processors_waiting),
        CASE(processor_is_told_where_nobody_exports),
        CASE(stop_does_not_wait_for_ever_for_a_callback),
        CASE(forked_child_calls_nothing_of_its_parent),
        CASE(child_of_a_callback_starts_anew),
        CASE(simple_processor_exports_each_span_at_once),
        CASE(batch_goes_when_it_is_full_and_no_larger),
        CASE(batch_goes_after_the_delay),
        CASE(variables_of_the_batch_processor_are_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
