/* SPDX-License-Identifier: Apache-2.0 */
/* What the pull endpoint understands, and what it refuses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "core/compiler.h"
#include "export/pull_server.h"

static sp_pull_request ask(const char *head)
{
    assert_true(sp_pull_head_is_whole(head, strlen(head)));
    return sp_pull_request_parse(head, strlen(head), true);
}

static void pull_request_knows_paths_and_seconds(void **state)
{
    (void)state;
    static const struct {
        const char *target;
        sp_pull_kind kind;
        uint32_t seconds;
    } cases[] = {
        {"/debug/pprof/profile", SP_PULL_CPU, 30},
        {"/debug/pprof/profile?seconds=1", SP_PULL_CPU, 1},
        {"/debug/pprof/profile?x=y&seconds=3600", SP_PULL_CPU, 3600},
        {"/debug/pprof/heap", SP_PULL_HEAP, 0},
        {"/debug/pprof/heap?debug=0&&", SP_PULL_HEAP, 0},
        {"/debug/pprof/allocs?seconds=2", SP_PULL_ALLOCATIONS, 2},
        {"/debug/pprof/mutex", SP_PULL_CONTENTIONS, 10},
        {"/debug/pprof/block?", SP_PULL_WAITS, 10},
    };
    for (size_t i = 0; i < SP_ARRAY_LENGTH(cases); i++) {
        char head[256];
        snprintf(head, sizeof head, "GET %s HTTP/1.%d\r\nHost: 127.0.0.1:6060\r\n\r\n",
                 cases[i].target, (int)(i % 2));
        sp_pull_request request = ask(head);
        assert_int_equal(request.status, 200);
        assert_int_equal(request.kind, cases[i].kind);
        assert_int_equal(request.seconds, cases[i].seconds);
    }
}

static void pull_request_refuses_all_else(void **state)
{
    (void)state;
    static const struct {
        const char *head;
        int status;
    } cases[] = {
        {"\r\n\r\n", 400},
        {"GET\r\n\r\n", 400},
        {"GET /debug/pprof/heap\r\n\r\n", 400},
        {"GET /debug/pprof/heap HTTP/2.0\r\n\r\n", 400},
        {"GET /debug/pprof/heap HTTP/1.1 \r\n\r\n", 400},
        {"GET  /debug/pprof/heap HTTP/1.1\r\n\r\n", 400},
        {"POST /debug/pprof/heap HTTP/1.1\r\n\r\n", 405},
        {"get /debug/pprof/heap HTTP/1.1\r\n\r\n", 405},
        {"GET / HTTP/1.1\r\n\r\n", 404},
        {"GET /debug/pprof/ HTTP/1.1\r\n\r\n", 404},
        {"GET /debug/pprof/heaps HTTP/1.1\r\n\r\n", 404},
        {"GET /debug/pprof/../heap HTTP/1.1\r\n\r\n", 404},
        {"GET http://127.0.0.1/debug/pprof/heap HTTP/1.1\r\n\r\n", 404},
        {"GET /debug/pprof/heap?seconds=5 HTTP/1.1\r\n\r\n", 400},
        {"GET /debug/pprof/profile?seconds=0 HTTP/1.1\r\n\r\n", 400},
        {"GET /debug/pprof/profile?seconds=-1 HTTP/1.1\r\n\r\n", 400},
        {"GET /debug/pprof/profile?seconds=3601 HTTP/1.1\r\n\r\n", 400},
        {"GET /debug/pprof/profile?seconds=99999999999999999999 HTTP/1.1\r\n\r\n", 400},
        {"GET /debug/pprof/profile?seconds= HTTP/1.1\r\n\r\n", 400},
        {"GET /debug/pprof/profile?seconds=1.5 HTTP/1.1\r\n\r\n", 400},
        {"GET /debug/pprof/heap HTTP/1.1\r\nHost : 127.0.0.1\r\n\r\n", 400},
        {"GET /debug/pprof/heap HTTP/1.1\r\nHost\t: 127.0.0.1\r\n\r\n", 400},
        {"GET /debug/pprof/heap HTTP/1.1\r\nA: b\r\n Host: 127.0.0.1\r\n\r\n", 400},
        {"GET /debug/pprof/heap HTTP/1.1\r\nHost\r\n\r\n", 400},
        {"GET /debug/pprof/heap HTTP/1.1\r\n: 127.0.0.1\r\n\r\n", 400},
    };
    for (size_t i = 0; i < SP_ARRAY_LENGTH(cases); i++) {
        sp_pull_request request = ask(cases[i].head);
        if (request.status != cases[i].status)
            fail_msg("%s: %d", cases[i].head, request.status);
        assert_non_null(request.sentence);
    }
    static const char with_nul[] = "GET /debug/pprof/heap HTTP/1.1\r\nX: \0\r\n\r\n";
    assert_int_equal(sp_pull_request_parse(with_nul, sizeof with_nul - 1, true).status, 400);
    static const char blank[] = "GET /debug/pprof/heap HTTP/1.1\r\nHost : evil.example\r\n\r\n";
    assert_int_equal(sp_pull_request_parse(blank, sizeof blank - 1, false).status, 400);
}

/* A page of the web may have its own name lead to 127.0.0.1. */
static void pull_request_on_loopback_wants_an_own_host(void **state)
{
    (void)state;
    static const struct {
        const char *host;
        int status;
    } cases[] = {
        {"127.0.0.1", 200},     {"127.0.0.1:6060", 200}, {"localhost", 200},   {"LOCALHOST:1", 200},
        {"[::1]", 200},         {"[::1]:6060", 200},     {"example.com", 403}, {"", 403},
        {"localhost.x", 403},   {"1.example.com", 403},  {"[x]", 403},         {"bad.cafe", 403},
        {"localhost@evil", 403}};
    for (size_t i = 0; i < SP_ARRAY_LENGTH(cases); i++) {
        char head[256];
        snprintf(head, sizeof head,
                 "GET /debug/pprof/heap HTTP/1.1\r\nAccept: */*\r\nhOst: \t%s \r\n\r\n",
                 cases[i].host);
        if (ask(head).status != cases[i].status)
            fail_msg("%s: %d", cases[i].host, ask(head).status);
        assert_int_equal(sp_pull_request_parse(head, strlen(head), false).status, 200);
    }
}

