/* SPDX-License-Identifier: Apache-2.0 */
/* The small parts: headers, retries, answers, compression, repeated messages, bounds. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "export/export_internal.h"
#include "proto/rpc_status.pb-c.h"
#include "unit/export/captured_log.h"

static void headers_are_decoded_and_trimmed(void **state)
{
    (void)state;
    static const struct {
        const char *text, *first, *second;
    } rows[] = {
        {"k=v", "k: v", NULL},
        {" k = v , k2=v2 ", "k: v", "k2: v2"},
        {"Authorization=Basic%20YWJj==", "Authorization: Basic YWJj==", NULL},
        {"Authorization=Bearer a b;c", "Authorization: Bearer a b;c", NULL},
        {"k=a%2Cb%3D%25", "k: a,b=%", NULL},
        {"empty=,,k=v,", "empty;", "k: v"},
        {"k=\xc3\xa9", "k: \xc3\xa9", NULL},
        {"bad", NULL, NULL},
        {"=v", NULL, NULL},
        {"k=%", NULL, NULL},
        {"k=%4", NULL, NULL},
        {"k=a%00b", NULL, NULL},
        {"k=a%0Ab", NULL, NULL},
        {"k=a\nb", NULL, NULL},
        {"k%0d=v", NULL, NULL},
        {"content-length=5,expect=x", NULL, NULL},
        {"", NULL, NULL},
    };
    for (size_t i = 0; i < SP_ARRAY_LENGTH(rows); i++) {
        struct curl_slist *list = NULL;
        assert_true(sp_headers_parse(&list, rows[i].text, NULL));
        assert_int_equal(list != NULL, rows[i].first != NULL);
        if (list) {
            assert_string_equal(list->data, rows[i].first);
            assert_int_equal(list->next != NULL, rows[i].second != NULL);
            if (list->next)
                assert_string_equal(list->next->data, rows[i].second);
        }
        curl_slist_free_all(list);
    }
}

/* TEXT as it is shown when HEADERS are sent to URL. */
static void assert_masked(const char *headers, const char *url, const char *text,
                          const char *expected)
{
    struct curl_slist *list = NULL;
    sp_secrets secrets = {0};
    char out[512];
    assert_true(sp_headers_parse(&list, headers, NULL));
    assert_true(sp_secrets_init(&secrets, list, url));
    assert_int_equal(sp_secrets_mask(&secrets, out, sizeof out, text, strlen(text)),
                     strlen(expected));
    assert_string_equal(out, expected);
    sp_secrets_deinit(&secrets);
    curl_slist_free_all(list);
}

static void header_values_are_masked_wherever_they_occur(void **state)
{
    (void)state;
    assert_masked("Authorization=Bearer tok,key=topsecret,x=1", "http://h/",
                  "Bearer tok, tok topsecrettopsecret 1", "***, *** ****** 1");
    assert_masked("Authorization=Bearer eyJhbGciOiJIUzI1NiJ9", "http://h/",
                  "Bearer expected, missing Bearer", "Bearer expected, missing Bearer");
}

static void header_values_are_masked_in_every_form(void **state)
{
    (void)state;
    static const char headers[] = "key=a/b+c \"d\" \xe9%25&e";
    static const char *const forms[] = {
        "a/b+c \"d\" \xe9%&e",                 /* as it is */
        "a/b+c \"d\" ?%&e",                    /* cleaned */
        "a/b+c \"d\" \xef\xbf\xbd%&e",         /* repaired */
        "a/b+c \"d\" \xc3\xa9%&e",             /* Latin-1 in UTF-8 */
        "a%2Fb%2Bc%20%22d%22%20%E9%25%26e",    /* percent-encoded */
        "a%2fb%2bc+%22d%22+%e9%25%26e",        /* as in a form */
        "a\\/b+c \\\"d\\\" \\u00e9%\\u0026e",  /* JSON */
        "a/b+c &quot;d&quot; \xc3\xa9%&amp;e", /* HTML */
        "YS9iK2MgImQiIOklJmU",                 /* base64 */
        "YS9iK2MgImQiIOklJm",                  /* what is decided by the value alone */
    };
    for (size_t i = 0; i < SP_ARRAY_LENGTH(forms); i++) {
        char text[128];
        snprintf(text, sizeof text, "token '%s' no", forms[i]);
        assert_masked(headers, "http://h/", text, "token '***' no");
    }
}

static void value_that_the_receiver_has_cut_is_masked(void **state)
{
    (void)state;
    static const char headers[] = "Authorization=Bearer eyJhbGciOiJIUzI1NiJ9";
    assert_masked(headers, "http://h/", "token eyJhbGciO... is bad", "token ***... is bad");
    assert_masked(headers, "http://h/", "token eyJh", "token ***");
    assert_masked(headers, "http://h/", "Bearer eyJhbGciO", "***");
    assert_masked(headers, "http://h/", "they say", "they say");
}

