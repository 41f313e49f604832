/* SPDX-License-Identifier: Apache-2.0 */
/* The exporter against receivers that answer, in all the ways they do. Every case ends with the
 * balance of fixture_stop: each request is delivered or dropped for one counted reason. */
#include "fault/export_fixture.h"

#include <dirent.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <spanprof/tracer.h>
#include "proto/profiles_service.pb-c.h"
#include "proto/rpc_status.pb-c.h"
#include "proto/trace_service.pb-c.h"

#define SCRIPT(f, path, ...)                                                                       \
    static const server_step steps_[] = {__VA_ARGS__};                                             \
    server_script((f)->server, path, steps_, sizeof steps_ / sizeof *steps_)

static void receiver_accepts_what_was_submitted_arrives(void **state)
{
    fixture *f = *state;
    f->config.http[SP_PROFILES].headers = "api-key=s%20ecret,X-Empty=";
    fixture_start(f);
    end_spans(f, "GET /cart", 3);
    submit(f, "any bytes, for the exporter does not look");
    assert_int_equal(flush(f), SPANPROF_OK);

    char body[4096];
    const server_request *profile = server_get(f->server, PROFILES, 0);
    assert_memory_equal(profile->head, "POST " PROFILES " HTTP/1.1\r\n",
                        strlen("POST " PROFILES " HTTP/1.1\r\n"));
    assert_true(has_header(profile, "Content-Type: application/x-protobuf"));
    assert_true(has_header(profile, "Content-Encoding: gzip"));
    assert_true(has_header(profile, "User-Agent: spanprof-OTLP-Exporter-C/0.1.0"));
    assert_true(has_header(profile, "api-key: s ecret"));
    assert_true(has_header(profile, "X-Empty:"));
    assert_null(strstr(profile->head, "Expect"));
    gunzip(profile, body, sizeof body);
    assert_string_equal(body, "any bytes, for the exporter does not look");

    const server_request *spans = server_get(f->server, TRACES, 0);
    assert_false(has_header(spans, "api-key: s ecret"));
    size_t length = gunzip(spans, body, sizeof body);
    Sp__Collector__ExportTraceServiceRequest *request =
        sp__collector__export_trace_service_request__unpack(NULL, length, (uint8_t *)body);
    assert_non_null(request);
    assert_int_equal(request->resource_spans[0]->scope_spans[0]->n_spans, 3);
    assert_string_equal(request->resource_spans[0]->scope_spans[0]->spans[0]->name, "GET /cart");
    sp__collector__export_trace_service_request__free_unpacked(request, NULL);

    fixture_stop(f, PATIENCE_NS);
    assert_int_equal(f->counted.spans, 3);
    assert_int_equal(f->counted.samples, 1);
    assert_int_equal(f->counted.requests, 2);
    assert_int_equal(f->counted.bytes, profile->body_length + spans->body_length);
    assert_int_equal(log_count(""), 0);
}

/* How many header lines of REQUEST are the version of the profiles' format. */
static unsigned count_versions(const server_request *request)
{
    unsigned count = 0;
    const char *at = request->head;
    while ((at = strcasestr(at, "\r\nOTLP-Profiles-Development-Version:"))) {
        count++;
        at += 2;
    }
    return count;
}

/* Export once with HEADERS for both signals: profiles have the line VERSION, once, and traces have
 * none. */
static void check_version(fixture *f, char *headers, const char *version)
{
    f->config.http[SP_PROFILES].headers = headers;
    f->config.http[SP_TRACES].headers = headers;
    fixture_start(f);
    end_spans(f, "GET /cart", 1);
    submit(f, "a profile");
    assert_int_equal(flush(f), SPANPROF_OK);
    const server_request *profile = server_get(f->server, PROFILES, 0);
    assert_true(has_header(profile, version));
    assert_int_equal(count_versions(profile), 1);
    assert_int_equal(count_versions(server_get(f->server, TRACES, 0)), 0);
    if (headers) {
        assert_true(has_header(profile, "a: b"));
        assert_true(has_header(server_get(f->server, TRACES, 0), "a: b"));
    }
    fixture_stop(f, PATIENCE_NS);
}

