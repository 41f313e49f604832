/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "export/internal.h"
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

static void write_record(sp_file *file, const void *data, size_t length)
{
    sp_buffer body = SP_BUFFER_INIT(1 << 20);
    uint64_t written;
    sp_buffer_add(&body, data, length);
    assert_true(sp_file_write(file, &body, &written));
    assert_true(written > length);
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
    assert_true(sp_file_init(&file, prefix, SP_TRACES, SP_OTLP_JSON));
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
    assert_true(sp_file_init(&file, prefix, SP_PROFILES, SP_OTLP_PROTOBUF));
    write_record(&file, "\x0a", 1);
    write_record(&file, record, sizeof record);
    sp_file_deinit(&file);
    memcpy(expected, "\x01\x0a\xac\x02", 4); /* 1, the record; 300 = 0x12c = 0b10_0101100 */
    memcpy(expected + 4, record, sizeof record);
    check_contents(".profiles.binpb", expected, sizeof expected);
}

static void file_that_exists_is_begun_anew(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        sp_file file;
        assert_true(sp_file_init(&file, prefix, SP_TRACES, SP_OTLP_JSON));
        write_record(&file, i ? "new" : "old and longer", i ? 3 : 14);
        sp_file_deinit(&file);
    }
    check_contents(".traces.jsonl", "new\n", 4);
}

static void file_is_not_inherited_by_programs_that_the_host_starts(void **state)
{
    (void)state;
    sp_file file;
    assert_true(sp_file_init(&file, prefix, SP_TRACES, SP_OTLP_JSON));
    assert_true(fcntl(file.fd, F_GETFD) & FD_CLOEXEC);
    sp_file_deinit(&file);
    check_contents(".traces.jsonl", "", 0);
}

/* A pipe takes a part of a record, then its reader goes away. */
static void pipe_breaks_in_a_record_nothing_more_is_written(void **state)
{
    (void)state;
    int ends[2];
    sp_buffer body = SP_BUFFER_INIT(1 << 20);
    uint64_t written;
    assert_int_equal(pipe2(ends, O_NONBLOCK), 0); /* full is an error then, after what fitted */
    assert_non_null(memset(sp_buffer_reserve(&body, 1 << 19), 'x', 1 << 19));
    body.length = 1 << 19;
    sp_file file = {.fd = ends[1], .path = strdup("a pipe"), .format = SP_OTLP_JSON};
    assert_false(sp_file_write(&file, &body, &written));
    assert_int_equal(file.fd, -1);
    assert_false(sp_file_write(&file, &body, &written));
    assert_int_equal(log_count("nothing more is written to it"), 1);
    sp_file_deinit(&file);
    sp_buffer_deinit(&body);
    close(ends[0]);
}

#define CASE(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(json_is_one_request_a_line),
        CASE(protobuf_is_behind_its_length_as_a_varint),
        CASE(file_that_exists_is_begun_anew),
        CASE(file_is_not_inherited_by_programs_that_the_host_starts),
        CASE(pipe_breaks_in_a_record_nothing_more_is_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