static void secrets_of_the_url_are_masked_in_every_form(void **state)
{
    (void)state;
    static const char url[] = "http://user:se%63ret@h/p?tenant=a&key=0123456789";
    assert_masked("", url, "secret se%63ret user:secret", "*** *** ***");
    assert_masked("", url, "Basic dXNlcjpzZWNyZXQ=", "Basic ***=");
    assert_masked("", url, "no user at /p?tenant=a&key=0123456789", "no user at /p?***");
    assert_masked("", url, "key 0123456789 of tenant a", "key *** of tenant a");
}

static void endpoint_shown_has_no_secrets(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"http://h:1/p", "http://h:1/p"},
        {"http://u:p@h/p", "http://***@h/p"},
        {"http://u:p@ss@h/p?k=v", "http://***@h/p?***"},
        {"http://u:p?w@h/p", "http://***@h/p"},
        {"u:p@h", "***@h"},
        {"http://h\n/\x1b[31m", "http://h?/?[31m"},
    };
    for (size_t i = 0; i < SP_ARRAY_LENGTH(rows); i++) {
        char *shown = sp_endpoint_shown(rows[i][0]);
        assert_string_equal(shown, rows[i][1]);
        free(shown);
    }
}

static void retry_codes_are_those_of_the_specification(void **state)
{
    (void)state;
    for (long code = 100; code < 600; code++)
        assert_int_equal(sp_retry_http(code),
                         code == 429 || code == 502 || code == 503 || code == 504);
    assert_true(sp_retry_curl(CURLE_COULDNT_CONNECT) && sp_retry_curl(CURLE_GOT_NOTHING) &&
                sp_retry_curl(CURLE_RECV_ERROR) && sp_retry_curl(CURLE_COULDNT_RESOLVE_HOST));
    assert_false(sp_retry_curl(CURLE_WRITE_ERROR) ||
                 sp_retry_curl(CURLE_PEER_FAILED_VERIFICATION) ||
                 sp_retry_curl(CURLE_UNSUPPORTED_PROTOCOL) || sp_retry_curl(CURLE_OUT_OF_MEMORY));
}

static void backoff_grows_with_jitter_up_to_five_seconds(void **state)
{
    (void)state;
    static const uint64_t longest_ms[] = {1000, 1500, 2250, 3375, 5000, 5000};
    for (uint32_t failed = 1; failed <= SP_ARRAY_LENGTH(longest_ms); failed++) {
        uint64_t longest = longest_ms[failed - 1] * SP_NS_PER_MS, before = 0;
        for (uint64_t random = 0; random <= UINT32_MAX; random += UINT32_MAX / 8) {
            uint64_t wait = sp_retry_backoff_ns(failed, (uint32_t)random);
            assert_in_range(wait, longest / 2, longest);
            assert_true(wait > before);
            before = wait;
        }
        assert_true(before > longest - longest / 100);
    }
}

static void retry_after_is_seconds_or_a_date(void **state)
{
    (void)state;
    const uint64_t now = UINT64_C(1792576800) * SP_NS_PER_S; /* Wed, 21 Oct 2026 10:00:00 GMT */
    static const struct {
        const char *text;
        bool valid;
        uint64_t seconds;
    } rows[] = {
        {"0", true, 0},
        {"7", true, 7},
        {"299", true, 299},
        {"86400", true, 300},
        {"99999999999999999999", false, 0},
        {"Wed, 21 Oct 2026 10:00:09 GMT", true, 9},
        {"Wed, 21 Oct 2026 09:00:00 GMT", true, 0},
        {"Wednesday, 21-Oct-26 10:00:09 GMT", true, 9},
        {"Thu, 21 Oct 2027 10:00:00 GMT", true, 300},
        {"soon", false, 0},
        {"-5", false, 0},
        {"", false, 0},
    };
    for (size_t i = 0; i < SP_ARRAY_LENGTH(rows); i++) {
        uint64_t wait = 0;
        assert_int_equal(sp_retry_after_ns(rows[i].text, now, &wait), rows[i].valid);
        assert_int_equal(wait, rows[i].seconds * SP_NS_PER_S);
    }
}

static void words_of(char out[SP_ANSWER_WORDS], const char *type, const void *body, size_t length)
{
    static const sp_secrets none;
    sp_answer answer = {.content_type = type, .body = body, .length = length};
    sp_answer_words(out, &answer, &none);
}