static void protocol_json_requests_and_answers_are_json(void **state)
{
    static const char answer[] =
        "{\"partialSuccess\":{\"rejectedSpans\":\"2\",\"errorMessage\":\"names too long\"}}";
    static const server_step step = {.headers = "Content-Type: application/json\r\n",
                                     .body = answer,
                                     .body_length = sizeof answer - 1};
    fixture *f = *state;
    char body[8192];
    f->config.http[SP_TRACES].protocol = SP_PROTOCOL_HTTP_JSON;
    server_script(f->server, TRACES, &step, 1);
    fixture_start(f);
    end_spans(f, "GET /cart", 3);
    assert_int_equal(flush(f), SPANPROF_OK);
    const server_request *request = server_get(f->server, TRACES, 0);
    assert_true(has_header(request, "Content-Type: application/json"));
    gunzip(request, body, sizeof body);
    assert_memory_equal(body, "{\"resourceSpans\":[", strlen("{\"resourceSpans\":["));
    assert_non_null(strstr(body, "\"name\":\"GET /cart\""));
    fixture_stop(f, PATIENCE_NS);
    assert_int_equal(f->counted.spans, 1);
    assert_int_equal(f->counted.rejected, 2);
    assert_int_equal(log_awaited("rejected 2 of the spans: names too long", 1), 1);
}

static void protocol_json_error_is_told_in_its_words(void **state)
{
    static const char answer[] = "{\"code\":3,\"message\":\"bad index\"}";
    static const server_step step = {.status = 400,
                                     .headers = "Content-Type: application/json\r\n",
                                     .body = answer,
                                     .body_length = sizeof answer - 1};
    fixture *f = *state;
    f->config.http[SP_TRACES].protocol = SP_PROTOCOL_HTTP_JSON;
    server_script(f->server, TRACES, &step, 1);
    fixture_start(f);
    end_spans(f, "GET /cart", 3);
    flush(f);
    fixture_stop(f, PATIENCE_NS);
    assert_int_equal(f->counted.dropped_refused, 1);
    assert_int_equal(log_awaited("HTTP 400: bad index; dropped and counted", 1), 1);
}

static void profiles_have_the_version_of_their_format_once(void **state)
{
    check_version(*state, NULL, "OTLP-Profiles-Development-Version: 1");
}

static void version_among_the_headers_of_the_user_is_sent_instead(void **state)
{
    check_version(*state, "otlp-profiles-development-VERSION=2,a=b",
                  "otlp-profiles-development-VERSION: 2");
}

static void version_given_twice_is_sent_once(void **state)
{
    check_version(*state,
                  "OTLP-Profiles-Development-Version=2,a=b,otlp-profiles-development-version=3",
                  "otlp-profiles-development-version: 3");
}

static void compression_none_body_is_sent_as_it_is(void **state)
{
    fixture *f = *state;
    f->config.http[SP_PROFILES].gzip = false;
    fixture_start(f);
    submit(f, "plain");
    assert_int_equal(flush(f), SPANPROF_OK);
    const server_request *request = server_get(f->server, PROFILES, 0);
    assert_null(strstr(request->head, "Content-Encoding"));
    assert_string_equal((char *)request->body, "plain");
    fixture_stop(f, PATIENCE_NS);
}

/* A code that must not be retried, with BODY: one request, dropped as refused, and TEXT in one
 * warning. */
static void check_refused(fixture *f, const server_step *step, const char *text)
{
    server_script(f->server, PROFILES, step, 1);
    fixture_start(f);
    submit(f, "refuse me");
    assert_int_equal(flush(f), SPANPROF_ERROR_EXPORT);
    assert_int_equal(flush(f), SPANPROF_OK); /* nothing more was dropped since */
    assert_int_equal(server_count(f->server, PROFILES), 1);
    assert_int_equal(log_awaited(text, 1), 1);
    assert_int_equal(log_awaited("", 1), 1);
    fixture_stop(f, PATIENCE_NS);
    assert_int_equal(f->counted.dropped_refused, 1);
}

static void receiver_answers_400_with_status_its_words_are_logged(void **state)
{
    static uint8_t body[128];
    Sp__Rpc__Status status = SP__RPC__STATUS__INIT;
    status.message = (char *)"profile 0: sample 7: no such stack\nand more";
    size_t length = sp__rpc__status__pack(&status, body);
    server_step step = {.status = 400, .body = body, .body_length = length};
    check_refused(*state, &step, "HTTP 400: profile 0: sample 7: no such stack");
}

static void receiver_answers_400_with_broken_status_is_refused(void **state)
{
    static const server_step step = {
        .status = 400, .body = "\x12\xff\xff\xff\x7f", .body_length = 5};
    check_refused(*state, &step, "HTTP 400");
}

static void receiver_answers_413_is_not_retried(void **state)
{
    static const server_step step = {.status = 413,
                                     .headers = "Content-Type: text/plain\r\n",
                                     .body = "too\x01large\xff\n",
                                     .body_length = 11};
    check_refused(*state, &step, "HTTP 413: too?large?");
}

static void receiver_answers_500_is_not_retried(void **state)
{
    static const server_step step = {.status = 500};
    check_refused(*state, &step, "HTTP 500");
}

