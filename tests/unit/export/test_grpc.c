/* SPDX-License-Identifier: Apache-2.0 */
/* gRPC's frame and status, and answers in JSON. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "core/base64.h"
#include "export/export_internal.h"
#include "proto/rpc_status.pb-c.h"

static const sp_secrets no_secrets;
static sp_buffer room = SP_BUFFER_INIT(65536);

/* --- frames ----------------------------------------------------------------------------------- */

static void frame_has_flag_and_length_and_comes_off_again(void **state)
{
    (void)state;
    static const uint8_t wanted[] = {0, 0, 0, 1, 2};
    sp_buffer body = SP_BUFFER_INIT(258);
    for (int i = 0; i < 258; i++)
        sp_buffer_add_char(&body, (char)i);
    assert_true(sp_grpc_frame(&body, false)); /* also where the buffer was full */
    assert_int_equal(body.length, 263);
    assert_memory_equal(body.data, wanted, sizeof wanted);
    sp_answer answer = {.body = body.data, .length = body.length};
    assert_true(sp_grpc_unframe(&answer, &room));
    assert_int_equal(answer.length, 258);
    assert_int_equal(*(const uint8_t *)answer.body, 0);
    sp_buffer_deinit(&body);
}

static void frame_of_a_compressed_or_empty_body(void **state)
{
    (void)state;
    static const uint8_t wanted[] = {1, 0, 0, 0, 0};
    sp_buffer body = SP_BUFFER_INIT(10);
    assert_true(sp_grpc_frame(&body, true));
    assert_int_equal(body.length, 5);
    assert_memory_equal(body.data, wanted, sizeof wanted);
    sp_buffer_deinit(&body);
}

static void answer_that_is_compressed_is_unpacked(void **state)
{
    (void)state;
    sp_gzip gzip = {0};
    sp_buffer body = SP_BUFFER_INIT(1 << 20);
    for (int i = 0; i < 60000; i++)
        sp_buffer_add_char(&body, 'a');
    assert_true(sp_gzip_body(&gzip, &body) && sp_grpc_frame(&body, true));
    sp_answer answer = {.body = body.data, .length = body.length};
    assert_true(sp_grpc_unframe(&answer, &room));
    assert_int_equal(answer.length, 60000);
    for (size_t cut = 6; cut < body.length; cut++) { /* and less than all is nothing */
        body.data[4] = (uint8_t)(cut - 5);
        answer = (sp_answer){.body = body.data, .length = cut};
        assert_false(sp_grpc_unframe(&answer, &room));
    }
    sp_buffer_deinit(&body);
    sp_gzip_deinit(&gzip);
}

/* A bomb. */
static void answer_that_would_grow_beyond_the_bound_is_none(void **state)
{
    (void)state;
    sp_gzip gzip = {0};
    sp_buffer body = SP_BUFFER_INIT(1 << 20);
    for (int i = 0; i < 100000; i++)
        sp_buffer_add_char(&body, 0);
    assert_true(sp_gzip_body(&gzip, &body) && sp_grpc_frame(&body, true));
    sp_answer answer = {.body = body.data, .length = body.length};
    assert_false(sp_grpc_unframe(&answer, &room));
    sp_buffer_deinit(&room);
    sp_buffer_deinit(&body);
    sp_gzip_deinit(&gzip);
}

static void answer_that_is_not_one_plain_message_is_none(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t length;
        bool is_one;
    } rows[] = {{"", 0, true},
                {"\0\0\0\0\0", 5, true},
                {"\0\0\0\0\1x", 6, true},
                {"\1\0\0\0\1x", 6, false},
                {"\0\0\0\0\2x", 6, false},
                {"\0\0\0\0\0x", 6, false},
                {"\0\xff\xff\xff\xffx", 6, false},
                {"\0\0\0\0", 4, false}};
    for (size_t i = 0; i < SP_ARRAY_LENGTH(rows); i++) {
        sp_answer answer = {.body = rows[i].bytes, .length = rows[i].length};
        assert_int_equal(sp_grpc_unframe(&answer, &room), rows[i].is_one);
    }
}

/* --- status ----------------------------------------------------------------------------------- */