static void answer_words_are_one_clean_line(void **state)
{
    (void)state;
    char words[SP_ANSWER_WORDS], big[2000];
    words_of(words, "text/plain", "\r\n first line\nsecond", 20);
    assert_string_equal(words, "first line");
    words_of(words, NULL, "a\x1b[0m\x80\xc3\xa9", 8);
    assert_string_equal(words, "a?[0m?\xc3\xa9");
    words_of(words, "text/plain", NULL, 0);
    assert_string_equal(words, "");
    memset(big, 'x', sizeof big);
    words_of(words, "text/plain", big, sizeof big);
    assert_in_range(strlen(words), SP_ANSWER_WORDS - 8, SP_ANSWER_WORDS - 1);
    assert_string_equal(words + strlen(words) - 4, "x...");
}

static void answer_status_message_is_found_or_nothing(void **state)
{
    (void)state;
    char words[SP_ANSWER_WORDS];
    uint8_t packed[64];
    Sp__Rpc__Status status = SP__RPC__STATUS__INIT;
    status.code = 3;
    status.message = (char *)"bad stack index";
    size_t length = sp__rpc__status__pack(&status, packed);
    words_of(words, "application/x-protobuf", packed, length);
    assert_string_equal(words, "bad stack index");
    for (size_t cut = 1; cut < length; cut++) {
        words_of(words, "application/x-protobuf", packed, cut);
        assert_string_equal(words, "");
    }
}

static void gzip_stream_is_used_again_for_each_body(void **state)
{
    (void)state;
    sp_gzip gzip = {0};
    for (int i = 0; i < 3; i++) {
        sp_buffer body = SP_BUFFER_INIT(1 << 20);
        for (int j = 0; j < 1000 * i; j++)
            sp_buffer_printf(&body, "line %d of %d;", j, i);
        size_t length = body.length;
        uint8_t *expected = malloc(length + 1), *got = malloc(length + 1);
        if (length)
            memcpy(expected, body.data, length);
        assert_true(sp_gzip_body(&gzip, &body));
        z_stream stream = {.next_in = body.data,
                           .avail_in = (uInt)body.length,
                           .next_out = got,
                           .avail_out = (uInt)length + 1};
        assert_int_equal(inflateInit2(&stream, 15 + 16), Z_OK);
        assert_int_equal(inflate(&stream, Z_FINISH), Z_STREAM_END);
        assert_int_equal(stream.total_out, length);
        assert_memory_equal(got, expected, length);
        inflateEnd(&stream);
        sp_buffer_deinit(&body);
        free(expected);
        free(got);
    }
    sp_gzip_deinit(&gzip);
}

static void repeat_allows_once_a_minute(void **state)
{
    (void)state;
    sp_repeat repeat = {0};
    assert_true(sp_repeat_allows(&repeat, 5 * SP_NS_PER_S));
    assert_false(sp_repeat_allows(&repeat, 6 * SP_NS_PER_S));
    assert_false(sp_repeat_allows(&repeat, 64 * SP_NS_PER_S));
    assert_int_equal(repeat.kept_back, 2);
    assert_true(sp_repeat_allows(&repeat, 65 * SP_NS_PER_S));
}

static void allowance_is_never_exceeded(void **state)
{
    (void)state;
    sp_allowance allowance = {.maximum_bytes = 100};
    assert_false(sp_allowance_take(&allowance, 101));
    assert_true(sp_allowance_take(&allowance, 60));
    assert_false(sp_allowance_take(&allowance, 41));
    assert_true(sp_allowance_take(&allowance, 40));
    assert_false(sp_allowance_take(&allowance, 1));
    sp_allowance_give(&allowance, 60);
    assert_true(sp_allowance_take(&allowance, 60));
    assert_false(sp_allowance_take(&allowance, SIZE_MAX));
}

static int setup(void **state)
{
    (void)state;
    capture_log();
    return 0;
}

#define CASE(function) cmocka_unit_test_setup(function, setup)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(headers_are_decoded_and_trimmed),
        CASE(header_values_are_masked_wherever_they_occur),
        CASE(header_values_are_masked_in_every_form),
        CASE(value_that_the_receiver_has_cut_is_masked),
        CASE(secrets_of_the_url_are_masked_in_every_form),
        CASE(endpoint_shown_has_no_secrets),
        CASE(retry_codes_are_those_of_the_specification),
        CASE(backoff_grows_with_jitter_up_to_five_seconds),
        CASE(retry_after_is_seconds_or_a_date),
        CASE(answer_words_are_one_clean_line),
        CASE(answer_status_message_is_found_or_nothing),
        CASE(gzip_stream_is_used_again_for_each_body),
        CASE(repeat_allows_once_a_minute),
        CASE(allowance_is_never_exceeded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
