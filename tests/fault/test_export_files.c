/* SPDX-License-Identifier: Apache-2.0 */
/* The exporter's files when the disk does not play along: what is in a file is whole records, the
 * rest is counted and said once. */
#include "fault/export_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static char directory[64], prefix[128], profiles_path[160], traces_path[160];

static int setup(void **state)
{
    strcpy(directory, "/tmp/spanprof-test-XXXXXX");
    assert_non_null(mkdtemp(directory));
    snprintf(prefix, sizeof prefix, "%s/out", directory);
    snprintf(profiles_path, sizeof profiles_path, "%s.profiles.jsonl", prefix);
    snprintf(traces_path, sizeof traces_path, "%s.traces.jsonl", prefix);
    fixture_setup(state);
    fixture *f = *state;
    f->config.http[SP_TRACES].enabled = f->config.http[SP_PROFILES].enabled = false;
    f->config.file_enabled = true;
    f->config.file_prefix = prefix;
    f->config.file_format = SP_OTLP_JSON;
    return 0;
}

static int teardown(void **state)
{
    fixture_teardown(state);
    unlink(profiles_path);
    unlink(traces_path);
    rmdir(directory);
    return 0;
}

static char *contents(const char *path)
{
    static char text[65536];
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    text[fread(text, 1, sizeof text - 1, file)] = 0;
    fclose(file);
    return text;
}

