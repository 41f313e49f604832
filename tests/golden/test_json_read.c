/* SPDX-License-Identifier: Apache-2.0 */
/* The tool's JSON reader against the library's writer, and against bad input. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>

#include "golden/golden_data.h"
#include "golden/random_message.h"
#include "proto/pprof.pb-c.h"
#include "proto/process_context.pb-c.h"
#include "proto/profiles_service.pb-c.h"
#include "proto/rpc_status.pb-c.h"
#include "proto/trace_service.pb-c.h"
#include "tool/read/json_read.h"

#define TRACES   (&sp__collector__export_trace_service_request__descriptor)
#define PROFILES (&sp__collector__export_profiles_service_request__descriptor)
#define SPAN     (&sp__trace__span__descriptor)
#define VALUE    (&sp__common__any_value__descriptor)

/* Of all messages that are read; freed at the end. */
static sp_arena memory;

static sp_buffer pack(const ProtobufCMessage *message)
{
    sp_buffer out = SP_BUFFER_INIT(1 << 24);
    size_t bytes = protobuf_c_message_get_packed_size(message);
    assert_non_null(sp_buffer_reserve(&out, bytes));
    out.length = protobuf_c_message_pack(message, out.data);
    return out;
}

static void *read_text(const ProtobufCMessageDescriptor *type, const char *text)
{
    sp_json_error error;
    ProtobufCMessage *message = sp_otlp_json_read(&memory, type, text, strlen(text), &error);
    if (!message)
        fail_msg("%s: line %zu, byte %zu: %s", text, error.line, error.position, error.text);
    return message;
}

/* ---- round trips ---- */

static void check_round_trip(const ProtobufCMessage *message)
{
    sp_buffer json = SP_BUFFER_INIT(1 << 24);
    assert_true(sp_otlp_json_write(&json, message));
    ProtobufCMessage *back = read_text(message->descriptor, (const char *)json.data);
    sp_buffer wanted = pack(message);
    sp_buffer got = pack(back);
    assert_int_equal(got.length, wanted.length);
    assert_memory_equal(got.data, wanted.data, wanted.length);
    sp_buffer_deinit(&json);
    sp_buffer_deinit(&wanted);
    sp_buffer_deinit(&got);
}

static void json_read_random_messages_come_back_equal(void **state)
{
    (void)state;
    const ProtobufCMessageDescriptor *types[] = {
        TRACES,
        PROFILES,
        &sp__process_context__process_context__descriptor,
        &sp__pprof__profile__descriptor,
        &sp__rpc__status__descriptor,
        &sp__rpc__bad_request__descriptor,
        &sp__rpc__retry_info__descriptor,
        &sp__collector__export_trace_service_response__descriptor,
        &sp__collector__export_profiles_service_response__descriptor,
    };
    for (size_t t = 0; t < sizeof types / sizeof types[0]; t++) {
        for (uint64_t seed = 1; seed <= 40; seed++) {
            random_source random = {.state = seed * 7919};
            ProtobufCMessage *message = random_message(&random, types[t], 0);
            check_round_trip(message);
            protobuf_c_message_free_unpacked(message, NULL);
        }
    }
}

static void json_read_encoded_requests_equal_their_protobuf_form(void **state)
{
    (void)state;
    sp_buffer json = SP_BUFFER_INIT(1 << 20), binary = SP_BUFFER_INIT(1 << 20);
    assert_true(
        sp_otlp_encode_profiles(&json, SP_OTLP_JSON, &golden_resource, &golden_profile_data));
    assert_true(
        sp_otlp_encode_profiles(&binary, SP_OTLP_PROTOBUF, &golden_resource, &golden_profile_data));
    ProtobufCMessage *message = read_text(PROFILES, (const char *)json.data);
    sp_buffer got = pack(message);
    assert_int_equal(got.length, binary.length);
    assert_memory_equal(got.data, binary.data, binary.length);
    sp_buffer_deinit(&json);
    sp_buffer_deinit(&binary);
    sp_buffer_deinit(&got);
}

/* ---- what is tolerated ---- */

