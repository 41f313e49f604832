/* SPDX-License-Identifier: Apache-2.0 */
/* The exporter with a spool: what cannot be sent is kept, survives the exporter, arrives in order,
 * and is counted once. That the counts add up is checked by each fixture_stop. */
#include "fault/export_fixture.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "export/export_internal.h"
#include "remove_folder.h"

/* Under a sanitizer each takes many times as long. */
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
enum { REQUESTS = 500 };
#else
enum { REQUESTS = 2500 };
#endif
enum { HEAD_BYTES = 32 };

/* Steps for as many attempts as one request has before it is put off. */
#define ALL_ATTEMPTS(step) step, step, step, step, step

static char directory[64];

static int set_up(void **state, int (*fixture)(void **))
{
    strcpy(directory, "/tmp/spanprof-test-XXXXXX");
    assert_non_null(mkdtemp(directory));
    return fixture(state);
}

static void configure(fixture *f)
{
    f->config.spool = directory;
    f->config.http[SP_PROFILES].gzip = f->config.http[SP_TRACES].gzip = false;
}

static int setup_absent(void **state)
{
    set_up(state, fixture_setup_absent);
    configure(*state);
    return 0;
}

static int setup(void **state)
{
    set_up(state, fixture_setup);
    configure(*state);
    return 0;
}

/* Call CALL for each request in the spool. Returns how many there are. */
static unsigned for_each_kept(void (*call)(const char *path))
{
    unsigned count = 0;
    DIR *folders = opendir(directory);
    for (struct dirent *folder; (folder = readdir(folders));) {
        char path[PATH_MAX];
        snprintf(path, sizeof path, "%s/%s", directory, folder->d_name);
        DIR *files = folder->d_name[0] == '.' ? NULL : opendir(path);
        for (struct dirent *file; files && (file = readdir(files));) {
            if (!strstr(file->d_name, ".profiles") && !strstr(file->d_name, ".traces"))
                continue;
            snprintf(path, sizeof path, "%s/%s/%s", directory, folder->d_name, file->d_name);
            count++;
            if (call)
                call(path);
        }
        if (files)
            closedir(files);
    }
    closedir(folders);
    return count;
}

static void remove_one(const char *path)
{
    assert_int_equal(unlink(path), 0);
}

static int teardown(void **state)
{
    fixture_teardown(state);
    return remove_folder(directory);
}

static void submit_numbers(fixture *f, unsigned first, unsigned count)
{
    char text[24];
    for (unsigned i = first; i < first + count; i++) {
        snprintf(text, sizeof text, "profile %02u", i);
        assert_true(submit(f, text));
    }
}

/* The receiver got the profiles 0 to COUNT - 1, in this order, and nothing else. */
static void assert_arrived(fixture *f, unsigned count)
{
    char text[24];
    assert_int_equal(server_count(f->server, PROFILES), count);
    for (unsigned i = 0; i < count; i++) {
        snprintf(text, sizeof text, "profile %02u", i);
        assert_string_equal(server_get(f->server, PROFILES, i)->body, text);
    }
}

static uint64_t spooled(fixture *f)
{
    return sp_load_relaxed(&sp_exporter_counters(f->exporter)->spooled);
}

static size_t in_memory(fixture *f)
{
    return atomic_load(&f->exporter->senders[SP_PROFILES].allowance.used_bytes);
}

static void wait_for_memory(fixture *f, uint64_t files, size_t bytes)
{
    while (spooled(f) != files || in_memory(f) != bytes)
        usleep(1000);
}

/* So that what happens before the first pause ends can be looked at. */
static void submit_while_time_stands(fixture *f, unsigned count)
{
    hold_time(f);
    fixture_start(f);
    submit_numbers(f, 0, count);
}

/* What was submitted arrives, and the exporter ends. */
static void end_outage(fixture *f)
{
    server_listen(f->server);
    skip_time(f);
    assert_int_equal(flush(f), SPANPROF_OK);
    fixture_stop(f, PATIENCE_NS);
}

/* A new exporter in F, as the next process has it. */
static void start_next(fixture *f)
{
    f->submitted = 0;
    fixture_start(f);
}

/* By a new exporter, with a receiver that is there. */
static void send_what_is_left(fixture *f)
{
    server_listen(f->server);
    start_next(f);
    assert_int_equal(flush(f), SPANPROF_OK);
    fixture_stop(f, PATIENCE_NS);
}