static void limit_file_size(rlim_t bytes)
{
    struct rlimit limit;
    getrlimit(RLIMIT_FSIZE, &limit);
    limit.rlim_cur = bytes;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

static void disk_is_full_in_a_record_file_keeps_whole_ones_and_goes_on_later(void **state)
{
    fixture *f = *state;
    fixture_start(f);
    limit_file_size(
        25); /* the third record would end at 30; SIGXFSZ is blocked in the exporter's thread */
    for (int i = 0; i < 4; i++)
        submit(f, "{\"n\":123}");
    assert_int_equal(flush(f), SPANPROF_ERROR_EXPORT);
    limit_file_size(RLIM_INFINITY);
    assert_string_equal(contents(profiles_path), "{\"n\":123}\n{\"n\":123}\n");
    submit(f, "{\"n\":456}");
    assert_int_equal(flush(f), SPANPROF_OK);
    assert_string_equal(contents(profiles_path), "{\"n\":123}\n{\"n\":123}\n{\"n\":456}\n");
    assert_int_equal(log_awaited("File too large: what does not fit is dropped and counted", 1), 1);
    assert_int_equal(log_awaited("", 1), 1);
    fixture_stop(f, PATIENCE_NS);
    assert_int_equal(f->counted.dropped_refused, 2);
    assert_int_equal(f->counted.samples, 3);
    assert_int_equal(f->counted.bytes, 30);
}

static void device_is_full_everything_is_counted(void **state)
{
    fixture *f = *state;
    if (access("/dev/full", W_OK) != 0) {
        print_message("SKIPPED: there is no /dev/full here\n");
        skip();
    }
    assert_int_equal(symlink("/dev/full", profiles_path), 0);
    fixture_start(f);
    for (int i = 0; i < 3; i++)
        submit(f, "{}");
    assert_int_equal(flush(f), SPANPROF_ERROR_EXPORT);
    assert_int_equal(log_awaited("No space left on device", 1), 1);
    fixture_stop(f, PATIENCE_NS);
    assert_int_equal(f->counted.dropped_refused, 3);
}

static void directory_is_missing_is_warned_of_and_counted(void **state)
{
    fixture *f = *state;
    char missing[160];
    snprintf(missing, sizeof missing, "%s/no/such/prefix", directory);
    f->config.file_prefix = missing;
    f->config.traces_enabled = false;
    fixture_start(f);
    assert_int_equal(log_awaited("No such file or directory: its profiles are dropped", 1), 1);
    submit(f, "{}");
    submit(f, "{}");
    assert_int_equal(flush(f), SPANPROF_ERROR_EXPORT);
    assert_int_equal(log_awaited("", 1), 1);
    fixture_stop(f, PATIENCE_NS);
    assert_int_equal(f->counted.dropped_refused, 2);
}

static void fifo_without_reader_start_does_not_wait(void **state)
{
    fixture *f = *state;
    assert_int_equal(mkfifo(profiles_path, 0600), 0);
    fixture_start(f);
    assert_int_equal(log_awaited(strerror(ENXIO), 1), 1);
    submit(f, "{}");
    fixture_stop(f, PATIENCE_NS);
    assert_int_equal(f->counted.dropped_refused, 1);
}

/* In seconds, from BEFORE_NS until now. */
static double seconds_since(uint64_t before_ns)
{
    return (double)(sp_clock_monotonic_ns() - before_ns) / SP_NS_PER_S;
}

/* More than a pipe takes at once. */
static void submit_large(fixture *f)
{
    static char text[300000];
    memset(text, 'a', sizeof text - 1);
    submit(f, text);
}

/* Its reader sleeps. Others get what is theirs meanwhile, and nothing is waited for behind the
 * deadline. */
static void fifo_is_full_stop_returns_in_time(void **state)
{
    fixture *f = *state;
    assert_int_equal(mkfifo(profiles_path, 0600), 0);
    int reader = open(profiles_path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    fixture_start(f);
    submit_large(f);
    submit(f, "{}");
    end_spans(f, "span", 1);
    uint64_t before_ns = sp_clock_monotonic_ns();
    assert_int_equal(sp_exporter_flush(f->exporter, before_ns + SP_NS_PER_S / 10),
                     SPANPROF_ERROR_TIMEOUT);
    assert_non_null(strchr(contents(traces_path), '\n'));
    assert_int_equal(fixture_stop(f, SP_NS_PER_S / 10), SPANPROF_ERROR_TIMEOUT);
    assert_true(seconds_since(before_ns) < 5);
    assert_int_equal(f->counted.dropped_unreachable, 2);
    assert_int_equal(log_awaited("stopping with 2 requests for", 1), 1);
    close(reader);
}

static void fifo_is_read_late_flush_waits_for_it(void **state)
{
    fixture *f = *state;
    static char got[300001];
    assert_int_equal(mkfifo(profiles_path, 0600), 0);
    int reader = open(profiles_path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    fixture_start(f);
    submit_large(f);
    assert_int_equal(sp_exporter_flush(f->exporter, 0), SPANPROF_ERROR_TIMEOUT);
    fcntl(reader, F_SETFL, 0);
    for (size_t length = 0; length < 300000;)
        length += (size_t)read(reader, got + length, sizeof got - length);
    assert_int_equal(flush(f), SPANPROF_OK);
    fixture_stop(f, PATIENCE_NS);
    assert_int_equal(f->counted.samples, 1);
    close(reader);
}

static void receiver_hangs_files_get_everything(void **state)
{
    fixture *f = *state;
    static const server_step step = {.kind = STEP_HANG};
    server_script(f->server, TRACES, &step, 1);
    f->config.http[SP_TRACES].enabled = true;
    f->config.batch_spans = 4;
    fixture_start(f);
    for (int i = 0; i < 3; i++) {
        end_spans(f, "span", 4);
        f->submitted++; /* two destinations */
    }
    sp_exporter_wake(f->exporter);
    while (sp_load_relaxed(&sp_exporter_counters(f->exporter)->requests) < 3)
        usleep(1000);
    submit(f, "{}");
    fixture_stop(f, 0); /* without time, yet what was submitted is in the file */
    assert_string_equal(contents(profiles_path), "{}\n");
    assert_int_equal(f->counted.spans, 12);
    assert_int_equal(f->counted.dropped_unreachable, 3);
    unsigned lines = 0;
    for (const char *c = contents(traces_path); *c; c++)
        lines += *c == '\n';
    assert_int_equal(lines, 3);
}

#define CASE(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(disk_is_full_in_a_record_file_keeps_whole_ones_and_goes_on_later),
        CASE(device_is_full_everything_is_counted),
        CASE(directory_is_missing_is_warned_of_and_counted),
        CASE(fifo_without_reader_start_does_not_wait),
        CASE(fifo_is_full_stop_returns_in_time),
        CASE(fifo_is_read_late_flush_waits_for_it),
        CASE(receiver_hangs_files_get_everything),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
