/* SPDX-License-Identifier: Apache-2.0 */
/* Moving the files of earlier runs, ended by a crash at each of its calls: the next start completes
 * it, and loses nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/run_files.h"
#include "export/export_internal.h"
#include "unit/export/crash_calls.h"

enum { RUNS = SP_RUNS_KEPT + 1, ABSENT = -1, EMPTY = -2 };

static const char *const endings[] = {"traces.jsonl", "profiles.jsonl"};

static const char *path_of(int run, int ending)
{
    static char path[128];
    if (run)
        snprintf(path, sizeof path, "%s.%d.%s", prefix, run, endings[ending]);
    else
        snprintf(path, sizeof path, "%s.%s", prefix, endings[ending]);
    return path;
}

/* RUN 0 to 3 hold 0 to 3 in both of their files. */
static void write_runs(void)
{
    for (int run = 0; run < RUNS; run++)
        for (int i = 0; i < 2; i++) {
            FILE *file = fopen(path_of(run, i), "w");
            assert_non_null(file);
            fprintf(file, "%d", run);
            fclose(file);
        }
}

/* What the file holds; ABSENT: there is none. */
static int content_of(int run, int ending)
{
    int content = ABSENT;
    FILE *file = fopen(path_of(run, ending), "r");
    if (file) {
        if (fscanf(file, "%d", &content) != 1)
            content = EMPTY;
        fclose(file);
    }
    return content;
}

static int teardown(void **state)
{
    (void)state;
    for (int run = 0; run <= RUNS; run++)
        for (int i = 0; i < 2; i++)
            unlink(path_of(run, i));
    return rmdir(directory);
}

static void keep_runs(void)
{
    if (sp_file_runs_keep(prefix) != 0)
        _exit(1);
}

static void check_moved(void)
{
    for (int i = 0; i < 2; i++) {
        assert_int_equal(content_of(0, i), -1);
        for (int run = 1; run < RUNS; run++)
            assert_int_equal(content_of(run, i), run - 1);
        assert_int_equal(content_of(RUNS, i), -1);
    }
}

static void crash_between_any_two_calls_loses_nothing(void **state)
{
    (void)state;
    int call = 0;
    for (bool crashed = true; crashed; call++) {
        write_runs();
        crashed = crash_at(call, keep_runs);
        assert_int_equal(sp_file_runs_keep(prefix), 0);
        check_moved();
    }
    assert_true(call > 2 * 2 * SP_RUNS_KEPT);
}

/* A short program has written no profile. */
static void crash_with_an_empty_file_mixes_no_runs(void **state)
{
    (void)state;
    int call = 0;
    for (bool crashed = true; crashed; call++) {
        write_runs();
        assert_int_equal(truncate(path_of(0, 1), 0), 0);
        crashed = crash_at(call, keep_runs);
        assert_int_equal(sp_file_runs_keep(prefix), 0);
        assert_int_equal(content_of(0, 0), ABSENT);
        assert_int_equal(content_of(0, 1), ABSENT);
        assert_int_equal(content_of(1, 0), 0);
        assert_int_equal(content_of(1, 1), EMPTY);
    }
}

static void file_system_without_links_gets_renames(void **state)
{
    (void)state;
    has_no_links = true;
    write_runs();
    assert_int_equal(sp_file_runs_keep(prefix), 0);
    check_moved();
}

static void free_number_ends_the_moving(void **state)
{
    (void)state;
    write_runs();
    for (int i = 0; i < 2; i++)
        assert_int_equal(unlink(path_of(2, i)), 0);
    assert_int_equal(sp_file_runs_keep(prefix), 0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(content_of(0, i), -1);
        assert_int_equal(content_of(1, i), 0);
        assert_int_equal(content_of(2, i), 1);
        assert_int_equal(content_of(3, i), 3);
    }
    assert_int_equal(log_length, 0);
}

static void next_run_says_what_becomes_of_the_one_before(void **state)
{
    (void)state;
    char kept[256], removed[256];
    snprintf(kept, sizeof kept, "%s: the run before is kept as %s.1", prefix, prefix);
    snprintf(removed, sizeof removed, "%s.%d, the oldest, is removed", prefix, SP_RUNS_KEPT);
    sp_log_configure(SPANPROF_LOG_INFO, log_line, NULL);
    write_runs();
    for (int run = 1; run < RUNS; run++)
        for (int i = 0; i < 2; i++)
            assert_int_equal(unlink(path_of(run, i)), 0);
    assert_int_equal(sp_file_runs_keep(prefix), 0);
    assert_int_equal(log_count(kept), 1);
    assert_int_equal(log_length, 1);
    capture_log(); /* warnings only, as without options */
    write_runs();
    assert_int_equal(sp_file_runs_keep(prefix), 0);
    assert_int_equal(log_count(kept), 1);
    assert_int_equal(log_count(removed), 1);
    assert_int_equal(log_length, 1);
}

#define CASE(function) cmocka_unit_test_setup_teardown(function, crash_set_up, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(crash_between_any_two_calls_loses_nothing),
        CASE(crash_with_an_empty_file_mixes_no_runs),
        CASE(file_system_without_links_gets_renames),
        CASE(free_number_ends_the_moving),
        CASE(next_run_says_what_becomes_of_the_one_before),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
