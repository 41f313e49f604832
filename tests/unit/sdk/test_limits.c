/* SPDX-License-Identifier: Apache-2.0 */
/* The limits of spans from options and environment, and which of them wins. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/compiler.h"
#include "core/log.h"
#include "sdk/config.h"

static const char *const variables[] = {
    "OTEL_ATTRIBUTE_COUNT_LIMIT",       "OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT",
    "OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT",  "OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT",
    "OTEL_SPAN_EVENT_COUNT_LIMIT",      "OTEL_SPAN_LINK_COUNT_LIMIT",
    "OTEL_EVENT_ATTRIBUTE_COUNT_LIMIT", "OTEL_LINK_ATTRIBUTE_COUNT_LIMIT",
};

static unsigned warnings;

static void count_warning(spanprof_log_level level, const char *line, void *user)
{
    (void)level, (void)user;
    warnings += strstr(line, "_LIMIT") != NULL;
}

static sp_span_limits read_limits(const spanprof_options *given)
{
    spanprof_options options;
    sp_config config;
    assert_int_equal(sp_options_check(given, &options, NULL), SPANPROF_OK);
    options.exporter = "none";
    assert_true(sp_config_init(&config, &options));
    sp_config_deinit(&config);
    return config.tracer.limits;
}

static int clear_environment(void **state)
{
    (void)state;
    for (size_t i = 0; i < SP_ARRAY_LENGTH(variables); i++)
        unsetenv(variables[i]);
    warnings = 0;
    sp_log_configure(SPANPROF_LOG_WARN, count_warning, NULL);
    return 0;
}

static void check(sp_span_limits got, sp_span_limits wanted)
{
    assert_memory_equal(&got, &wanted, sizeof got);
}

static void limits_are_those_of_the_specification(void **state)
{
    (void)state;
    check(read_limits(NULL), (sp_span_limits)SP_SPAN_LIMITS_INIT);
}

static void limits_for_all_signals_are_those_of_spans_attributes(void **state)
{
    (void)state;
    setenv("OTEL_ATTRIBUTE_COUNT_LIMIT", "5", 1);
    setenv("OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT", "6", 1);
    sp_span_limits wanted = SP_SPAN_LIMITS_INIT;
    wanted.attributes = 5;
    wanted.value_length = 6;
    check(read_limits(NULL), wanted);
}

static void limits_for_spans_win_over_those_for_all_signals(void **state)
{
    (void)state;
    char number[2] = "1";
    for (size_t i = 0; i < SP_ARRAY_LENGTH(variables); i++, number[0]++)
        setenv(variables[i], number, 1);
    check(read_limits(NULL), (sp_span_limits){.attributes = 3,
                                              .value_length = 4,
                                              .events = 5,
                                              .links = 6,
                                              .event_attributes = 7,
                                              .link_attributes = 8});
}

static void limits_of_options_win_over_the_environment(void **state)
{
    (void)state;
    for (size_t i = 0; i < SP_ARRAY_LENGTH(variables); i++)
        setenv(variables[i], "1", 1);
    spanprof_options options = SPANPROF_OPTIONS_INIT;
    options.attribute_count_limit = 11;
    options.attribute_value_length_limit = 12;
    options.event_count_limit = 13;
    options.link_count_limit = 14;
    options.event_attribute_count_limit = 15;
    options.link_attribute_count_limit = 16;
    check(read_limits(&options), (sp_span_limits){.attributes = 11,
                                                  .value_length = 12,
                                                  .events = 13,
                                                  .links = 14,
                                                  .event_attributes = 15,
                                                  .link_attributes = 16});
}

static void limit_of_zero_is_one_and_no_number_is_none(void **state)
{
    (void)state;
    setenv("OTEL_SPAN_EVENT_COUNT_LIMIT", "0", 1);
    setenv("OTEL_SPAN_LINK_COUNT_LIMIT", "", 1);
    setenv("OTEL_ATTRIBUTE_COUNT_LIMIT", "7", 1);
    setenv("OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT", "-1", 1);
    setenv("OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT", "many", 1);
    sp_span_limits wanted = SP_SPAN_LIMITS_INIT;
    wanted.events = 0;
    wanted.attributes = 7;
    check(read_limits(NULL), wanted);
    assert_int_equal(warnings, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(limits_are_those_of_the_specification, clear_environment),
        cmocka_unit_test_setup(limits_for_all_signals_are_those_of_spans_attributes,
                               clear_environment),
        cmocka_unit_test_setup(limits_for_spans_win_over_those_for_all_signals, clear_environment),
        cmocka_unit_test_setup(limits_of_options_win_over_the_environment, clear_environment),
        cmocka_unit_test_setup(limit_of_zero_is_one_and_no_number_is_none, clear_environment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