static void status_that_may_be_tried_again_is_the_specification_s(void **state)
{
    (void)state;
    for (uint32_t code = 0; code < 40; code++) {
        bool again = code == 1 || code == 4 || code == 10 || code == 11 || code == 14 || code == 15;
        assert_int_equal(sp_retry_grpc(code, false), again);
        assert_int_equal(sp_retry_grpc(code, true), again || code == 8);
    }
    assert_string_equal(sp_grpc_status_name(14), "UNAVAILABLE");
    assert_string_equal(sp_grpc_status_name(16), "UNAUTHENTICATED");
    assert_string_equal(sp_grpc_status_name(17), "no known status");
}

/* The details of a status with a RetryInfo, behind one of another kind. For free(). */
static char *details_with_delay(int64_t seconds, int32_t nanos)
{
    uint8_t packed_info[64], packed[256];
    Sp__Rpc__Duration delay = SP__RPC__DURATION__INIT;
    Sp__Rpc__RetryInfo info = SP__RPC__RETRY_INFO__INIT;
    Sp__Rpc__Any other = SP__RPC__ANY__INIT, any = SP__RPC__ANY__INIT, *all[] = {&other, &any};
    Sp__Rpc__Status status = SP__RPC__STATUS__INIT;
    delay.seconds = seconds;
    delay.nanos = nanos;
    info.retry_delay = &delay;
    other.type_url = (char *)"type.googleapis.com/google.rpc.BadRequest";
    any.type_url = (char *)"type.googleapis.com/google.rpc.RetryInfo";
    any.value.data = packed_info;
    any.value.len = sp__rpc__retry_info__pack(&info, packed_info);
    status.details = all;
    status.n_details = 2;
    sp_buffer text = SP_BUFFER_INIT(1024);
    sp_base64_add(&text, packed, sp__rpc__status__pack(&status, packed));
    return (char *)text.data;
}

static void retry_info_names_the_wait_up_to_a_bound(void **state)
{
    (void)state;
    static const struct {
        int64_t seconds;
        int32_t nanos;
        uint64_t wanted_ns;
    } rows[] = {{2, 500000000, 2500000000},
                {0, 0, 0},
                {-1, 0, 0},
                {0, -1, 0},
                {INT64_MAX, 999999999, SP_RETRY_AFTER_MAX_S * SP_NS_PER_S}};
    for (size_t i = 0; i < SP_ARRAY_LENGTH(rows); i++) {
        char *details = details_with_delay(rows[i].seconds, rows[i].nanos);
        uint64_t wait_ns = 99;
        assert_true(sp_grpc_retry_info(details, &wait_ns));
        assert_int_equal(wait_ns, rows[i].wanted_ns);
        details[strcspn(details, "=")] = 0; /* gRPC sends it without padding */
        assert_true(sp_grpc_retry_info(details, &wait_ns));
        free(details);
    }
}

static void details_that_are_cut_or_garbage_have_no_retry_info(void **state)
{
    (void)state;
    char *details = details_with_delay(2, 0);
    uint64_t wait_ns;
    for (size_t length = strlen(details); length-- > 0;) {
        details[length] = 0;
        sp_grpc_retry_info(details, &wait_ns); /* whatever it says: nothing is read beyond */
    }
    free(details);
    assert_false(sp_grpc_retry_info("", &wait_ns));
    assert_false(sp_grpc_retry_info("no base64!", &wait_ns));
    assert_false(sp_grpc_retry_info("////", &wait_ns));
}

static void grpc_words_are_decoded_and_clean(void **state)
{
    (void)state;
    static const char *const rows[][2] = {{NULL, ""},
                                          {"", ""},
                                          {"queue is full", "queue is full"},
                                          {"caf%C3%A9 100%25", "caf\xc3\xa9 100%"},
                                          {"broken %4", "broken %4"},
                                          {"broken %zz%", "broken %zz%"},
                                          {"esc %1b[31m", "esc ?[31m"},
                                          {"two%0Alines", "two"},
                                          {"nul %00 in it", "nul ? in it"}};
    for (size_t i = 0; i < SP_ARRAY_LENGTH(rows); i++) {
        char words[SP_ANSWER_WORDS];
        sp_answer_grpc_words(words, rows[i][0], &no_secrets);
        assert_string_equal(words, rows[i][1]);
    }
}

/* --- answers in JSON -------------------------------------------------------------------------- */

