/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "export/export_internal.h"
#include "unit/export/captured_log.h"

static char directory[64], prefix[128], path[192];

static int setup(void **state)
{
    (void)state;
    capture_log();
    strcpy(directory, "/tmp/spanprof-test-XXXXXX");
    assert_non_null(mkdtemp(directory));
    snprintf(prefix, sizeof prefix, "%s/out", directory);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    unlink(path);
    return rmdir(directory);
}

static sp_export_counters counters;

static void open_file(sp_file *file, sp_telemetry_signal signal, sp_otlp_format format)
{
    sp_export_config config = {
        .file_prefix = prefix, .file_format = format, .queue_maximum_bytes = 1 << 20};
    counters = (sp_export_counters){0};
    assert_true(sp_file_init(file, &config, signal, &counters));
}

static void write_record(sp_file *file, const void *data, size_t length)
{
    sp_buffer body = SP_BUFFER_INIT(1 << 20);
    uint64_t before = counters.bytes;
    sp_buffer_add(&body, data, length);
    sp_file_write(file, &body, 1, 1);
    assert_true(counters.bytes - before > length);
    assert_true(sp_file_is_past(file, 1));
    sp_buffer_deinit(&body);
}

static void check_contents(const char *name, const void *expected, size_t length)
{
    static char got[65536];
    snprintf(path, sizeof path, "%s%s", prefix, name);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_int_equal(fread(got, 1, sizeof got, file), length);
    assert_memory_equal(got, expected, length);
    fclose(file);
}

static void json_is_one_request_a_line(void **state)
{
    (void)state;
    sp_file file;
    open_file(&file, SP_TRACES, SP_OTLP_JSON);
    write_record(&file, "{}", 2);
    write_record(&file, "{\"a\":1}", 7);
    sp_file_deinit(&file);
    check_contents(".traces.jsonl", "{}\n{\"a\":1}\n", 11);
    assert_int_equal(log_length, 0);
}

static void protobuf_is_behind_its_length_as_a_varint(void **state)
{
    (void)state;
    sp_file file;
    uint8_t record[300], expected[304];
    memset(record, 7, sizeof record);
    open_file(&file, SP_PROFILES, SP_OTLP_PROTOBUF);
    write_record(&file, "\x0a", 1);
    write_record(&file, record, sizeof record);
    sp_file_deinit(&file);
    memcpy(expected, "\x01\x0a\xac\x02", 4); /* 1, the record; 300 = 0x12c = 0b10_0101100 */
    memcpy(expected + 4, record, sizeof record);
    check_contents(".profiles.binpb", expected, sizeof expected);
}

static void file_that_has_content_is_left_as_it_is(void **state)
{
    (void)state;
    sp_file file;
    open_file(&file, SP_TRACES, SP_OTLP_JSON);
    assert_false(file.in_use);
    write_record(&file, "old", 3);
    sp_file_deinit(&file);
    open_file(&file, SP_TRACES, SP_OTLP_JSON);
    assert_true(file.in_use);
    assert_int_equal(file.fd, -1);
    sp_file_deinit(&file);
    check_contents(".traces.jsonl", "old\n", 4);
    assert_int_equal(log_length, 0);
}

static void file_is_not_inherited_by_programs_that_the_host_starts(void **state)
{
    (void)state;
    sp_file file;
    open_file(&file, SP_TRACES, SP_OTLP_JSON);
    assert_true(fcntl(file.fd, F_GETFD) & FD_CLOEXEC);
    sp_file_deinit(&file);
    check_contents(".traces.jsonl", "", 0);
}

enum { LARGE_BYTES = 1 << 19 }; /* more than a pipe takes at once, and half of what may wait */

/* A FIFO in the file's place, and its reading end. */
static int open_fifo(sp_file *file)
{
    snprintf(path, sizeof path, "%s.traces.jsonl", prefix);
    assert_int_equal(mkfifo(path, 0600), 0);
    int reader = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    assert_true(reader >= 0);
    open_file(file, SP_TRACES, SP_OTLP_JSON);
    return reader;
}

static void write_large(sp_file *file, uint64_t sequence)
{
    sp_buffer body = SP_BUFFER_INIT(LARGE_BYTES);
    assert_non_null(memset(sp_buffer_reserve(&body, LARGE_BYTES), 'x', LARGE_BYTES));
    body.length = LARGE_BYTES;
    sp_file_write(file, &body, 1, sequence);
    sp_buffer_deinit(&body);
}

static void fifo_is_full_records_wait_in_their_order(void **state)
{
    (void)state;
    static char got[LARGE_BYTES + 64];
    sp_file file;
    int reader = open_fifo(&file);
    size_t length = 0;
    write_large(&file, 1);
    assert_false(sp_file_is_past(&file, 1));
    sp_buffer small = SP_BUFFER_INIT(16);
    sp_buffer_add_string(&small, "{}");
    sp_file_write(&file, &small, 1, 2);
    while (!sp_file_is_past(&file, 2)) {
        sp_file_step(&file, 0);
        ssize_t part = read(reader, got + length, sizeof got - length);
        length += part > 0 ? (size_t)part : 0;
    }
    for (ssize_t part; (part = read(reader, got + length, sizeof got - length)) > 0;)
        length += (size_t)part;
    assert_int_equal(length, LARGE_BYTES + 4);
    assert_string_equal(got + LARGE_BYTES, "\n{}\n");
    assert_int_equal(counters.requests, 2);
    assert_int_equal(counters.bytes, length);
    assert_int_equal(log_length, 0);
    sp_buffer_deinit(&small);
    sp_file_deinit(&file);
    close(reader);
}

static void fifo_stays_full_what_waits_has_a_bound(void **state)
{
    (void)state;
    sp_file file;
    int reader = open_fifo(&file);
    for (uint64_t i = 1; i <= 4; i++)
        write_large(&file, i); /* two of them may wait */
    assert_int_equal(counters.dropped_queue_full, 2);
    sp_file_abandon(&file);
    assert_true(sp_file_is_past(&file, 4));
    assert_int_equal(counters.dropped_unreachable, 2);
    assert_int_equal(log_count("stopping with 2 requests for"), 1);
    sp_file_deinit(&file);
    close(reader);
}

/* A pipe takes a part of a record, then its reader goes away. */
static void pipe_breaks_in_a_record_nothing_more_is_written(void **state)
{
    (void)state;
    sp_file file;
    signal(SIGPIPE, SIG_IGN); /* the exporter's thread blocks it */
    int reader = open_fifo(&file);
    write_large(&file, 1);
    close(reader);
    assert_int_equal(sp_file_step(&file, 0), UINT64_MAX);
    assert_int_equal(file.fd, -1);
    write_large(&file, 2);
    assert_int_equal(counters.dropped_refused, 2);
    assert_int_equal(log_count("nothing more is written to it"), 1);
    sp_file_deinit(&file);
}

#define CASE(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(json_is_one_request_a_line),
        CASE(protobuf_is_behind_its_length_as_a_varint),
        CASE(file_that_has_content_is_left_as_it_is),
        CASE(file_is_not_inherited_by_programs_that_the_host_starts),
        CASE(fifo_is_full_records_wait_in_their_order),
        CASE(fifo_stays_full_what_waits_has_a_bound),
        CASE(pipe_breaks_in_a_record_nothing_more_is_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