/* ---- The receiver is away ---- */

static void absent_receiver_comes_back_all_arrives_in_order(void **state)
{
    fixture *f = *state;
    submit_while_time_stands(f, 5);
    skip_time(f);
    assert_int_equal(flush(f), SPANPROF_OK); /* all of it is safe */
    assert_int_equal(spooled(f), 5);
    assert_int_equal(for_each_kept(NULL), 5);
    assert_int_equal(in_memory(f), 0);
    submit_numbers(f, 5, 3);
    assert_int_equal(flush(f), SPANPROF_OK);
    server_listen(f->server);
    server_wait(f->server, PROFILES, 8);
    assert_int_equal(fixture_stop(f, PATIENCE_NS), SPANPROF_OK);
    assert_arrived(f, 8);
    assert_true(log_count("Connection refused") >= 1);
    assert_int_equal(f->counted.requests, 8);
    assert_int_equal(f->counted.samples, 8);
    assert_int_equal(f->counted.spooled, 0);
    assert_int_equal(for_each_kept(NULL), 0);
}

static void receiver_is_away_for_ten_minutes_all_arrives_in_order(void **state)
{
    fixture *f = *state;
    unsigned count = 0;
    hold_time(f);
    skip_time(f);
    fixture_start(f);
    uint64_t begin_ns = sp_clock_monotonic_ns();
    while (sp_clock_monotonic_ns() - begin_ns < 600 * SP_NS_PER_S) {
        if (count < SERVER_REQUESTS)
            submit_numbers(f, count++, 1);
        usleep(1000);
    }
    assert_true(log_count("Connection refused") <= 12); /* said by one line a minute */
    server_listen(f->server);
    server_wait(f->server, PROFILES, count);
    assert_int_equal(fixture_stop(f, PATIENCE_NS), SPANPROF_OK);
    assert_arrived(f, count);
    assert_int_equal(f->counted.requests, count);
    assert_int_equal(for_each_kept(NULL), 0);
}

static void stop_leaves_what_the_next_exporter_sends_first(void **state)
{
    fixture *f = *state;
    fixture_start(f);
    submit_numbers(f, 0, 3);
    end_spans(f, "span", 2);
    assert_int_equal(fixture_stop(f, PATIENCE_NS), SPANPROF_OK);
    assert_int_equal(f->counted.spooled, 4);
    assert_int_equal(for_each_kept(NULL), 4);
    assert_int_equal(log_count("stopping with 3 requests for"), 1);
    assert_int_equal(log_count("sent by the next start"), 2);
    server_listen(f->server);
    start_next(f);
    submit_numbers(f, 3, 2);
    assert_int_equal(flush(f), SPANPROF_OK);
    assert_int_equal(fixture_stop(f, PATIENCE_NS), SPANPROF_OK);
    assert_arrived(f, 5);
    assert_int_equal(f->counted.taken_over, 4);
    assert_int_equal(f->counted.requests, 6);
    assert_int_equal(f->counted.spans, 2);
    assert_int_equal(f->counted.samples, 5);
    assert_int_equal(for_each_kept(NULL), 0);
}

/* Many stops in which the receiver is away: nothing is lost or doubled, and each start finds it
 * all. */
static void stops_in_succession_keep_all(void **state)
{
    fixture *f = *state;
    for (unsigned i = 0; i < 4; i++) {
        start_next(f);
        submit_numbers(f, 2 * i, 2);
        fixture_stop(f, PATIENCE_NS);
        assert_int_equal(f->counted.taken_over, 2 * i);
        assert_int_equal(f->counted.spooled, 2 * i + 2);
    }
    send_what_is_left(f);
    assert_arrived(f, 8);
}

static void stop_without_time_leaves_all(void **state)
{
    fixture *f = *state;
    static const server_step step = {.kind = STEP_HANG};
    server_script(f->server, PROFILES, &step, 1);
    fixture_start(f);
    submit_numbers(f, 0, 3);
    server_wait(f->server, PROFILES, 1);
    while (spooled(f) != 3)
        usleep(1000);
    fixture_stop(f, 0);
    assert_int_equal(f->counted.spooled, 3);
    assert_int_equal(for_each_kept(NULL), 3);
}

