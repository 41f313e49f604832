/* SPDX-License-Identifier: Apache-2.0 */
/* The encoders and the JSON reader when memory is short: every allocation of ours fails once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "failing_memory.h"
#include "golden/golden_data.h"
#include "proto/profiles_service.pb-c.h"
#include "tool/read/json_read.h"
#include "wire/pprof.h"

static size_t calls_until_failure; /* 0: none fails */

static bool allocation_fails(void)
{
    return calls_until_failure > 0 && --calls_until_failure == 0;
}

/* Enough spans for several blocks of the arena. */
enum { MANY = 400 };

enum { PPROF = SP_OTLP_JSON + 1 };

static bool encode(sp_buffer *out, bool traces, int format)
{
    static sp_span_data *spans[MANY];
    for (size_t i = 0; i < MANY; i++)
        spans[i] = golden_spans[i % 3];
    if (traces)
        return sp_otlp_encode_traces(out, format, &golden_resource, spans, MANY);
    if (format == PPROF)
        return sp_pprof_encode(out, &golden_resource, &golden_profile_data);
    return sp_otlp_encode_profiles(out, format, &golden_resource, &golden_profile_data);
}

/* Returns how many allocations one encoding makes. */
static size_t fail_each_allocation(bool traces, int format)
{
    for (size_t n = 1;; n++) {
        sp_buffer out = SP_BUFFER_INIT(1 << 22);
        sp_buffer_add_char(&out, '>');
        calls_until_failure = n;
        bool done = encode(&out, traces, format);
        bool none_failed = calls_until_failure > 0;
        calls_until_failure = 0;
        assert_int_equal(done, none_failed);
        assert_int_equal(out.failed, !none_failed);
        if (!none_failed)
            assert_string_equal((const char *)out.data, ">");
        sp_buffer_deinit(&out);
        if (none_failed)
            return n - 1;
    }
}

static void memory_short_encoding_fails_and_appends_nothing(void **state)
{
    (void)state;
    assert_in_range(fail_each_allocation(true, SP_OTLP_PROTOBUF), 3, 100);
    assert_in_range(fail_each_allocation(true, SP_OTLP_JSON), 4, 100);
    assert_in_range(fail_each_allocation(false, SP_OTLP_PROTOBUF), 2, 100);
    assert_in_range(fail_each_allocation(false, SP_OTLP_JSON), 2, 100);
    assert_in_range(fail_each_allocation(false, PPROF), 5, 100);
}

static void memory_short_json_read_fails_with_a_reason(void **state)
{
    (void)state;
    sp_buffer json = SP_BUFFER_INIT(1 << 20);
    assert_true(encode(&json, false, SP_OTLP_JSON));
    size_t failures = 0;
    for (bool done = false; !done;) {
        sp_json_error error;
        sp_arena memory = {0};
        calls_until_failure = failures + 1;
        ProtobufCMessage *message =
            sp_otlp_json_read(&memory, &sp__collector__export_profiles_service_request__descriptor,
                              (const char *)json.data, json.length, &error);
        done = calls_until_failure > 0;
        calls_until_failure = 0;
        failures += !done;
        assert_int_equal(message != NULL, done);
        if (!done)
            assert_non_null(strstr(error.text, "memory is short"));
        sp_arena_deinit(&memory);
    }
    assert_in_range(failures, 1, 1000);
    sp_buffer_deinit(&json);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_short_encoding_fails_and_appends_nothing),
        cmocka_unit_test(memory_short_json_read_fails_with_a_reason),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
