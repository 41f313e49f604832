/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "wire/json.h"
#include "proto/pprof.pb-c.h"
#include "proto/profiles.pb-c.h"
#include "proto/trace.pb-c.h"

static void check(const void *message, const char *wanted)
{
    sp_buffer out = SP_BUFFER_INIT(1 << 20);
    assert_true(sp_otlp_json_write(&out, message));
    assert_string_equal((const char *)out.data, wanted);
    assert_int_equal(out.length, strlen(wanted));
    sp_buffer_deinit(&out);
}

static void check_string(const char *text, const char *wanted)
{
    Sp__Common__AnyValue value = SP__COMMON__ANY_VALUE__INIT;
    value.value_case = SP__COMMON__ANY_VALUE__VALUE_STRING_VALUE;
    value.string_value = (char *)text;
    char whole[512];
    snprintf(whole, sizeof whole, "{\"stringValue\":\"%s\"}", wanted);
    check(&value, whole);
}

static void check_double(double number, const char *wanted)
{
    Sp__Common__AnyValue value = SP__COMMON__ANY_VALUE__INIT;
    value.value_case = SP__COMMON__ANY_VALUE__VALUE_DOUBLE_VALUE;
    value.double_value = number;
    char whole[128];
    snprintf(whole, sizeof whole, "{\"doubleValue\":%s}", wanted);
    check(&value, whole);
}

static void json_write_zero_fields_are_left_out(void **state)
{
    (void)state;
    Sp__Trace__Span span = SP__TRACE__SPAN__INIT;
    check(&span, "{}");
    Sp__Pprof__Mapping mapping = SP__PPROF__MAPPING__INIT;
    check(&mapping, "{}");
    mapping.has_functions = true;
    check(&mapping, "{\"hasFunctions\":true}");
}

static void json_write_oneof_member_is_written_also_when_zero(void **state)
{
    (void)state;
    Sp__Common__AnyValue value = SP__COMMON__ANY_VALUE__INIT;
    check(&value, "{}");
    value.value_case = SP__COMMON__ANY_VALUE__VALUE_INT_VALUE;
    check(&value, "{\"intValue\":\"0\"}");
    value.value_case = SP__COMMON__ANY_VALUE__VALUE_BOOL_VALUE;
    check(&value, "{\"boolValue\":false}");
    value.value_case = SP__COMMON__ANY_VALUE__VALUE_STRING_VALUE_STRINDEX;
    check(&value, "{\"stringValueStrindex\":0}");
    value.value_case = SP__COMMON__ANY_VALUE__VALUE_BYTES_VALUE;
    check(&value, "{\"bytesValue\":\"\"}");
    check_double(0, "0");
    check_string("", "");
}

static void json_write_integers_of_64_bits_are_strings(void **state)
{
    (void)state;
    Sp__Profiles__Line line = SP__PROFILES__LINE__INIT;
    line.function_index = INT32_MIN;
    line.line = INT64_MIN;
    line.column = INT64_MAX;
    check(&line, "{\"functionIndex\":-2147483648,\"line\":\"-9223372036854775808\","
                 "\"column\":\"9223372036854775807\"}");
    Sp__Trace__Span span = SP__TRACE__SPAN__INIT;
    span.kind = SP__TRACE__SPAN__SPAN_KIND__SPAN_KIND_CLIENT;
    span.end_time_unix_nano = UINT64_MAX;
    span.flags = UINT32_MAX;
    check(&span, "{\"kind\":3,\"endTimeUnixNano\":\"18446744073709551615\",\"flags\":4294967295}");
}

static void json_write_packed_lists_are_arrays(void **state)
{
    (void)state;
    Sp__Profiles__Sample sample = SP__PROFILES__SAMPLE__INIT;
    int32_t attributes[] = {0, 7};
    int64_t values[] = {-1};
    uint64_t times[] = {0, UINT64_MAX};
    sample.n_attribute_indices = 2;
    sample.attribute_indices = attributes;
    sample.n_values = 1;
    sample.values = values;
    sample.n_timestamps_unix_nano = 2;
    sample.timestamps_unix_nano = times;
    check(&sample, "{\"attributeIndices\":[0,7],\"values\":[\"-1\"],"
                   "\"timestampsUnixNano\":[\"0\",\"18446744073709551615\"]}");
}

