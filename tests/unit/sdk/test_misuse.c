/* SPDX-License-Identifier: Apache-2.0 */
/* Mistakes that an application makes with spans and scopes: the profile says how many, once. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include <spanprof/spanprof.h>
#include "cpu/cpu_engine.h"
#include "remove_folder.h"
#include "sdk/synthetic.h"

#define SECOND UINT64_C(1000000000)

static char said[4096]; /* the log */

static void keep_log(spanprof_log_level level, const char *line, void *user)
{
    (void)level;
    (void)user;
    size_t length = strlen(said);
    snprintf(said + length, sizeof said - length, "%s\n", line);
}

static char folder[] = "/tmp/spanprof-misuse-XXXXXX", prefix[64];

static void start(void)
{
    spanprof_options options = SPANPROF_OPTIONS_INIT;
    options.exporter = "file";
    options.file = prefix;
    options.log = keep_log;
    options.log_level = SPANPROF_LOG_WARN;
    said[0] = '\0';
    sp_sdk_use_synthetic_ticks();
    assert_int_equal(spanprof_start(&options, NULL), SPANPROF_OK);
}

/* A window becomes a profile when it has a sample. */
static void close_a_window(void)
{
    sp_engine_tick_here(1);
    assert_int_equal(spanprof_flush(60 * SECOND), SPANPROF_OK);
}

/* Requests, none of which is detached: each but the first is a child of the one before. */
static void forget_to_detach(int requests)
{
    for (int i = 0; i < requests; i++) {
        spanprof_span span = spanprof_span_start(NULL, "request", NULL);
        spanprof_span_attach(span);
        spanprof_span_end(span);
    }
}

static void use_after_the_end(void)
{
    spanprof_span span = spanprof_span_start(NULL, "ended", NULL);
    spanprof_scope scope = spanprof_span_attach(span);
    spanprof_scope again = scope;
    spanprof_scope_detach(&scope);
    spanprof_scope_detach(&again);
    spanprof_span_end(span);
    spanprof_span_end(span);
    spanprof_span_set_int(span, "late", 1);
}

static void *detach(void *scope)
{
    spanprof_scope_detach(scope);
    return NULL;
}

static void detach_elsewhere(void)
{
    pthread_t thread;
    spanprof_span span = spanprof_span_start(NULL, "moved", NULL);
    spanprof_scope scope = spanprof_span_attach(span);
    assert_int_equal(pthread_create(&thread, NULL, detach, &scope), 0);
    pthread_join(thread, NULL);
    spanprof_span_end(span);
}

/* The profiles as they were written: one line each. */
static char text[1 << 20];

static char *read_file(const char *path)
{
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    return text;
}

static char *read_profiles(void)
{
    char path[96];
    snprintf(path, sizeof path, "%s.profiles.jsonl", prefix);
    return read_file(path);
}

/* LINE says COUNT for the attribute that is KEY; 0: it says nothing of it. The attributes lie in
 * the order of the string table's keys. */
static void expect(const char *line, const char *key, unsigned count)
{
    char quoted[64], number[64];
    snprintf(quoted, sizeof quoted, "\"spanprof.misuse.%s\"", key);
    snprintf(number, sizeof number, "{\"intValue\":\"%u\"}", count);
    if (!count) {
        assert_null(strstr(line, quoted));
        return;
    }
    assert_non_null(strstr(line, quoted));
    assert_non_null(strstr(line, number));
}

static void mistakes_are_in_the_profile_of_their_window_only(void **state)
{
    (void)state;
    spanprof_stats stats = SPANPROF_STATS_INIT, before = SPANPROF_STATS_INIT;
    start();
    spanprof_stats_get(&before);
    forget_to_detach(12);
    use_after_the_end();
    detach_elsewhere();
    close_a_window();
    close_a_window();
    spanprof_stats_get(&stats);
    assert_int_equal(spanprof_stop(60 * SECOND), SPANPROF_OK);
    char *first = read_profiles(), *second = strchr(first, '\n');
    assert_non_null(second);
    *second++ = '\0';
    expect(first, "ended_parent", (unsigned)stats.misuse_ended_parent);
    expect(first, "dead_span", (unsigned)stats.misuse_dead_span);
    expect(first, "dead_scope", (unsigned)stats.misuse_dead_scope);
    expect(first, "foreign_scope", 1);
    expect(first, "fiber", 0);
    assert_true(stats.misuse_ended_parent >= 11);
    assert_int_equal(stats.misuse_dead_span, 2);
    assert_int_equal(stats.misuse_dead_scope, 1);
    assert_int_equal(stats.misuse_foreign_scope, before.misuse_foreign_scope + 1);
    assert_non_null(strstr(second, "\"profiles\""));
    assert_null(strstr(second, "spanprof.misuse."));
}