/* HOW the answer is written does not matter for the code. */
static void receiver_answers_with_other_codes_that_are_final(void **state)
{
    (void)state;
    static const int codes[] = {401, 403, 405, 408, 415, 422, 501, 505};
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        void *own;
        char text[32];
        server_step step = {.status = codes[i],
                            .headers = "Content-Type: text/html; charset=x\r\n",
                            .body = "<html>\x80",
                            .body_length = 7};
        snprintf(text, sizeof text, "HTTP %d", codes[i]);
        fixture_setup(&own);
        check_refused(own, &step, text);
        fixture_teardown(&own);
    }
}

static void receiver_redirects_with_any_code_it_is_not_followed(void **state)
{
    (void)state;
    static const int codes[] = {301, 302, 303, 307, 308};
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        void *own;
        server_step step = {.status = codes[i], .headers = "Location: /v2/profiles\r\n"};
        fixture_setup(&own);
        check_refused(own, &step, "/v2/profiles, which is not followed");
        fixture_teardown(&own);
    }
}

static void receiver_redirects_is_not_followed(void **state)
{
    static const server_step step = {
        .status = 307, .headers = "Location: http://u:secret@127.0.0.1:1/x?token=secret\r\n"};
    check_refused(*state, &step, "it redirects to http://***@127.0.0.1:1/x?***");
}

static void receiver_answers_without_end_is_refused(void **state)
{
    static const server_step step = {.kind = STEP_ENDLESS};
    check_refused(*state, &step, "an answer of more than 4194304 bytes");
}

static void receiver_answers_200_with_garbage_is_delivered_and_said_once(void **state)
{
    fixture *f = *state;
    SCRIPT(f, PROFILES,
           {.headers = "Content-Type: text/html\r\n", .body = "<html>", .body_length = 6});
    fixture_start(f);
    submit(f, "a");
    submit(f, "b");
    assert_int_equal(flush(f), SPANPROF_OK);
    assert_int_equal(log_awaited("an answer that no OTLP receiver sends", 1), 1);
    fixture_stop(f, PATIENCE_NS);
    assert_int_equal(f->counted.requests, 2);
}

static void receiver_has_no_profiles_is_said_once_and_traces_go_on(void **state)
{
    fixture *f = *state;
    SCRIPT(f, PROFILES, {.status = 404});
    fixture_start(f);
    for (int i = 0; i < 3; i++)
        submit(f, "profile");
    end_spans(f, "span", 1);
    assert_int_equal(flush(f), SPANPROF_ERROR_EXPORT);
    assert_int_equal(log_awaited("the receiver does not take profiles", 1), 1);
    assert_int_equal(log_awaited("", 1), 1);
    fixture_stop(f, PATIENCE_NS);
    assert_int_equal(f->counted.spans, 1);
    assert_int_equal(f->counted.dropped_refused, 3);
}

static void receiver_takes_a_part_the_rest_is_counted_and_not_sent_again(void **state)
{
    static uint8_t body[128];
    Sp__Collector__ExportTracePartialSuccess partial =
        SP__COLLECTOR__EXPORT_TRACE_PARTIAL_SUCCESS__INIT;
    Sp__Collector__ExportTraceServiceResponse response =
        SP__COLLECTOR__EXPORT_TRACE_SERVICE_RESPONSE__INIT;
    partial.rejected_spans = 2;
    partial.error_message = (char *)"names too long";
    response.partial_success = &partial;
    size_t length = sp__collector__export_trace_service_response__pack(&response, body);
    server_step step = {.body = body, .body_length = length};
    fixture *f = *state;
    server_script(f->server, TRACES, &step, 1);
    fixture_start(f);
    for (int i = 0; i < 2; i++) {
        end_spans(f, "span", 5);
        assert_int_equal(flush(f), SPANPROF_OK);
    }
    assert_int_equal(server_count(f->server, TRACES), 2);
    assert_int_equal(log_awaited("rejected 2 of the spans: names too long", 1), 1);
    fixture_stop(f, PATIENCE_NS);
    assert_int_equal(f->counted.spans, 6);
    assert_int_equal(f->counted.rejected, 4);
    assert_int_equal(f->counted.requests, 2);
}

static void receiver_is_busy_for_a_moment_same_bytes_are_sent_again_in_order(void **state)
{
    fixture *f = *state;
    SCRIPT(f, PROFILES, {.status = 503}, {.status = 200}, {.status = 200});
    hold_time(f);
    skip_time(f);
    fixture_start(f);
    submit(f, "first");
    submit(f, "second");
    assert_int_equal(flush(f), SPANPROF_OK);
    static const char *const expected[] = {"first", "first", "second"};
    assert_int_equal(server_count(f->server, PROFILES), 3);
    for (size_t i = 0; i < 3; i++) {
        char body[64];
        gunzip(server_get(f->server, PROFILES, i), body, sizeof body);
        assert_string_equal(body, expected[i]);
    }
    fixture_stop(f, PATIENCE_NS);
    assert_int_equal(f->counted.requests, 2);
}

