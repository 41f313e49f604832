/* SPDX-License-Identifier: Apache-2.0 */
/* Files that are limited in size: each holds whole records, all of them together hold every one in
 * order, also after a crash at any call. */
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
#include "remove_folder.h"
#include "unit/export/crash_calls.h"

enum { LIMIT = 10, RECORD = 5 /* bytes of "1234\n" */ };

static sp_export_counters counters;

static const char *refused; /* no new name ends so */

/* Counted in place of the C library's, as those in crash_calls.h. */
int rename(const char *from, const char *to)
{
    count_call();
    if (!refused || strlen(to) < strlen(refused) ||
        strcmp(to + strlen(to) - strlen(refused), refused) != 0)
        return (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
    errno = EACCES;
    return -1;
}

static int setup(void **state)
{
    refused = NULL;
    return crash_set_up(state);
}

static int teardown(void **state)
{
    (void)state;
    return remove_folder(directory);
}

static void open_file(sp_file *file, uint32_t parts)
{
    sp_export_config config = {.file_prefix = prefix,
                               .file_format = SP_OTLP_JSON,
                               .queue_maximum_bytes = 1 << 20,
                               .file_maximum_bytes = LIMIT,
                               .file_maximum_parts = parts};
    counters = (sp_export_counters){0};
    assert_true(sp_file_init(file, &config, SP_TRACES, &counters));
}

static void write_text(sp_file *file, const char *text)
{
    sp_buffer body = SP_BUFFER_INIT(1 << 20);
    sp_buffer_add_string(&body, text);
    sp_file_write(file, &body, 1, 1);
    sp_buffer_deinit(&body);
}

/* The records FIRST to FIRST + COUNT - 1. */
static void write_numbers(sp_file *file, int first, int count)
{
    char text[16];
    for (int i = first; i < first + count; i++) {
        snprintf(text, sizeof text, "%04d", i);
        write_text(file, text);
    }
}

/* What PREFIX with ENDING holds; empty: there is no such file. */
static const char *content_of(const char *ending)
{
    static char text[4096];
    char path[128];
    snprintf(path, sizeof path, "%s%s", prefix, ending);
    FILE *file = fopen(path, "r");
    text[file ? fread(text, 1, sizeof text - 1, file) : 0] = 0;
    if (file)
        fclose(file);
    return text;
}

/* Check that all files of run NAME, read as they were written, hold the records 0 to COUNT - 1, in
 * which a file may be there twice. */
static void check_all(const char *name, int count)
{
    char of[96], ending[SP_RUN_FILE_ENDING], path[160];
    sp_run_files files;
    ino_t before = 0;
    int next = 0;
    snprintf(of, sizeof of, "%s%s", prefix, name);
    assert_true(sp_run_files_find(&files, of));
    for (size_t i = 0; i < files.count; i++) {
        struct stat status;
        int number;
        snprintf(path, sizeof path, "%s%s", of, sp_run_file_ending(ending, files.items[i]));
        assert_int_equal(stat(path, &status), 0);
        FILE *file = fopen(path, "r");
        assert_non_null(file);
        while (status.st_ino != before && fscanf(file, "%d\n", &number) == 1)
            assert_int_equal(number, next++);
        fclose(file);
        before = status.st_ino;
        assert_true(status.st_size <= LIMIT && status.st_size % RECORD == 0);
    }
    assert_int_equal(next, count);
    sp_run_files_deinit(&files);
}

static void full_file_is_kept_as_the_next_part(void **state)
{
    (void)state;
    sp_file file;
    open_file(&file, 0);
    write_numbers(&file, 0, 5);
    sp_file_deinit(&file);
    assert_string_equal(content_of(".traces.0001.jsonl"), "0000\n0001\n");
    assert_string_equal(content_of(".traces.0002.jsonl"), "0002\n0003\n");
    assert_string_equal(content_of(".traces.jsonl"), "0004\n");
    check_all("", 5);
    assert_int_equal(counters.requests, 5);
    assert_int_equal(counters.bytes, 5 * RECORD);
    assert_int_equal(log_length, 0);
}

static void record_above_the_limit_has_a_file_for_itself(void **state)
{
    (void)state;
    sp_file file;
    open_file(&file, 0);
    write_text(&file, "longer than a file may be");
    write_text(&file, "1");
    sp_file_deinit(&file);
    assert_string_equal(content_of(".traces.0001.jsonl"), "longer than a file may be\n");
    assert_string_equal(content_of(".traces.jsonl"), "1\n");
}

static void oldest_parts_are_removed_beyond_the_number(void **state)
{
    (void)state;
    sp_file file;
    open_file(&file, 3);
    write_numbers(&file, 0, 9);
    sp_file_deinit(&file);
    assert_string_equal(content_of(".traces.0001.jsonl"), "");
    assert_string_equal(content_of(".traces.0002.jsonl"), "");
    assert_string_equal(content_of(".traces.0003.jsonl"), "0004\n0005\n");
    assert_string_equal(content_of(".traces.0004.jsonl"), "0006\n0007\n");
    assert_string_equal(content_of(".traces.jsonl"), "0008\n");
}

static void next_run_keeps_all_parts_of_the_run_before(void **state)
{
    (void)state;
    sp_file file;
    open_file(&file, 0);
    write_numbers(&file, 0, 5);
    sp_file_deinit(&file);
    assert_int_equal(sp_file_runs_keep(prefix), 0);
    check_all(".1", 5);
    open_file(&file, 0);
    write_numbers(&file, 0, 3);
    sp_file_deinit(&file);
    check_all("", 3);
    check_all(".1", 5);
}

static void fifth_run_removes_all_parts_of_the_first(void **state)
{
    (void)state;
    sp_file file;
    for (int run = 0; run < 5; run++) {
        assert_int_equal(sp_file_runs_keep(prefix), 0);
        open_file(&file, 0);
        write_numbers(&file, 0, 9 - run);
        sp_file_deinit(&file);
    }
    check_all("", 5);
    check_all(".3", 8);
    check_all(".4", 0);
}

static void name_that_is_taken_is_left_alone(void **state)
{
    (void)state;
    sp_file file;
    char path[128];
    snprintf(path, sizeof path, "%s.traces.0001.jsonl", prefix);
    FILE *other = fopen(path, "w");
    assert_non_null(other);
    fputs("theirs", other);
    fclose(other);
    open_file(&file, 0);
    write_numbers(&file, 0, 3);
    sp_file_deinit(&file);
    assert_string_equal(content_of(".traces.0001.jsonl"), "theirs");
    assert_string_equal(content_of(".traces.0002.jsonl"), "0000\n0001\n");
}

static void file_system_without_links_gets_renames(void **state)
{
    (void)state;
    sp_file file;
    has_no_links = true;
    open_file(&file, 0);
    write_numbers(&file, 0, 5);
    sp_file_deinit(&file);
    check_all("", 5);
}

/* With and without links: the full file keeps its name, and takes what comes. */
static void no_new_file_the_full_one_grows_and_it_is_said_once(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        sp_file file;
        has_no_links = i == 1;
        open_file(&file, 0);
        refused = has_no_links ? ".0001.jsonl" : ".traces.jsonl";
        write_numbers(&file, 0, 6);
        sp_file_deinit(&file);
        refused = NULL;
        assert_string_equal(content_of(".traces.jsonl"), "0000\n0001\n0002\n0003\n0004\n0005\n");
        assert_string_equal(content_of(".traces.0001.jsonl"), "");
        assert_string_equal(content_of(".traces.jsonl.new"), "");
        assert_int_equal(counters.requests, 6);
        assert_int_equal(log_count("no new file can be begun: Permission denied"), 1);
        log_length = 0;
        assert_int_equal(remove_folder(directory), 0);
        assert_int_equal(mkdir(directory, 0700), 0);
    }
}