static void json_write_ids_are_hex_and_other_bytes_base64(void **state)
{
    (void)state;
    uint8_t bytes[] = {0x00, 0xab, 0xff, 'o', 'b'};
    Sp__Trace__Span span = SP__TRACE__SPAN__INIT;
    span.trace_id = (ProtobufCBinaryData){.data = bytes, .len = 3};
    span.span_id = (ProtobufCBinaryData){.data = bytes, .len = 2};
    span.parent_span_id = (ProtobufCBinaryData){.data = bytes, .len = 1};
    check(&span, "{\"traceId\":\"00abff\",\"spanId\":\"00ab\",\"parentSpanId\":\"00\"}");
    Sp__Profiles__Profile profile = SP__PROFILES__PROFILE__INIT;
    profile.profile_id = (ProtobufCBinaryData){.data = bytes, .len = 3};
    profile.original_payload = (ProtobufCBinaryData){.data = bytes, .len = 5};
    check(&profile, "{\"profileId\":\"00abff\",\"originalPayload\":\"AKv/b2I=\"}");
}

/* The vectors of RFC 4648, section 10. */
static void json_write_base64_pads(void **state)
{
    (void)state;
    static const char *const wanted[] = {"Zg==",     "Zm8=",     "Zm9v",
                                         "Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy"};
    for (size_t length = 1; length <= 6; length++) {
        Sp__Common__AnyValue value = SP__COMMON__ANY_VALUE__INIT;
        value.value_case = SP__COMMON__ANY_VALUE__VALUE_BYTES_VALUE;
        value.bytes_value = (ProtobufCBinaryData){.data = (uint8_t *)"foobar", .len = length};
        char whole[64];
        snprintf(whole, sizeof whole, "{\"bytesValue\":\"%s\"}", wanted[length - 1]);
        check(&value, whole);
    }
}

static void json_write_strings_are_escaped(void **state)
{
    (void)state;
    check_string("say \"a\\b\"/", "say \\\"a\\\\b\\\"/");
    check_string("\b\f\n\r\t", "\\b\\f\\n\\r\\t");
    check_string("\x01\x1f\x7f", "\\u0001\\u001f\x7f");
    check_string("\xc3\xa9\xf0\x9f\x94\xa5", "\xc3\xa9\xf0\x9f\x94\xa5");
}

#define REPLACED "\xef\xbf\xbd"

static void json_write_bytes_that_are_not_utf8_are_replaced(void **state)
{
    (void)state;
    check_string("a\x80z", "a" REPLACED "z");
    check_string("\xc0\xaf", REPLACED REPLACED);              /* overlong */
    check_string("\xed\xa0\x80", REPLACED REPLACED REPLACED); /* a surrogate */
    check_string("cut \xe2\x82", "cut " REPLACED REPLACED);
    check_string("\xff\"", REPLACED "\\\"");
}

static void json_write_doubles_read_back(void **state)
{
    (void)state;
    check_double(0.1, "0.1");
    check_double(-2.5, "-2.5");
    check_double(1.0 / 3, "0.3333333333333333");
    check_double(0.1 + 0.2, "0.30000000000000004");
    check_double(1e22, "1e+22");
    check_double(5e-324, "4.94065645841247e-324");
    check_double(1.7976931348623157e308, "1.7976931348623157e+308");
    check_double(-0.0, "-0");
    check_double((double)NAN, "\"NaN\"");
    check_double((double)INFINITY, "\"Infinity\"");
    check_double(-(double)INFINITY, "\"-Infinity\"");
}

static void remove_folder(const char *folder)
{
    char command[100];
    snprintf(command, sizeof command, "rm -r %s", folder);
    assert_int_equal(system(command), 0);
}

/* How numbers are written in LOCALE, and nothing else of it, as a locale in FOLDER. To make all of
 * a locale takes seconds, and --force makes one that lacks parts. */
