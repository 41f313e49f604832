/* SPDX-License-Identifier: Apache-2.0 */
/* OTEL_PROPAGATORS: what is built, none, and one warning for all that is not; and the counters of
 * what contexts carry. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <spanprof/spanprof.h>
#include "core/compiler.h"
#include "core/log.h"
#include "sdk/config.h"
#include "trace/propagators.h"

#define NAME "OTEL_PROPAGATORS"

enum { TRACE = SP_PROPAGATE_TRACE_CONTEXT, BAGGAGE = SP_PROPAGATE_BAGGAGE, BOTH = TRACE | BAGGAGE };

static int warnings;
static char last_warning[1100];

static void count_warning(spanprof_log_level level, const char *line, void *user)
{
    (void)user;
    assert_int_equal(level, SPANPROF_LOG_WARN);
    warnings++;
    snprintf(last_warning, sizeof last_warning, "%s", line);
}

static uint32_t propagators(const char *variable, const char *option)
{
    spanprof_options options = SPANPROF_OPTIONS_INIT;
    options.propagators = option;
    sp_log_configure(SPANPROF_LOG_WARN, count_warning, NULL);
    warnings = 0;
    if (variable)
        setenv(NAME, variable, 1);
    else
        unsetenv(NAME);
    return sp_config_propagators(&options);
}

static void propagators_are_those_of_the_list(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint32_t set;
    } cases[] = {
        {NULL, BOTH},
        {"", BOTH},
        {"tracecontext,baggage", BOTH},
        {"baggage,tracecontext", BOTH},
        {"tracecontext", TRACE},
        {"baggage", BAGGAGE},
        {" TraceContext\t, tracecontext ,,", TRACE},
        {"none", 0},
        {"NONE", 0},
        {"none,baggage", BAGGAGE},
        {",", BOTH},
    };
    for (size_t i = 0; i < SP_ARRAY_LENGTH(cases); i++) {
        assert_int_equal(propagators(cases[i].text, NULL), cases[i].set);
        assert_int_equal(warnings, 0);
        if (cases[i].text) {
            assert_int_equal(propagators("b3", cases[i].text), cases[i].set);
            assert_int_equal(warnings, 0);
        }
    }
}

static void what_is_not_built_is_named_in_one_warning(void **state)
{
    (void)state;
    assert_int_equal(propagators("b3,tracecontext, jaeger ,xray,nonsense", NULL), TRACE);
    assert_int_equal(warnings, 1);
    assert_non_null(strstr(last_warning, NAME ": b3,jaeger,xray,nonsense:"));
    assert_non_null(strstr(last_warning, "using tracecontext"));
    assert_int_equal(propagators("b3multi", NULL), BOTH);
    assert_int_equal(warnings, 1);
    assert_non_null(strstr(last_warning, "using tracecontext,baggage"));
}

static bool see_traceparent(void *user, const char *name, uint32_t index,
                            spanprof_header_value *value)
{
    static const char text[] = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    (void)user;
    *value = (spanprof_header_value){text, sizeof text - 1};
    return strcmp(name, "traceparent") == 0 && index == 0;
}

/* Also a start that does nothing else, for the SDK is disabled. */
static void start_puts_them_to_use(void **state)
{
    (void)state;
    spanprof_context context;
    spanprof_options options = SPANPROF_OPTIONS_INIT;
    options.exporter = "none";
    setenv("OTEL_SDK_DISABLED", "true", 1);
    assert_true(spanprof_propagation_extract(&context, see_traceparent, NULL));
    options.propagators = "none";
    assert_int_equal(spanprof_start(&options, NULL), SPANPROF_ERROR_DISABLED);
    assert_false(spanprof_propagation_extract(&context, see_traceparent, NULL));
    options.propagators = "tracecontext";
    assert_int_equal(spanprof_start(&options, NULL), SPANPROF_ERROR_DISABLED);
    assert_true(spanprof_propagation_extract(&context, see_traceparent, NULL));
    unsetenv("OTEL_SDK_DISABLED");
}

static void stats_tell_what_was_evicted(void **state)
{
    (void)state;
    enum { MORE = 10 };
    for (int i = 0; i < SP_CARRIER_SLOTS + MORE; i++) {
        spanprof_context context;
        char tracestate[32];
        snprintf(tracestate, sizeof tracestate, "n=%d", i);
        assert_true(spanprof_context_extract(
            &context, "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", tracestate));
    }
    spanprof_stats stats = SPANPROF_STATS_INIT;
    spanprof_stats_get(&stats);
    assert_int_equal(stats.evicted_carriers, MORE);
    assert_int_equal(stats.dropped_carriers, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(propagators_are_those_of_the_list),
        cmocka_unit_test(what_is_not_built_is_named_in_one_warning),
        cmocka_unit_test(start_puts_them_to_use),
        cmocka_unit_test(stats_tell_what_was_evicted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