/* Without a named wait, and with one that cannot be read. */
static void receiver_is_busy_with_each_code_it_is_tried_again(void **state)
{
    (void)state;
    static const int codes[] = {429, 502, 503, 504};
    for (size_t i = 0; i < 2 * sizeof codes / sizeof *codes; i++) {
        void *own;
        server_step steps[] = {
            {.status = codes[i / 2], .headers = i % 2 ? "Retry-After: soon\r\n" : NULL}, {0}};
        fixture_setup(&own);
        fixture *f = own;
        server_script(f->server, PROFILES, steps, 2);
        hold_time(f);
        skip_time(f);
        fixture_start(f);
        submit(f, "again");
        assert_int_equal(flush(f), SPANPROF_OK);
        assert_int_equal(server_count(f->server, PROFILES), 2);
        fixture_stop(f, PATIENCE_NS);
        assert_int_equal(f->counted.requests, 1);
        fixture_teardown(&own);
    }
}

static void receiver_names_the_wait_it_is_kept_also_beyond_the_timeout(void **state)
{
    fixture *f = *state;
    SCRIPT(f, PROFILES, {.status = 429, .headers = "Retry-After: 100\r\n"}, {.status = 200});
    f->config.http[SP_PROFILES].timeout_ms = 60000;
    hold_time(f);
    skip_time(f);
    fixture_start(f);
    submit(f, "patience");
    assert_int_equal(flush(f), SPANPROF_OK);
    uint64_t first = server_get(f->server, PROFILES, 0)->time_ns,
             second = server_get(f->server, PROFILES, 1)->time_ns;
    assert_int_equal(second - first, 100 * SP_NS_PER_S);
    fixture_stop(f, PATIENCE_NS);
    assert_int_equal(f->counted.requests, 1);
}

/* A flush that would be over before the next attempt does not wait for it, and says so. */
static void receiver_names_a_wait_beyond_the_flush_it_returns_at_once(void **state)
{
    fixture *f = *state;
    SCRIPT(f, PROFILES, {.status = 503, .headers = "Retry-After: 300\r\n"}, {.status = 200});
    hold_time(f); /* so that no pause ends */
    fixture_start(f);
    submit(f, "patience");
    uint64_t before_ns = sp_clock_monotonic_ns();
    assert_int_equal(sp_exporter_flush(f->exporter, before_ns + 299 * SP_NS_PER_S),
                     SPANPROF_ERROR_TIMEOUT);
    assert_int_equal(log_awaited("flushing: the next attempt to send to", 1), 1);
    assert_int_equal(server_count(f->server, PROFILES), 1);
    skip_time(f);
    assert_int_equal(flush(f),
                     SPANPROF_OK); /* PATIENCE_NS is as long, and more than what is left */
    fixture_stop(f, PATIENCE_NS);
    assert_int_equal(f->counted.requests, 1);
}

/* What can be delivered is waited for. */
static void one_signal_has_to_wait_flush_waits_for_the_other(void **state)
{
    fixture *f = *state;
    SCRIPT(f, PROFILES, {.status = 503, .headers = "Retry-After: 300\r\n"});
    hold_time(f);
    fixture_start(f);
    submit(f, "patience");
    server_wait(f->server, PROFILES, 1);
    end_spans(f, "span", 1);
    assert_int_equal(sp_exporter_flush(f->exporter, sp_clock_monotonic_ns() + 60 * SP_NS_PER_S),
                     SPANPROF_ERROR_TIMEOUT);
    assert_int_equal(sp_load_relaxed(&sp_exporter_counters(f->exporter)->spans), 1);
    fixture_stop(f, 0);
    assert_int_equal(f->counted.dropped_unreachable, 1);
}

/* What cannot be sent again in time is known to be lost, and is not waited for. */
static void receiver_names_a_wait_beyond_the_stop_it_is_dropped_at_once(void **state)
{
    fixture *f = *state;
    SCRIPT(f, PROFILES,
           {.status = 503,
            .headers = "Retry-After: 300\r\nContent-Type: text/plain\r\n",
            .body = "come later",
            .body_length = 10});
    fixture_start(f);
    submit(f, "first");
    submit(f, "second");
    server_wait(f->server, PROFILES, 1);
    uint64_t before_ns = sp_clock_monotonic_ns();
    assert_int_equal(fixture_stop(f, 200 * SP_NS_PER_S), SPANPROF_ERROR_EXPORT);
    assert_true(sp_clock_monotonic_ns() - before_ns < 100 * SP_NS_PER_S);
    assert_int_equal(f->counted.dropped_unreachable, 2);
    assert_int_equal(log_awaited("stopping with 2 requests", 1), 1);
    assert_int_equal(log_awaited("because the next attempt is due in", 1), 1);
    assert_int_equal(log_awaited(", and the last one ended with: HTTP 503: come later; dropped", 1),
                     1);
    assert_int_equal(server_count(f->server, PROFILES), 1);
}