static void grpc_leaves_what_http_sends(void **state)
{
    fixture *f = *state;
    f->config.http[SP_PROFILES].protocol = SP_PROTOCOL_GRPC;
    f->exporter = sp_exporter_create(&f->config, &f->resource, NULL);
    if (!f->exporter)
        skip(); /* libcurl without HTTP/2 */
    submit_numbers(f, 0, 2);
    fixture_stop(f, PATIENCE_NS);
    assert_int_equal(f->counted.spooled, 2);
    f->config.http[SP_PROFILES].protocol = SP_PROTOCOL_HTTP_PROTOBUF;
    send_what_is_left(f);
    assert_arrived(f, 2); /* without gRPC's prefix */
}

static void json_is_left_by_an_exporter_of_protobuf(void **state)
{
    fixture *f = *state;
    f->config.http[SP_PROFILES].protocol = SP_PROTOCOL_HTTP_JSON;
    fixture_start(f);
    submit_numbers(f, 0, 1);
    fixture_stop(f, PATIENCE_NS);
    f->config.http[SP_PROFILES].protocol = SP_PROTOCOL_HTTP_PROTOBUF;
    send_what_is_left(f);
    assert_int_equal(f->counted.taken_over, 0);
    assert_int_equal(log_count("1 request there in another format"), 1);
    assert_int_equal(for_each_kept(NULL), 1);
}

/* ---- The receiver answers, or not ---- */

static void connections_closed_the_same_bytes_come_again(void **state)
{
    fixture *f = *state;
    static const server_step steps[] = {ALL_ATTEMPTS({.kind = STEP_CLOSE}), {.kind = STEP_ANSWER}};
    server_script(f->server, PROFILES, steps, 6);
    f->config.http[SP_PROFILES].gzip = true;
    hold_time(f);
    fixture_start(f);
    submit(f, "profile profile profile");
    skip_time(f);
    server_wait(f->server, PROFILES, 6); /* the last from the file */
    assert_int_equal(fixture_stop(f, PATIENCE_NS), SPANPROF_OK);
    const server_request *first = server_get(f->server, PROFILES, 0);
    for (size_t i = 1; i < 6; i++) {
        const server_request *next = server_get(f->server, PROFILES, i);
        assert_int_equal(next->body_length, first->body_length);
        assert_memory_equal(next->body, first->body, first->body_length);
        assert_string_equal(next->head, first->head);
    }
    assert_int_equal(f->counted.requests, 1);
    assert_int_equal(f->counted.bytes, first->body_length);
}

static void refused_request_is_dropped_and_its_file_removed(void **state)
{
    fixture *f = *state;
    static const server_step steps[] = {{.status = 400}, {.status = 200}};
    server_script(f->server, PROFILES, steps, 2);
    fixture_start(f);
    submit_numbers(f, 0, 2);
    assert_int_equal(flush(f), SPANPROF_ERROR_EXPORT);
    assert_int_equal(for_each_kept(NULL), 0);
    fixture_stop(f, PATIENCE_NS);
    assert_int_equal(f->counted.dropped_refused, 1);
    assert_int_equal(f->counted.requests, 1);
    assert_arrived(f, 2);
}

static void refused_after_an_outage_flush_waits_for_the_next_request(void **state)
{
    fixture *f = *state;
    static const server_step steps[] = {
        ALL_ATTEMPTS({.kind = STEP_CLOSE}), {.status = 400}, {.kind = STEP_HANG}};
    server_script(f->server, PROFILES, steps, 7);
    submit_while_time_stands(f, 2);
    skip_time(f);
    server_wait(f->server, PROFILES, 7);
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    uint64_t soon = (uint64_t)now.tv_sec * SP_NS_PER_S + (uint64_t)now.tv_nsec + SP_NS_PER_S / 5;
    assert_int_equal(sp_exporter_flush(f->exporter, soon), SPANPROF_ERROR_TIMEOUT);
    fixture_stop(f, 0);
    assert_int_equal(f->counted.dropped_refused, 1);
    assert_int_equal(f->counted.spooled, 1);
}

static void retry_after_is_kept_when_the_attempts_are_over(void **state)
{
    fixture *f = *state;
    enum { ASKED_S = 200, ATTEMPTS = 7 };
    static const server_step busy = {.status = 503, .headers = "Retry-After: 200\r\n"};
    static server_step steps[ATTEMPTS];
    for (int i = 0; i < ATTEMPTS - 1; i++)
        steps[i] = busy;
    server_script(f->server, PROFILES, steps, ATTEMPTS);
    submit_while_time_stands(f, 1);
    skip_time(f);
    server_wait(f->server, PROFILES, ATTEMPTS);
    for (size_t i = 1; i < ATTEMPTS; i++) {
        uint64_t before_ns = server_get(f->server, PROFILES, i - 1)->time_ns;
        assert_true(server_get(f->server, PROFILES, i)->time_ns - before_ns >=
                    ASKED_S * SP_NS_PER_S);
    }
    assert_int_equal(fixture_stop(f, PATIENCE_NS), SPANPROF_OK);
    assert_int_equal(f->counted.requests, 1);
}