static void write_nine(void)
{
    sp_file file;
    open_file(&file, 0);
    write_numbers(&file, 0, 9);
}

/* At call number CALL all records before it are there: two in each part. One rotation is two calls.
 */
static void crash_at_any_call_leaves_every_record_written(void **state)
{
    (void)state;
    int call = 0;
    for (bool crashed = true; crashed; call++) {
        crashed = crash_at(call, write_nine);
        int rotations = call == 0 ? 0 : (call - 1) / 2;
        int written = !crashed ? 9 : call == 0 ? 0 : 2 * (rotations + 1);
        check_all("", written);
        assert_int_equal(sp_file_runs_keep(prefix), 0);
        sp_file file;
        open_file(&file, 0); /* and nothing of the crash is left */
        sp_file_deinit(&file);
        assert_string_equal(content_of(".traces.jsonl"), "");
        check_all(".1", written);
        char path[128];
        snprintf(path, sizeof path, "%s.traces.jsonl.new", prefix);
        assert_int_equal(access(path, F_OK), -1);
        assert_int_equal(remove_folder(directory), 0);
        assert_int_equal(mkdir(directory, 0700), 0);
    }
    assert_true(call > 4 * 2);
}

#define CASE(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(full_file_is_kept_as_the_next_part),
        CASE(record_above_the_limit_has_a_file_for_itself),
        CASE(oldest_parts_are_removed_beyond_the_number),
        CASE(next_run_keeps_all_parts_of_the_run_before),
        CASE(fifth_run_removes_all_parts_of_the_first),
        CASE(name_that_is_taken_is_left_alone),
        CASE(file_system_without_links_gets_renames),
        CASE(no_new_file_the_full_one_grows_and_it_is_said_once),
        CASE(crash_at_any_call_leaves_every_record_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