/* The wait is named by the answer to a request that the stop itself has sent. */
static void receiver_names_a_wait_beyond_the_stop_during_it(void **state)
{
    fixture *f = *state;
    SCRIPT(f, TRACES, {.status = 503, .headers = "Retry-After: 300\r\n"});
    fixture_start(f);
    end_spans(f, "span", 1); /* sent by the stop: the batch is not full */
    uint64_t before_ns = sp_clock_monotonic_ns();
    assert_int_equal(fixture_stop(f, 200 * SP_NS_PER_S), SPANPROF_ERROR_EXPORT);
    assert_true(sp_clock_monotonic_ns() - before_ns < 100 * SP_NS_PER_S);
    assert_int_equal(f->counted.dropped_unreachable, 1);
    assert_int_equal(log_awaited("stopping with 1 request for", 1), 1);
}

static void receiver_resets_and_closes_connections_it_is_tried_again(void **state)
{
    fixture *f = *state;
    SCRIPT(f, PROFILES, {.kind = STEP_RESET}, {.kind = STEP_CLOSE}, {.status = 200});
    hold_time(f);
    skip_time(f);
    fixture_start(f);
    submit(f, "once more");
    assert_int_equal(flush(f), SPANPROF_OK);
    assert_int_equal(server_count(f->server, PROFILES), 3);
    assert_int_equal(log_awaited("trying again", 1), 1);
    assert_int_equal(log_awaited("delivering again", 1), 1);
    fixture_stop(f, PATIENCE_NS);
    assert_int_equal(f->counted.requests, 1);
}

/* What it had taken is not known: the same bytes come once more. */
static void receiver_resets_in_its_answer_it_is_tried_again(void **state)
{
    fixture *f = *state;
    SCRIPT(f, PROFILES, {.kind = STEP_RESET_IN_BODY, .body = "half", .body_length = 4},
           {.status = 200});
    hold_time(f);
    skip_time(f);
    fixture_start(f);
    submit(f, "once more");
    assert_int_equal(flush(f), SPANPROF_OK);
    const server_request *first = server_get(f->server, PROFILES, 0),
                         *second = server_get(f->server, PROFILES, 1);
    assert_int_equal(first->body_length, second->body_length);
    assert_memory_equal(first->body, second->body, first->body_length);
    fixture_stop(f, PATIENCE_NS);
    assert_int_equal(f->counted.requests, 1);
}

/* The body is more than the sockets hold, so that it is still being sent. */
static void receiver_resets_in_the_request_it_is_tried_again(void **state)
{
    fixture *f = *state;
    enum { BODY_BYTES = 7 << 20 };
    char *body = calloc(1, BODY_BYTES + 1);
    assert_non_null(body);
    memset(body, 'b', BODY_BYTES);
    server_reset_in_requests(f->server, 2);
    f->config.http[SP_PROFILES].gzip = false;
    hold_time(f);
    skip_time(f);
    fixture_start(f);
    submit(f, body);
    assert_int_equal(flush(f), SPANPROF_OK);
    assert_int_equal(server_resets_left(f->server), 0);
    assert_int_equal(server_count(f->server, PROFILES), 1);
    assert_int_equal(server_get(f->server, PROFILES, 0)->body_length, BODY_BYTES);
    assert_true(log_awaited("trying again", 1) >= 1);
    fixture_stop(f, PATIENCE_NS);
    assert_int_equal(f->counted.requests, 1);
    free(body);
}

static void receiver_is_always_busy_request_is_given_up_after_five_attempts(void **state)
{
    fixture *f = *state;
    SCRIPT(f, PROFILES, {.status = 502});
    hold_time(f);
    skip_time(f);
    fixture_start(f);
    submit(f, "never");
    assert_int_equal(flush(f), SPANPROF_ERROR_EXPORT);
    assert_int_equal(server_count(f->server, PROFILES), 5);
    assert_int_equal(log_awaited("HTTP 502; given up", 1), 1);
    fixture_stop(f, PATIENCE_NS);
    assert_int_equal(f->counted.dropped_unreachable, 1);
}

/* With one STEP and a timeout that is long enough to send the request, also on a busy machine:
 * given up for want of time. */