static void pull_request_is_whole_at_its_empty_line(void **state)
{
    (void)state;
    assert_false(sp_pull_head_is_whole("GET / HTTP/1.1\r\nHost: x\r\n", 25));
    assert_true(sp_pull_head_is_whole("GET / HTTP/1.1\n\n", 16));
    assert_false(sp_pull_head_is_whole("", 0));
}

static void pull_address_has_forms(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool is_loopback;
    } good[] = {{"127.0.0.1:6060", true}, {":6060", true},       {"localhost:0", true},
                {"127.1.2.3:1", true},    {"[::1]:65535", true}, {"0.0.0.0:6060", false},
                {"[::]:6060", false},     {"10.0.0.1:80", false}};
    static const char *const bad[] = {"",
                                      "6060",
                                      "127.0.0.1",
                                      "127.0.0.1:",
                                      "127.0.0.1:65536",
                                      "127.0.0.1:-1",
                                      "::1:6060",
                                      "[::1]",
                                      "[::1:6060",
                                      "host:6060",
                                      "http://127.0.0.1:6060",
                                      "256.0.0.1:1",
                                      "[]:1",
                                      "127.0.0.1:6060/path"};
    sp_pull_address address;
    for (size_t i = 0; i < SP_ARRAY_LENGTH(good); i++) {
        assert_true(sp_pull_address_parse(&address, good[i].text));
        assert_int_equal(address.is_loopback, good[i].is_loopback);
        assert_string_equal(address.text, good[i].text);
    }
    for (size_t i = 0; i < SP_ARRAY_LENGTH(bad); i++)
        if (sp_pull_address_parse(&address, bad[i]))
            fail_msg("%s was taken", bad[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pull_request_knows_paths_and_seconds),
        cmocka_unit_test(pull_request_refuses_all_else),
        cmocka_unit_test(pull_request_on_loopback_wants_an_own_host),
        cmocka_unit_test(pull_request_is_whole_at_its_empty_line),
        cmocka_unit_test(pull_address_has_forms),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