/* It is safe, and is not waited for before the receiver wants it. */
static void flush_before_retry_after_is_over_returns_at_once(void **state)
{
    fixture *f = *state;
    static const server_step steps[] = {{.status = 503, .headers = "Retry-After: 200\r\n"},
                                        {.status = 200}};
    server_script(f->server, PROFILES, steps, 2);
    submit_while_time_stands(f, 2);
    uint64_t soon_ns = sp_clock_monotonic_ns() + 100 * SP_NS_PER_S;
    assert_int_equal(sp_exporter_flush(f->exporter, soon_ns), SPANPROF_OK);
    assert_int_equal(spooled(f), 2);
    assert_int_equal(server_count(f->server, PROFILES), 1);
    skip_time(f);
    uint64_t late_ns = sp_clock_monotonic_ns() + 300 * SP_NS_PER_S;
    assert_int_equal(sp_exporter_flush(f->exporter, late_ns), SPANPROF_OK);
    fixture_stop(f, PATIENCE_NS);
    assert_int_equal(f->counted.requests, 2);
}

static void stop_before_retry_after_is_over_leaves_all(void **state)
{
    fixture *f = *state;
    static const server_step busy = {.status = 503, .headers = "Retry-After: 200\r\n"};
    server_script(f->server, PROFILES, &busy, 1);
    fixture_start(f);
    submit_numbers(f, 0, 2);
    server_wait(f->server, PROFILES, 1);
    fixture_stop(f, 100 * SP_NS_PER_S);
    assert_int_equal(f->counted.spooled, 2);
    assert_int_equal(server_count(f->server, PROFILES), 1);
}

/* ---- Bounds and losses ---- */

static void many_requests_wait_without_memory(void **state)
{
    fixture *f = *state;
    enum { BODY_BYTES = 1000, MOST_IN_MEMORY = 32 };
    char text[BODY_BYTES + 1];
    memset(text, 'x', BODY_BYTES);
    text[BODY_BYTES] = 0;
    f->config.queue_maximum_bytes = MOST_IN_MEMORY * BODY_BYTES;
    hold_time(f);
    fixture_start(f);
    for (unsigned i = 0; i < REQUESTS; i++) {
        while (in_memory(f) > (MOST_IN_MEMORY - 1) * BODY_BYTES)
            usleep(100);
        assert_true(submit(f, text));
    }
    wait_for_memory(f, REQUESTS, 0);
    fixture_stop(f, PATIENCE_NS);
    assert_int_equal(f->counted.spooled, REQUESTS);
    assert_int_equal(for_each_kept(NULL), REQUESTS);
    send_what_is_left(f);
    assert_int_equal(f->counted.requests, REQUESTS);
    assert_int_equal(for_each_kept(NULL), 0);
}

static void spool_full_the_rest_waits_in_memory(void **state)
{
    fixture *f = *state;
    f->config.spool_maximum_bytes = 2 * (HEAD_BYTES + sizeof "profile 00" - 1);
    submit_while_time_stands(f, 5);
    wait_for_memory(f, 2, 3 * (sizeof "profile 00" - 1));
    end_outage(f);
    assert_int_equal(log_count("the spool is full: it waits in memory"), 1);
    assert_arrived(f, 5);
    assert_int_equal(f->counted.requests, 5);
}

static void spool_full_stop_leaves_files_and_drops_the_rest(void **state)
{
    fixture *f = *state;
    f->config.spool_maximum_bytes = 2 * (HEAD_BYTES + sizeof "profile 00" - 1);
    submit_while_time_stands(f, 5);
    wait_for_memory(f, 2, 3 * (sizeof "profile 00" - 1));
    assert_int_equal(fixture_stop(f, PATIENCE_NS), SPANPROF_ERROR_EXPORT);
    assert_int_equal(f->counted.spooled, 2);
    assert_int_equal(f->counted.dropped_unreachable, 3);
    assert_int_equal(for_each_kept(NULL), 2);
}