static sp_answer json(const char *text)
{
    return (sp_answer){.content_type = "application/json", .body = text, .length = strlen(text)};
}

static void json_error_shows_its_message(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"{\"code\": 3, \"message\" : \"bad \\\"index\\\"\"}", "bad \"index\""},
        {"{\"details\":[{\"message\":\"inner\"}],\"message\":\"outer\"}", "outer"},
        {"{\"message\":\"\\u00e9 \\uD83D\\uDE00 \\ud83d!\\/\"}", "\xc3\xa9 \xf0\x9f\x98\x80 ?!/"},
        {"{\"message\":7}", ""},
        {"{\"message\":\"cut", "{\"message\":\"cut"},
        {"{\"code\":", "{\"code\":"},
        {"[]", "[]"}};
    for (size_t i = 0; i < SP_ARRAY_LENGTH(rows); i++) {
        char words[SP_ANSWER_WORDS];
        sp_answer answer = json(rows[i][0]);
        sp_answer_words(words, &answer, &no_secrets);
        assert_string_equal(words, rows[i][1]);
    }
}

static void json_partial_success_is_read(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool is_one;
        uint64_t rejected;
        const char *words;
    } rows[] = {
        {"{}", true, 0, ""},
        {"{\"partialSuccess\":{}}", true, 0, ""},
        {"{\"partialSuccess\":{\"rejectedSpans\":\"3\",\"errorMessage\":\"old\"}}", true, 3, "old"},
        {"{\"x\":[{},[]],\"partialSuccess\":{\"errorMessage\":\"w\",\"rejectedSpans\":4}}", true, 4,
         "w"},
        {"{\"partialSuccess\":{\"rejectedSpans\":-4}}", true, 0, ""},
        {"{\"partialSuccess\":{\"rejectedSpans\":\"\"}}", true, 0, ""},
        {"{\"partialSuccess\":{\"rejectedSpans\":\"99999999999999999999999999\"}}", true, 0, ""},
        {"{\"partialSuccess\":null}", true, 0, ""},
        {"<html>", false, 0, ""},
    };
    for (size_t i = 0; i < SP_ARRAY_LENGTH(rows); i++) {
        char words[SP_ANSWER_WORDS];
        uint64_t rejected = 99;
        sp_answer answer = json(rows[i].text);
        assert_int_equal(sp_answer_partial(&answer, &no_secrets, SP_TRACES, &rejected, words),
                         rows[i].is_one);
        assert_int_equal(rejected, rows[i].rejected);
        assert_string_equal(words, rows[i].words);
    }
}

static void json_cut_anywhere_is_no_harm(void **state)
{
    (void)state;
    static const char whole[] =
        "{\"a\":[1,{\"b\":\"\\u12\"}],\"partialSuccess\":{\"errorMessage\":\"\\ud83d\\ude00\","
        "\"rejectedProfiles\":\"5\"}}";
    for (size_t length = 0; length < sizeof whole; length++) {
        char words[SP_ANSWER_WORDS];
        uint64_t rejected;
        char *copy = malloc(length + 1); /* so that reading beyond is found */
        memcpy(copy, whole, length);
        sp_answer answer = {.content_type = "application/json", .body = copy, .length = length};
        sp_answer_partial(&answer, &no_secrets, SP_PROFILES, &rejected, words);
        sp_answer_words(words, &answer, &no_secrets);
        free(copy);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frame_has_flag_and_length_and_comes_off_again),
        cmocka_unit_test(frame_of_a_compressed_or_empty_body),
        cmocka_unit_test(answer_that_is_compressed_is_unpacked),
        cmocka_unit_test(answer_that_would_grow_beyond_the_bound_is_none),
        cmocka_unit_test(answer_that_is_not_one_plain_message_is_none),
        cmocka_unit_test(status_that_may_be_tried_again_is_the_specification_s),
        cmocka_unit_test(retry_info_names_the_wait_up_to_a_bound),
        cmocka_unit_test(details_that_are_cut_or_garbage_have_no_retry_info),
        cmocka_unit_test(grpc_words_are_decoded_and_clean),
        cmocka_unit_test(json_error_shows_its_message),
        cmocka_unit_test(json_partial_success_is_read),
        cmocka_unit_test(json_cut_anywhere_is_no_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