/* A request is attached on this thread, and detached and perhaps ended on another one. */
static void *end_there(void *span)
{
    spanprof_span_end(*(spanprof_span *)span);
    return NULL;
}

static void hand_over_the_scope(bool end_there_too)
{
    pthread_t thread;
    spanprof_span span = spanprof_span_start(NULL, "moved", NULL);
    spanprof_scope scope = spanprof_span_attach(span);
    assert_int_equal(pthread_create(&thread, NULL, detach, &scope), 0);
    pthread_join(thread, NULL);
    if (!end_there_too) {
        spanprof_span_end(span);
        return;
    }
    assert_int_equal(pthread_create(&thread, NULL, end_there, &span), 0);
    pthread_join(thread, NULL);
}

/* The scope is detached, so it is not forgotten: the next request is no child of this one. */
static void detach_elsewhere_is_told_as_what_it_is(void **state)
{
    (void)state;
    start();
    for (int i = 0; i < 4; i++) {
        hand_over_the_scope(i % 2);
        spanprof_span next = spanprof_span_start(NULL, "next", NULL);
        spanprof_span_end(next);
        spanprof_scope scope = spanprof_context_attach(NULL);
        spanprof_scope_detach(&scope);
    }
    spanprof_stats stats = SPANPROF_STATS_INIT;
    spanprof_stats_get(&stats);
    assert_int_equal(spanprof_stop(60 * SECOND), SPANPROF_OK);
    assert_int_equal(stats.misuse_foreign_scope, 4);
    assert_int_equal(stats.misuse_ended_parent, 0);
    char attached[64];
    snprintf(attached, sizeof attached, "that thread %d had attached", (int)getpid());
    const char *line = strstr(said, " detached a scope of span ");
    assert_non_null(line);
    assert_non_null(strstr(line, attached));
    assert_null(strstr(line + 1, " detached a scope of span ")); /* once */
    char path[96];
    snprintf(path, sizeof path, "%s.traces.jsonl", prefix);
    read_file(path);
    assert_null(strstr(text, "parentSpanId"));
}

static pthread_mutex_t jobs = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t next_job = PTHREAD_COND_INITIALIZER;
static bool jobs_are_over;

/* A worker of a pool: after its job it waits for the next one, which never comes. */
static void *work_and_forget(void *unused)
{
    forget_to_detach(1);
    pthread_mutex_lock(&jobs);
    while (!jobs_are_over)
        pthread_cond_wait(&next_job, &jobs);
    pthread_mutex_unlock(&jobs);
    return unused;
}

static uint64_t ended_parents(void)
{
    spanprof_stats stats = SPANPROF_STATS_INIT;
    spanprof_stats_get(&stats);
    return stats.misuse_ended_parent;
}

static void worker_that_waits_under_its_last_span_is_found(void **state)
{
    (void)state;
    pthread_t worker;
    start();
    uint64_t before = ended_parents();
    assert_int_equal(pthread_create(&worker, NULL, work_and_forget, NULL), 0);
    for (int i = 0; i < 12000 && ended_parents() == before; i++) /* a minute at least */
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    assert_int_equal(ended_parents(), before + 1);
    pthread_mutex_lock(&jobs);
    jobs_are_over = true;
    pthread_cond_signal(&next_job);
    pthread_mutex_unlock(&jobs);
    pthread_join(worker, NULL);
    assert_int_equal(spanprof_stop(60 * SECOND), SPANPROF_OK);
}

static int set_up(void **state)
{
    (void)state;
    if (!mkdtemp(folder))
        return -1;
    snprintf(prefix, sizeof prefix, "%s/p", folder);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    return remove_folder(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(detach_elsewhere_is_told_as_what_it_is), /* first: it is logged once */
        cmocka_unit_test(mistakes_are_in_the_profile_of_their_window_only),
        cmocka_unit_test(worker_that_waits_under_its_last_span_is_found),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