static void json_read_ids_take_either_case(void **state)
{
    (void)state;
    Sp__Trace__Span *span = read_text(SPAN, "{\"traceId\":\"00aAbBFf\",\"spanId\":\"\"}");
    assert_int_equal(span->trace_id.len, 4);
    assert_memory_equal(span->trace_id.data, "\x00\xaa\xbb\xff", 4);
    assert_int_equal(span->span_id.len, 0);
}

static void json_read_numbers_take_every_form(void **state)
{
    (void)state;
    Sp__Trace__Span *span = read_text(
        SPAN, "{\"startTimeUnixNano\":1700000000000000001,\"end_time_unix_nano\":"
              "\"18446744073709551615\","
              "\"kind\":\"SPAN_KIND_CLIENT\",\"flags\":257.0,\"droppedEventsCount\":\"12\"}");
    assert_true(span->start_time_unix_nano == UINT64_C(1700000000000000001));
    assert_true(span->end_time_unix_nano == UINT64_MAX);
    assert_int_equal(span->kind, SP__TRACE__SPAN__SPAN_KIND__SPAN_KIND_CLIENT);
    assert_int_equal(span->flags, 257);
    assert_int_equal(span->dropped_events_count, 12);
}

static void json_read_numbers_above_the_signed_range_are_exact(void **state)
{
    (void)state;
    Sp__Profiles__Location *location =
        read_text(&sp__profiles__location__descriptor,
                  "{\"later\":\"\\\" 18446744073709551615 \",\"address\":18446744071578845184}");
    assert_true(location->address == UINT64_C(18446744071578845184));
    Sp__Trace__Span *span =
        read_text(SPAN, "{\"startTimeUnixNano\":1.7e18,\"endTimeUnixNano\":"
                        "18446744073709551615,\"name\":\"9223372036854775808\"}");
    assert_true(span->start_time_unix_nano == UINT64_C(1700000000000000000));
    assert_true(span->end_time_unix_nano == UINT64_MAX);
    assert_string_equal(span->name, "9223372036854775808");
}

static void json_read_unknown_keys_and_null_count_as_absent(void **state)
{
    (void)state;
    Sp__Trace__Span *span =
        read_text(SPAN, "{\"name\":null,\"later\":{\"a\":[1,{}]},\"status\":null,\"kind\":77}");
    assert_string_equal(span->name, "");
    assert_null(span->status);
    assert_int_equal(span->kind, 77);
}

static void json_read_doubles_take_words_and_strings(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        double value;
    } cases[] = {{"\"Infinity\"", (double)INFINITY},
                 {"\"-Infinity\"", -(double)INFINITY},
                 {"1", 1},
                 {"\"2.5\"", 2.5},
                 {"-1e-3", -0.001}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[80];
        snprintf(text, sizeof text, "{\"doubleValue\":%s}", cases[i].text);
        Sp__Common__AnyValue *value = read_text(VALUE, text);
        assert_int_equal(value->value_case, SP__COMMON__ANY_VALUE__VALUE_DOUBLE_VALUE);
        assert_true(value->double_value == cases[i].value);
    }
    Sp__Common__AnyValue *value = read_text(VALUE, "{\"doubleValue\":\"NaN\"}");
    assert_true(isnan(value->double_value));
}

static void json_read_base64_takes_both_alphabets(void **state)
{
    (void)state;
    static const char *const texts[] = {"+/+/AA==", "-_-_AA", "+/+/AA"};
    for (size_t i = 0; i < 3; i++) {
        char text[80];
        snprintf(text, sizeof text, "{\"bytesValue\":\"%s\"}", texts[i]);
        Sp__Common__AnyValue *value = read_text(VALUE, text);
        assert_int_equal(value->bytes_value.len, 4);
        assert_memory_equal(value->bytes_value.data, "\xfb\xff\xbf\x00", 4);
    }
}

static void json_read_nul_in_string_becomes_replacement(void **state)
{
    (void)state;
    Sp__Common__AnyValue *value = read_text(VALUE, "{\"stringValue\":\"a\\u0000b\"}");
    assert_string_equal(value->string_value, "a\xef\xbf\xbd"
                                             "b");
}

/* ---- what is refused ---- */

typedef struct bad_case {
    const ProtobufCMessageDescriptor *type;
    const char *text;
    const char *message; /* the error contains it */
    const char *at;      /* the error's position is where this begins in text; NULL: not checked */
} bad_case;

