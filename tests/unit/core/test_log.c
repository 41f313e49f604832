/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "core/log.h"
#include "core/log_queue.h"

static char last[1200];
static int lines;

static void keep(spanprof_log_level level, const char *line, void *user)
{
    (void)level;
    assert_ptr_equal(user, &lines);
    lines++;
    snprintf(last, sizeof last, "%s", line);
}

static void log_level_decides_what_is_said(void **state)
{
    (void)state;
    lines = 0;
    sp_log_configure(SPANPROF_LOG_DEFAULT, keep, &lines);
    sp_log_info("test", "not this");
    assert_int_equal(lines, 0);
    sp_log_warn("test", "attempt %d", 2);
    assert_string_equal(last, "test: attempt 2");
    sp_log_configure(SPANPROF_LOG_OFF, keep, &lines);
    sp_log_error("test", "nor this");
    assert_int_equal(lines, 1);
    sp_log_configure(SPANPROF_LOG_DEBUG, keep, &lines);
    sp_log_debug("test", "but this");
    assert_int_equal(lines, 2);
}

static void log_long_message_is_cut(void **state)
{
    (void)state;
    char text[5000];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = 0;
    sp_log_configure(SPANPROF_LOG_WARN, keep, &lines);
    sp_log_warn("test", "%s", text);
    assert_true(strlen(last) < 1100);
    assert_memory_equal(last, "test: xxx", 9);
}

/* A name that comes from outside ends no line, and commands no terminal. */
static void log_message_has_outside_text_it_stays_one_line(void **state)
{
    (void)state;
    sp_log_configure(SPANPROF_LOG_WARN, keep, &lines);
    sp_log_warn("test", "span \"%s\" ended",
                "GET /\nERROR root: forged \x1b[31m\xc2\x9b\xe2\x80\xae\xff");
    assert_string_equal(last, "test: span \"GET /?ERROR root: forged ?[31m???\" ended");
}

/* Standard error gets one line, with its newline also when it was cut. */
static void log_without_sink_goes_to_standard_error(void **state)
{
    (void)state;
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    int saved = dup(STDERR_FILENO);
    dup2(ends[1], STDERR_FILENO);
    char text[2000];
    memset(text, 'y', sizeof text - 1);
    text[sizeof text - 1] = 0;
    sp_log_configure(SPANPROF_LOG_WARN, NULL, NULL);
    sp_log_error("test", "%s", text);
    dup2(saved, STDERR_FILENO);
    close(saved);
    close(ends[1]);
    char got[4000];
    ssize_t length = read(ends[0], got, sizeof got);
    close(ends[0]);
    assert_true(length > 1000);
    assert_memory_equal(got, "spanprof: error: test: yyy", 26);
    assert_ptr_equal(memchr(got, '\n', (size_t)length), got + length - 1);
}

/* Nobody takes lines: 64 wait, the others are counted. The calls before are not queued, because the
 * queue has not begun. */
static void log_queue_is_full_what_was_dropped_is_said(void **state)
{
    (void)state;
    sp_log_line line = {0};
    lines = 0;
    sp_log_configure_queued(SPANPROF_LOG_WARN, keep, &lines);
    for (int i = 0; i < SP_LOG_QUEUE_LINES + 3; i++)
        sp_log_warn("test", "line %d", i);
    assert_int_equal(lines, 0);
    uint32_t ticket = sp_log_queue_open();
    for (int i = 0; i < SP_LOG_QUEUE_LINES; i++) {
        assert_true(sp_log_queue_take(ticket, &line));
        snprintf(last, sizeof last, "test: line %d", i);
        assert_string_equal(line.text, last);
    }
    assert_true(sp_log_queue_take(ticket, &line));
    assert_int_equal(line.level, SPANPROF_LOG_WARN);
    assert_non_null(strstr(line.text, "3 messages were dropped"));
    assert_false(sp_log_queue_close()); /* it has this line still */
    assert_false(sp_log_queue_take(ticket, &line));
}

static void log_without_a_thread_is_delivered_where_it_settles(void **state)
{
    (void)state;
    lines = 0;
    sp_log_configure_queued(SPANPROF_LOG_WARN, keep, &lines);
    sp_log_warn("test", "first");
    sp_log_warn("test", "second");
    assert_int_equal(lines, 0);
    sp_log_settle(0);
    assert_int_equal(lines, 2);
    assert_string_equal(last, "test: second");
}

/* --- another function while threads log ------------------------------------------------------- */

enum { CHANGES = 50000 };

static int first_user, second_user; /* what each function is configured with */
static _Atomic int heard, mixed;
static _Atomic bool ends;

static void hear(const void *user, const void *own)
{
    atomic_fetch_add(&heard, 1);
    if (user != own)
        atomic_fetch_add(&mixed, 1);
}

static void hear_first(spanprof_log_level level, const char *line, void *user)
{
    (void)level;
    (void)line;
    hear(user, &first_user);
}

static void hear_second(spanprof_log_level level, const char *line, void *user)
{
    (void)level;
    (void)line;
    hear(user, &second_user);
}

/* As threads do that take lines from the queue, and as threads do while there is no queue. */
static void *log_on(void *delivers)
{
    while (!atomic_load(&ends))
        if (delivers)
            sp_log_deliver(SPANPROF_LOG_WARN, "test: a line");
        else
            sp_log_warn("test", "a line");
    return NULL;
}

static void log_function_changes_while_threads_log_each_gets_its_own_user(void **state)
{
    (void)state;
    pthread_t threads[2];
    sp_log_configure(SPANPROF_LOG_WARN, hear_first, &first_user);
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, log_on, i ? &ends : NULL), 0);
    for (int i = 0; i < CHANGES || atomic_load(&heard) < CHANGES; i++) {
        sp_log_configure(SPANPROF_LOG_WARN, hear_second, &second_user);
        sp_log_configure(SPANPROF_LOG_WARN, hear_first, &first_user);
    }
    atomic_store(&ends, true);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(atomic_load(&mixed), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(log_level_decides_what_is_said),
        cmocka_unit_test(log_long_message_is_cut),
        cmocka_unit_test(log_message_has_outside_text_it_stays_one_line),
        cmocka_unit_test(log_without_sink_goes_to_standard_error),
        cmocka_unit_test(log_queue_is_full_what_was_dropped_is_said),
        cmocka_unit_test(log_without_a_thread_is_delivered_where_it_settles),
        cmocka_unit_test(log_function_changes_while_threads_log_each_gets_its_own_user),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