static void check_times_out(fixture *f, const server_step *step)
{
    server_script(f->server, PROFILES, step, 1);
    f->config.http[SP_PROFILES].timeout_ms = 2000;
    fixture_start(f);
    submit(f, "wait for me");
    assert_int_equal(flush(f), SPANPROF_ERROR_EXPORT);
    server_wait(f->server, PROFILES, 1); /* it may come to read it later than it was given up */
    assert_int_equal(server_count(f->server, PROFILES), 1);
    assert_int_equal(log_awaited("timed out", 1), 1);
    fixture_stop(f, PATIENCE_NS);
    assert_int_equal(f->counted.dropped_unreachable, 1);
}

static void receiver_hangs_before_the_answer_request_is_given_up(void **state)
{
    static const server_step step = {.kind = STEP_HANG};
    check_times_out(*state, &step);
}

static void receiver_hangs_in_the_answer_request_is_given_up(void **state)
{
    static const server_step step = {.kind = STEP_HANG_IN_BODY, .body = "half", .body_length = 4};
    check_times_out(*state, &step);
}

static void receiver_answers_byte_by_byte_request_is_given_up(void **state)
{
    static const server_step step = {.kind = STEP_DRIP};
    check_times_out(*state, &step);
}

static void receiver_speaks_no_http_request_is_dropped_at_once(void **state)
{
    fixture *f = *state;
    SCRIPT(f, PROFILES, {.kind = STEP_RAW, .body = "SSH-2.0-OpenSSH\r\n", .body_length = 17});
    fixture_start(f);
    submit(f, "hello?");
    assert_int_equal(flush(f), SPANPROF_ERROR_EXPORT);
    assert_int_equal(log_awaited("given up", 1), 1);
    fixture_stop(f, PATIENCE_NS);
    assert_int_equal(f->counted.dropped_unreachable, 1);
}

static void one_signal_hangs_the_other_goes_on(void **state)
{
    fixture *f = *state;
    SCRIPT(f, TRACES, {.kind = STEP_HANG});
    fixture_start(f);
    end_spans(f, "span", 1);
    assert_int_equal(sp_exporter_flush(f->exporter, sp_clock_monotonic_ns()),
                     SPANPROF_ERROR_TIMEOUT);
    server_wait(f->server, TRACES, 1);
    for (int i = 0; i < 3; i++)
        submit(f, "profile");
    while (sp_load_relaxed(&sp_exporter_counters(f->exporter)->requests) < 3)
        usleep(1000);
    fixture_stop(f, 0);
    assert_int_equal(f->counted.dropped_unreachable, 1);
    assert_int_equal(log_awaited("not delivered, because there was no answer in ", 1), 1);
}

static void queue_full_newest_is_dropped_and_counted(void **state)
{
    fixture *f = *state;
    SCRIPT(f, PROFILES, {.kind = STEP_HANG});
    f->config.queue_maximum_bytes = 1000;
    f->config.http[SP_PROFILES].gzip = false;
    fixture_start(f);
    char body[401];
    memset(body, 'x', 400);
    body[400] = 0;
    assert_true(submit(f, body));
    assert_true(submit(f, body));
    assert_false(submit(f, body));
    assert_int_equal(sp_load_relaxed(&sp_exporter_counters(f->exporter)->dropped_queue_full), 1);
    fixture_stop(f, 0);
    assert_int_equal(f->counted.dropped_unreachable, 2);
}

static void batch_is_full_it_is_sent_without_a_flush(void **state)
{
    fixture *f = *state;
    f->config.batch_spans = 4;
    fixture_start(f);
    end_spans(f, "span", 4);
    sp_exporter_wake(f->exporter);
    server_wait(f->server, TRACES, 1);
    fixture_stop(f, PATIENCE_NS);
    assert_int_equal(f->counted.spans, 4);
}

/* The simple processor: a span at a time, but those that end while the receiver has one of them
 * wait, and go together. */
static void spans_at_once_go_together_behind_one_that_waits(void **state)
{
    fixture *f = *state;
    SCRIPT(f, TRACES, {.status = 503, .headers = "Retry-After: 1\r\n"}, {.status = 200});
    f->config.spans_at_once = true;
    hold_time(f);
    fixture_start(f);
    end_spans(f, "span", 1);
    sp_exporter_wake(f->exporter);
    server_wait(f->server, TRACES, 1);
    for (int i = 0; i < 10; i++) {
        end_spans(f, "span", 1);
        sp_exporter_wake(f->exporter);
    }
    f->submitted -= 9;
    skip_time(f);
    server_wait(f->server, TRACES, 3); /* without a flush */
    assert_int_equal(flush(f), SPANPROF_OK);
    assert_int_equal(server_count(f->server, TRACES), 3);
    fixture_stop(f, PATIENCE_NS);
    assert_int_equal(f->counted.spans, 11);
}