static void files_removed_while_they_wait_are_counted(void **state)
{
    fixture *f = *state;
    submit_while_time_stands(f, 3);
    skip_time(f);
    assert_int_equal(flush(f), SPANPROF_OK);
    for_each_kept(remove_one);
    server_listen(f->server);
    while (sp_load_relaxed(&sp_exporter_counters(f->exporter)->requests) +
               sp_load_relaxed(&sp_exporter_counters(f->exporter)->dropped_spool) !=
           3)
        usleep(1000);
    assert_int_equal(flush(f), SPANPROF_ERROR_EXPORT);
    assert_int_equal(log_count("is gone or not whole: dropped and counted"), 1);
    fixture_stop(f, PATIENCE_NS);
    /* The first may have been on its way. */
    assert_true(f->counted.dropped_spool >= 2);
    assert_int_equal(f->counted.spooled, 0);
}

static void truncate_one(const char *path)
{
    assert_int_equal(truncate(path, HEAD_BYTES), 0);
}

static void files_torn_between_two_starts_are_counted(void **state)
{
    fixture *f = *state;
    fixture_start(f);
    submit_numbers(f, 0, 3);
    fixture_stop(f, PATIENCE_NS);
    for_each_kept(truncate_one);
    server_listen(f->server);
    start_next(f);
    submit_numbers(f, 0, 1);
    assert_int_equal(flush(f), SPANPROF_ERROR_EXPORT);
    fixture_stop(f, PATIENCE_NS);
    assert_arrived(f, 1);
    assert_int_equal(f->counted.taken_over, 3);
    assert_int_equal(f->counted.dropped_spool, 3);
    assert_int_equal(for_each_kept(NULL), 0);
}

static void folder_removed_requests_wait_in_memory(void **state)
{
    fixture *f = *state;
    hold_time(f);
    fixture_start(f);
    char *folder = strdup(f->exporter->spool.folder);
    assert_int_equal(remove_folder(folder), 0);
    free(folder);
    submit_numbers(f, 0, 2);
    wait_for_memory(f, 0, 2 * (sizeof "profile 00" - 1));
    end_outage(f);
    assert_int_equal(log_count("No such file or directory: it waits in memory"), 1);
    assert_arrived(f, 2);
}

static void unusable_spool_requests_are_sent_without(void **state)
{
    fixture *f = *state;
    f->config.spool = (char[]){"/dev/null"};
    fixture_start(f);
    submit_numbers(f, 0, 2);
    assert_int_equal(flush(f), SPANPROF_OK);
    fixture_stop(f, PATIENCE_NS);
    assert_int_equal(log_count("SPANPROF_SPOOL=/dev/null: Not a directory"), 1);
    assert_arrived(f, 2);
}

#define CASE(function)   cmocka_unit_test_setup_teardown(function, setup, teardown)
#define ABSENT(function) cmocka_unit_test_setup_teardown(function, setup_absent, teardown)

int main(void)
{
    alarm(540);
    const struct CMUnitTest tests[] = {
        ABSENT(absent_receiver_comes_back_all_arrives_in_order),
        ABSENT(receiver_is_away_for_ten_minutes_all_arrives_in_order),
        ABSENT(stop_leaves_what_the_next_exporter_sends_first),
        ABSENT(stops_in_succession_keep_all),
        CASE(stop_without_time_leaves_all),
        ABSENT(grpc_leaves_what_http_sends),
        ABSENT(json_is_left_by_an_exporter_of_protobuf),
        CASE(connections_closed_the_same_bytes_come_again),
        CASE(refused_request_is_dropped_and_its_file_removed),
        CASE(refused_after_an_outage_flush_waits_for_the_next_request),
        CASE(retry_after_is_kept_when_the_attempts_are_over),
        CASE(flush_before_retry_after_is_over_returns_at_once),
        CASE(stop_before_retry_after_is_over_leaves_all),
        ABSENT(many_requests_wait_without_memory),
        ABSENT(spool_full_the_rest_waits_in_memory),
        ABSENT(spool_full_stop_leaves_files_and_drops_the_rest),
        ABSENT(files_removed_while_they_wait_are_counted),
        ABSENT(files_torn_between_two_starts_are_counted),
        ABSENT(folder_removed_requests_wait_in_memory),
        CASE(unusable_spool_requests_are_sent_without),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