static bool make_numbers(const char *folder, const char *locale)
{
    char command[400];
    snprintf(command, sizeof command,
             "cd %s && printf 'LC_NUMERIC\\ncopy \"%s\"\\nEND LC_NUMERIC\\n' > source && "
             "localedef --force -i ./source -f UTF-8 ./%s.UTF-8 >/dev/null 2>&1; "
             "test -f %s.UTF-8/LC_NUMERIC",
             folder, locale, locale, locale);
    return system(command) == 0;
}

/* German writes 1,5; Pashto has a decimal point of two bytes. Makes both in a new folder where
 * setlocale finds them; NULL where that cannot be done. */
static char *make_locales(void)
{
    static char folder[] = "/tmp/spanprof_locale_XXXXXX";
    if (!mkdtemp(folder))
        return NULL;
    setenv("LOCPATH", folder, 1);
    if (make_numbers(folder, "de_DE") && make_numbers(folder, "ps_AF"))
        return folder;
    remove_folder(folder);
    return NULL;
}

static void check_locale(const char *name, const char *one_and_a_half)
{
    char text[16];
    assert_non_null(setlocale(LC_NUMERIC, name));
    snprintf(text, sizeof text, "%.1f", 1.5);
    assert_string_equal(text, one_and_a_half);
    check_double(1.5, "1.5");
    check_double(1.5e300, "1.5e+300");
    setlocale(LC_NUMERIC, "C");
}

static void json_write_decimal_point_ignores_the_locale(void **state)
{
    (void)state;
    char *folder = make_locales();
    if (!folder) {
        unsetenv("LOCPATH");
        print_message("skipped: no other locale can be made (needs localedef and its sources)\n");
        skip();
    }
    check_locale("de_DE.UTF-8", "1,5");
    check_locale("ps_AF.UTF-8", "1\xd9\xab"
                                "5");
    remove_folder(folder);
}

/* LEVELS messages, each an AnyValue or the ArrayValue in it; the innermost is an empty AnyValue or
 * ArrayValue. */
static bool write_nested(size_t levels, sp_buffer *out)
{
    Sp__Common__AnyValue *values = calloc(levels, sizeof *values);
    Sp__Common__ArrayValue *arrays = calloc(levels, sizeof *arrays);
    Sp__Common__AnyValue **pointers = calloc(levels, sizeof *pointers);
    for (size_t i = 0; 2 * i < levels; i++) {
        values[i] = (Sp__Common__AnyValue)SP__COMMON__ANY_VALUE__INIT;
        arrays[i] = (Sp__Common__ArrayValue)SP__COMMON__ARRAY_VALUE__INIT;
        pointers[i] = &values[i];
        if (2 * i + 1 < levels) {
            values[i].value_case = SP__COMMON__ANY_VALUE__VALUE_ARRAY_VALUE;
            values[i].array_value = &arrays[i];
        }
        if (2 * i + 2 < levels) {
            arrays[i].n_values = 1;
            arrays[i].values = &pointers[i + 1];
        }
    }
    bool done = sp_otlp_json_write(out, &values[0].base);
    free(values);
    free(arrays);
    free(pointers);
    return done;
}

static void json_write_too_deep_message_is_refused(void **state)
{
    (void)state;
    sp_buffer out = SP_BUFFER_INIT(1 << 20);
    assert_true(write_nested(SP_OTLP_MAX_DEPTH, &out));
    size_t before = out.length;
    assert_false(write_nested(SP_OTLP_MAX_DEPTH + 1, &out));
    assert_true(out.failed);
    assert_int_equal(out.length, before);
    sp_buffer_deinit(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(json_write_zero_fields_are_left_out),
        cmocka_unit_test(json_write_oneof_member_is_written_also_when_zero),
        cmocka_unit_test(json_write_integers_of_64_bits_are_strings),
        cmocka_unit_test(json_write_packed_lists_are_arrays),
        cmocka_unit_test(json_write_ids_are_hex_and_other_bytes_base64),
        cmocka_unit_test(json_write_base64_pads),
        cmocka_unit_test(json_write_strings_are_escaped),
        cmocka_unit_test(json_write_bytes_that_are_not_utf8_are_replaced),
        cmocka_unit_test(json_write_doubles_read_back),
        cmocka_unit_test(json_write_decimal_point_ignores_the_locale),
        cmocka_unit_test(json_write_too_deep_message_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