static void delay_has_passed_spans_are_sent_without_a_flush(void **state)
{
    fixture *f = *state;
    f->config.batch_delay_ms = 50;
    fixture_start(f);
    end_spans(f, "span", 1);
    server_wait(f->server, TRACES, 1);
    fixture_stop(f, PATIENCE_NS);
    assert_int_equal(f->counted.spans, 1);
}

static void batch_is_too_large_it_is_sent_in_pieces_below_4_mib(void **state)
{
    fixture *f = *state;
    enum { SPANS = 10, VALUE_BYTES = 1 << 20 };
    char *value = calloc(1, VALUE_BYTES + 1), *body = malloc(8 << 20);
    memset(value, 'v', VALUE_BYTES);
    fixture_start(f);
    for (int i = 0; i < SPANS; i++) {
        spanprof_span span = spanprof_span_start(NULL, "large", NULL);
        spanprof_span_set_string(span, "value", value);
        spanprof_span_end(span);
    }
    assert_int_equal(flush(f), SPANPROF_OK);
    f->submitted = server_count(f->server, TRACES);
    assert_true(f->submitted > 2);
    for (size_t i = 0; i < f->submitted; i++)
        assert_in_range(gunzip(server_get(f->server, TRACES, i), body, 8 << 20), VALUE_BYTES,
                        4 << 20);
    fixture_stop(f, PATIENCE_NS);
    assert_int_equal(f->counted.spans, SPANS);
    free(value);
    free(body);
}

/* The mask of blocked signals of the thread called NAME, from the kernel. */
static uint64_t blocked_signals(const char *name)
{
    uint64_t mask = 0;
    DIR *tasks = opendir("/proc/self/task");
    for (struct dirent *task; (task = readdir(tasks));) {
        char path[300], line[256], found[64] = "";
        snprintf(path, sizeof path, "/proc/self/task/%s/status", task->d_name);
        FILE *status = fopen(path, "r");
        while (status && fgets(line, sizeof line, status)) {
            sscanf(line, "Name: %63s", found);
            if (strcmp(found, name) == 0)
                sscanf(line, "SigBlk: %" SCNx64, &mask);
        }
        if (status)
            fclose(status);
    }
    closedir(tasks);
    return mask;
}

static void thread_leaves_signals_to_the_host_but_not_its_own_faults(void **state)
{
    fixture *f = *state;
    fixture_start(f);
    assert_int_equal(flush(f),
                     SPANPROF_OK); /* the C library blocks everything until the thread runs */
    uint64_t mask = blocked_signals("spanprof-export");
    static const int blocked[] = {SIGPROF, SIGTERM, SIGINT,  SIGPIPE,
                                  SIGXFSZ, SIGUSR1, SIGCHLD, SIGALRM};
    static const int open[] = {SIGSEGV, SIGBUS, SIGABRT};
    for (size_t i = 0; i < sizeof blocked / sizeof *blocked; i++)
        assert_true(mask & UINT64_C(1) << (blocked[i] - 1));
    for (size_t i = 0; i < sizeof open / sizeof *open; i++)
        assert_false(mask & UINT64_C(1) << (open[i] - 1));
    fixture_stop(f, PATIENCE_NS);
}

static void secrets_are_sent_but_never_logged(void **state)
{
    fixture *f = *state;
    SCRIPT(f, PROFILES,
           {.status = 401,
            .headers = "Content-Type: text/plain\r\n",
            .body = "no such token: hunter2, key=t0psecret",
            .body_length = 37},
           {.kind = STEP_RESET}, {.kind = STEP_RESET}, {.status = 200});
    snprintf(f->url[SP_PROFILES], sizeof f->url[0], "http://user:passw0rd@127.0.0.1:%u" PROFILES,
             server_port(f->server));
    f->config.http[SP_PROFILES].headers = "Authorization=Bearer%20hunter2,api-key=t0psecret";
    hold_time(f);
    skip_time(f);
    fixture_start(f);
    submit(f, "a");
    submit(f, "b");
    assert_int_equal(flush(f), SPANPROF_ERROR_EXPORT);
    assert_true(has_header(server_get(f->server, PROFILES, 0), "Authorization: Bearer hunter2"));
    fixture_stop(f, PATIENCE_NS);
    assert_int_equal(log_awaited("HTTP 401", 1), 1);
    assert_int_equal(log_awaited("trying again", 1), 1);
    static const char *const secrets[] = {"hunter2", "t0psecret", "passw0rd", "user:"};
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(log_count(secrets[i]), 0);
}

/* Whether a line of the log has five bytes of TEXT in a row. */
static bool log_has_part(const char *text)
{
    char part[6] = "";
    bool found = false;
    for (; strlen(text) >= 5 && !found; text++) {
        memcpy(part, text, 5);
        found = log_count(part) != 0;
    }
    return found;
}