static void check_bad(const bad_case *bad)
{
    sp_json_error error;
    ProtobufCMessage *message =
        sp_otlp_json_read(&memory, bad->type, bad->text, strlen(bad->text), &error);
    if (message)
        fail_msg("accepted: %s", bad->text);
    if (!strstr(error.text, bad->message))
        fail_msg("%s: the error is \"%s\", wanted \"%s\"", bad->text, error.text, bad->message);
    assert_true(error.line >= 1 && error.position <= strlen(bad->text));
    if (bad->at)
        assert_string_equal(bad->text + error.position, strstr(bad->text, bad->at));
}

static void json_read_wrong_types_say_where(void **state)
{
    (void)state;
    static const bad_case cases[] = {
        {TRACES, "[]", "expected an object, found an array", "[]"},
        {TRACES, "{\"resourceSpans\":{}}", "resourceSpans: expected an array, found an object",
         "{}}"},
        {TRACES, "{\"a\":[{\"resourceSpans\":1}],\n \"resourceSpans\": [{}, 7]}",
         "resourceSpans[1]: expected an object, found a number", "7]}"},
        {TRACES, "{\"resourceSpans\":[{\"scopeSpans\":[{\"spans\":[{},{\"traceId\":\"xyz0\"}]}]}]}",
         "resourceSpans[0].scopeSpans[0].spans[1].traceId: expected an id of hex", "\"xyz0\""},
        {SPAN, "{\"traceId\":\"abc\"}", "traceId: expected an id of hex", "\"abc\""},
        {SPAN, "{\"spanId\":12}", "spanId: expected a string, found a number", "12}"},
        {SPAN, "{\"name\":[\"}\"]}", "name: expected a string, found an array", "[\"}"},
        {SPAN, "{\"kind\":\"SPAN_KIND_OTHER\"}", "kind: expected an integer", "\"SPAN_KIND_O"},
        {SPAN, "{\"kind\":true}",
         "kind: expected an integer, as number or decimal string, found true", "true}"},
        {SPAN, "{\"attributes\":[null]}", "attributes[0]: expected an object, found null", "null"},
        {SPAN, "{\"name\":\"a\\\"},{[\",\"other\":[{},\"]\"],\"kind\":[]}",
         "kind: expected an integer", "[]}"},
        {SPAN, "{\"status\":[]}", "status: expected an object, found an array", "[]"},
        {VALUE, "{\"boolValue\":\"true\"}", "boolValue: expected true or false, found a string",
         "\"true"},
        {VALUE, "{\"doubleValue\":\"1,5\"}", "doubleValue: expected a number, found a string",
         "\"1,5"},
        {VALUE, "{\"doubleValue\":\"nan\"}", "doubleValue: expected a number", "\"nan"},
        {VALUE, "{\"bytesValue\":\"AAA=A\"}", "bytesValue: expected base64", "\"AAA"},
        {VALUE, "{\"bytesValue\":\"A\"}", "bytesValue: expected base64", "\"A\""},
        {VALUE, "{\"stringValue\":\"a\",\"intValue\":1}", "only one of the fields", "1}"},
        {SPAN, "{\"traceState\":\"a\",\"trace_state\":\"b\"}",
         "trace_state: the field is there twice", "\"b\""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        check_bad(&cases[i]);
}

static void json_read_integers_out_of_range_are_refused(void **state)
{
    (void)state;
    static const bad_case cases[] = {
        {SPAN, "{\"startTimeUnixNano\":\"18446744073709551616\"}", "startTimeUnixNano: expected",
         NULL},
        {SPAN, "{\"startTimeUnixNano\":-1}", "out of range (0 to 18446744073709551615)", "-1"},
        {SPAN, "{\"startTimeUnixNano\":\"-1\"}", "out of range", NULL},
        {SPAN, "{\"startTimeUnixNano\":99999999999999999999}", "not valid JSON: too big", NULL},
        {SPAN, "{\"name\":99999999999999999999}", "not valid JSON: too big", NULL},
        {SPAN, "{\"status\":1e999}", "not valid JSON: real number overflow", NULL},
        {SPAN, "{\"links\":[-1e999]}", "not valid JSON: real number overflow", NULL},
        {SPAN, "{\"x\":1e999x}", "not valid JSON", NULL},
        {SPAN, "{\"x\":099999999999999999999}", "not valid JSON", NULL},
        {SPAN, "{\"x\":99999999999999999999,}", "not valid JSON", NULL},
        {SPAN, "{\"startTimeUnixNano\":1e30}", "expected an integer", NULL},
        {SPAN, "{\"startTimeUnixNano\":18446744073709551616}", "not valid JSON: too big", NULL},
        {SPAN, "{\"startTimeUnixNano\":1.8446744073709552e19}", "expected an integer", NULL},
        {SPAN, "{\"startTimeUnixNano\":-1.7e18}", "out of range", "-1.7e18"},
        {SPAN, "{\"startTimeUnixNano\":0.5}", "expected an integer", NULL},
        {SPAN, "{\"startTimeUnixNano\":\" 1\"}", "expected an integer", NULL},
        {SPAN, "{\"startTimeUnixNano\":\"0x10\"}", "expected an integer", NULL},
        {SPAN, "{\"startTimeUnixNano\":\"1\\u0000\"}", "expected an integer", NULL},
        {SPAN, "{\"startTimeUnixNano\":\"\"}", "expected an integer", NULL},
        {SPAN, "{\"flags\":4294967296}", "flags: the integer is out of range (0 to 4294967295)",
         NULL},
        {SPAN, "{\"kind\":2147483648}", "kind: the integer is out of range", NULL},
        {SPAN, "{\"kind\":-2147483649}", "out of range (-2147483648 to 2147483647)", NULL},
        {VALUE, "{\"intValue\":\"9223372036854775808\"}", "out of range", NULL},
        {VALUE, "{\"intValue\":9223372036854775808}", "intValue: the integer is out of range",
         "9223"},
        {VALUE, "{\"intValue\":9223372036854775808,\n \"boolValue\"  7}", "not valid JSON", NULL},
        {VALUE, "{\"intValue\":\"-9223372036854775809\"}", "out of range", NULL},
        {VALUE, "{\"intValue\":\"--1\"}", "expected an integer", NULL},
        {VALUE, "{\"intValue\":\"-\"}", "expected an integer", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        check_bad(&cases[i]);
    Sp__Trace__Span *span = read_text(
        SPAN, "{\"x\":[99999999999999999999, -99999999999999999999, 1e999, {\"y\":-1.5E+999}],"
              "\"name\":\"1e999, \\\" 99999999999999999999\",\"flags\":7}");
    assert_string_equal(span->name, "1e999, \" 99999999999999999999");
    assert_int_equal(span->flags, 7);
    Sp__Common__AnyValue *least = read_text(VALUE, "{\"intValue\":\"-9223372036854775808\"}");
    assert_true(least->int_value == INT64_MIN);
}

static void json_read_error_counts_lines(void **state)
{
    (void)state;
    sp_json_error error;
    const char *text = "{\n\"name\":\"x\",\n\n\"kind\": []}";
    assert_null(sp_otlp_json_read(&memory, SPAN, text, strlen(text), &error));
    assert_int_equal(error.line, 4);
    text = "{\n\n\"name\" 1}";
    assert_null(sp_otlp_json_read(&memory, SPAN, text, strlen(text), &error));
    assert_int_equal(error.line, 3);
    assert_non_null(strstr(error.text, "not valid JSON"));
    assert_null(sp_otlp_json_read(&memory, SPAN, text, strlen(text), NULL));
}

static void json_read_error_text_is_printable(void **state)
{
    (void)state;
    sp_json_error error;
    const char *text = "{\x1b[31m}";
    assert_null(sp_otlp_json_read(&memory, SPAN, text, strlen(text), &error));
    for (const char *c = error.text; *c; c++)
        assert_in_range(*c, 0x20, 0x7e);
}

static void json_read_truncated_text_is_refused(void **state)
{
    (void)state;
    sp_buffer json = SP_BUFFER_INIT(1 << 20);
    assert_true(sp_otlp_encode_traces(&json, SP_OTLP_JSON, &golden_resource, golden_spans, 3));
    for (size_t length = 0; length < json.length; length++) {
        sp_json_error error;
        char *exact = malloc(length + 1); /* so that a read past the end is seen */
        memcpy(exact, json.data, length);
        assert_null(sp_otlp_json_read(&memory, TRACES, exact, length, &error));
        assert_non_null(strstr(error.text, "not valid JSON"));
        free(exact);
    }
    sp_buffer_deinit(&json);
}

/* Each byte replaced by others: read or refused with a reason, never a crash. */
static void json_read_damaged_text_gives_a_message_or_a_reason(void **state)
{
    (void)state;
    sp_buffer json = SP_BUFFER_INIT(1 << 20);
    assert_true(
        sp_otlp_encode_profiles(&json, SP_OTLP_JSON, &golden_resource, &golden_profile_data));
    static const char replacements[] = "\"{}[],:0-a\\\x80";
    size_t refused = 0;
    for (size_t i = 0; i < json.length; i++) {
        uint8_t kept = json.data[i];
        for (const char *c = replacements; *c; c++) {
            sp_json_error error;
            json.data[i] = (uint8_t)*c;
            ProtobufCMessage *message =
                sp_otlp_json_read(&memory, PROFILES, (const char *)json.data, json.length, &error);
            if (!message)
                assert_true(error.text[0] != 0 && error.position <= json.length);
            refused += message == NULL;
            sp_arena_reset(&memory);
        }
        json.data[i] = kept;
    }
    assert_true(refused > json.length);
    sp_buffer_deinit(&json);
}

static char *repeated(const char *unit, size_t count, const char *middle, const char *tail)
{
    sp_buffer text = SP_BUFFER_INIT(1 << 26);
    for (size_t i = 0; i < count; i++)
        sp_buffer_add_string(&text, unit);
    sp_buffer_add_string(&text, middle);
    for (size_t i = 0; i < count; i++)
        sp_buffer_add_string(&text, tail);
    return (char *)text.data;
}

static void check_deep(const char *unit, size_t count, const char *tail, const char *message)
{
    char *text = repeated(unit, count, "{}", tail);
    sp_json_error error;
    assert_null(sp_otlp_json_read(&memory, VALUE, text, strlen(text), &error));
    assert_non_null(strstr(error.text, message));
    free(text);
}

static void json_read_deep_nesting_is_refused(void **state)
{
    (void)state;
    check_deep("[", 200000, "]", "not valid JSON");
    check_deep("{\"arrayValue\":{\"values\":[", 200, "]}}", "nested deeper than 100");
    check_deep("{\"kvlistValue\":{\"values\":[{\"value\":", 500, "}]}}", "nested deeper than 100");
    check_deep("{\"arrayValue\":{\"values\":[", 100000, "]}}", "not valid JSON");
    check_deep("{\"unknown\":", 100000, "}", "not valid JSON");
}

static void json_read_nesting_up_to_the_limit_comes_back(void **state)
{
    (void)state;
    char *text = repeated("{\"arrayValue\":{\"values\":[", 49, "{}", "]}}");
    ProtobufCMessage *message = read_text(VALUE, text);
    check_round_trip(message);
    free(text);
}

static int free_memory(void **state)
{
    (void)state;
    sp_arena_deinit(&memory);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(json_read_random_messages_come_back_equal),
        cmocka_unit_test(json_read_encoded_requests_equal_their_protobuf_form),
        cmocka_unit_test(json_read_ids_take_either_case),
        cmocka_unit_test(json_read_numbers_take_every_form),
        cmocka_unit_test(json_read_numbers_above_the_signed_range_are_exact),
        cmocka_unit_test(json_read_unknown_keys_and_null_count_as_absent),
        cmocka_unit_test(json_read_doubles_take_words_and_strings),
        cmocka_unit_test(json_read_base64_takes_both_alphabets),
        cmocka_unit_test(json_read_nul_in_string_becomes_replacement),
        cmocka_unit_test(json_read_wrong_types_say_where),
        cmocka_unit_test(json_read_integers_out_of_range_are_refused),
        cmocka_unit_test(json_read_error_counts_lines),
        cmocka_unit_test(json_read_error_text_is_printable),
        cmocka_unit_test(json_read_truncated_text_is_refused),
        cmocka_unit_test(json_read_damaged_text_gives_a_message_or_a_reason),
        cmocka_unit_test(json_read_deep_nesting_is_refused),
        cmocka_unit_test(json_read_nesting_up_to_the_limit_comes_back),
    };
    return cmocka_run_group_tests(tests, NULL, free_memory);
}