/* Longer than what is shown of an answer; once as it is, once with a byte that is no UTF-8, once as
 * libcurl sends the URL's. */
static void secrets_come_back_in_the_answer_no_part_is_logged(void **state)
{
    fixture *f = *state;
    static const char user[] = "dXNlcjpwYXNzdzByZA";
    static char token[600], body[1024];
    for (size_t i = 0; i < sizeof token - 1; i++)
        token[i] = (char)('A' + (i * 7 + i / 26) % 26);
    token[40] = (char)0xe9;
    int length = snprintf(body, sizeof body, "invalid token: %s, and %s==", token, user);
    static server_step step = {.status = 401, .headers = "Content-Type: text/plain\r\n"};
    step.body = body;
    step.body_length = (size_t)length;
    server_script(f->server, PROFILES, &step, 1);
    char headers[700];
    snprintf(headers, sizeof headers, "Authorization=Bearer %s", token);
    snprintf(f->url[SP_PROFILES], sizeof f->url[0], "http://user:passw0rd@127.0.0.1:%u" PROFILES,
             server_port(f->server));
    f->config.http[SP_PROFILES].headers = headers;
    fixture_start(f);
    submit(f, "a");
    assert_int_equal(flush(f), SPANPROF_ERROR_EXPORT);
    fixture_stop(f, PATIENCE_NS);
    assert_int_equal(log_awaited("HTTP 401: invalid token: ***, and ***==", 1), 1);
    assert_false(log_has_part(token) || log_has_part(user));
}

#define CASE(function) cmocka_unit_test_setup_teardown(function, fixture_setup, fixture_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(receiver_accepts_what_was_submitted_arrives),
        CASE(protocol_json_requests_and_answers_are_json),
        CASE(protocol_json_error_is_told_in_its_words),
        CASE(profiles_have_the_version_of_their_format_once),
        CASE(version_among_the_headers_of_the_user_is_sent_instead),
        CASE(version_given_twice_is_sent_once),
        CASE(compression_none_body_is_sent_as_it_is),
        CASE(receiver_answers_400_with_status_its_words_are_logged),
        CASE(receiver_answers_400_with_broken_status_is_refused),
        CASE(receiver_answers_413_is_not_retried),
        CASE(receiver_answers_500_is_not_retried),
        cmocka_unit_test(receiver_answers_with_other_codes_that_are_final),
        CASE(receiver_redirects_is_not_followed),
        cmocka_unit_test(receiver_redirects_with_any_code_it_is_not_followed),
        CASE(receiver_answers_without_end_is_refused),
        CASE(receiver_answers_200_with_garbage_is_delivered_and_said_once),
        CASE(receiver_has_no_profiles_is_said_once_and_traces_go_on),
        CASE(receiver_takes_a_part_the_rest_is_counted_and_not_sent_again),
        CASE(receiver_is_busy_for_a_moment_same_bytes_are_sent_again_in_order),
        cmocka_unit_test(receiver_is_busy_with_each_code_it_is_tried_again),
        CASE(receiver_names_the_wait_it_is_kept_also_beyond_the_timeout),
        CASE(receiver_names_a_wait_beyond_the_flush_it_returns_at_once),
        CASE(one_signal_has_to_wait_flush_waits_for_the_other),
        CASE(receiver_names_a_wait_beyond_the_stop_it_is_dropped_at_once),
        CASE(receiver_names_a_wait_beyond_the_stop_during_it),
        CASE(receiver_resets_and_closes_connections_it_is_tried_again),
        CASE(receiver_resets_in_its_answer_it_is_tried_again),
        CASE(receiver_resets_in_the_request_it_is_tried_again),
        CASE(receiver_is_always_busy_request_is_given_up_after_five_attempts),
        CASE(receiver_hangs_before_the_answer_request_is_given_up),
        CASE(receiver_hangs_in_the_answer_request_is_given_up),
        CASE(receiver_answers_byte_by_byte_request_is_given_up),
        CASE(receiver_speaks_no_http_request_is_dropped_at_once),
        CASE(one_signal_hangs_the_other_goes_on),
        CASE(queue_full_newest_is_dropped_and_counted),
        CASE(batch_is_full_it_is_sent_without_a_flush),
        CASE(spans_at_once_go_together_behind_one_that_waits),
        CASE(delay_has_passed_spans_are_sent_without_a_flush),
        CASE(batch_is_too_large_it_is_sent_in_pieces_below_4_mib),
        CASE(thread_leaves_signals_to_the_host_but_not_its_own_faults),
        CASE(secrets_are_sent_but_never_logged),
        CASE(secrets_come_back_in_the_answer_no_part_is_logged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
