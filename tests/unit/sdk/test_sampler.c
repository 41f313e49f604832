/* SPDX-License-Identifier: Apache-2.0 */
/* OTEL_TRACES_SAMPLER and OTEL_TRACES_SAMPLER_ARG, the options in their place, and one warning for
 * what cannot be used. */
#include <locale.h>
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

#define NAME     "OTEL_TRACES_SAMPLER"
#define ARGUMENT "OTEL_TRACES_SAMPLER_ARG"

static int warnings;
static char last_warning[512];

static void keep_warning(spanprof_log_level level, const char *line, void *user)
{
    (void)user;
    assert_int_equal(level, SPANPROF_LOG_WARN);
    warnings++;
    snprintf(last_warning, sizeof last_warning, "%s", line);
}

static void set(const char *name, const char *value)
{
    if (value)
        setenv(name, value, 1);
    else
        unsetenv(name);
}

static int clean_environment(void **state)
{
    (void)state;
    set(NAME, NULL);
    set(ARGUMENT, NULL);
    warnings = 0;
    sp_log_configure(SPANPROF_LOG_WARN, keep_warning, NULL);
    return 0;
}

/* A sampler as its description: "parentbased(always_on)", "traceidratio 0.25". */
static const char *describe(const spanprof_sampler *sampler)
{
    static const char *const words[] = {NULL, "always_on", "always_off", "traceidratio"};
    static char text[64];
    const spanprof_sampler *leaf =
        sampler->kind == SPANPROF_SAMPLER_PARENT_BASED ? sampler->root : sampler;
    assert_true(leaf->kind > SPANPROF_SAMPLER_PARENT_BASED &&
                leaf->kind < SPANPROF_SAMPLER_CALLBACK);
    assert_true(!sampler->remote_sampled && !sampler->remote_not_sampled &&
                !sampler->local_sampled && !sampler->local_not_sampled);
    int length = snprintf(text, sizeof text, "%s%s", leaf == sampler ? "" : "parentbased_",
                          words[leaf->kind]);
    if (leaf->kind == SPANPROF_SAMPLER_TRACE_ID_RATIO)
        snprintf(text + length, sizeof text - (size_t)length, " %.17g", leaf->ratio);
    return text;
}

static const char *configured(const char *name, const char *argument)
{
    sp_config config = {0};
    const spanprof_options options = {
        .struct_size = sizeof options, .traces_sampler = name, .traces_sampler_arg = argument};
    warnings = 0;
    last_warning[0] = 0;
    sp_config_sampler(&config, &options);
    return describe(config.tracer.sampler);
}

static void samplers_are_those_of_the_environment(void **state)
{
    (void)state;
    static const struct {
        const char *name, *argument, *expected, *warning; /* NULL: none */
    } cases[] = {
        {NULL, NULL, "parentbased_always_on", NULL},
        {"", "", "parentbased_always_on", NULL},
        {"always_on", NULL, "always_on", NULL},
        {"always_off", NULL, "always_off", NULL},
        {"AlWaYs_OfF", NULL, "always_off", NULL},
        {"parentbased_always_on", NULL, "parentbased_always_on", NULL},
        {"parentbased_always_off", NULL, "parentbased_always_off", NULL},
        {"traceidratio", NULL, "traceidratio 1", NULL},
        {"traceidratio", "0.25", "traceidratio 0.25", NULL},
        {"traceidratio", "0", "traceidratio 0", NULL},
        {"traceidratio", "1", "traceidratio 1", NULL},
        {"traceidratio", "1.0", "traceidratio 1", NULL},
        {"traceidratio", ".5", "traceidratio 0.5", NULL},
        {"traceidratio", "2.5e-1", "traceidratio 0.25", NULL},
        {"parentbased_traceidratio", "0.125", "parentbased_traceidratio 0.125", NULL},
        {"traceidratio", "1.5", "traceidratio 1",
         ARGUMENT "=1.5 is not a ratio from 0 to 1: using 1"},
        {"traceidratio", "-0.5", "traceidratio 1", ARGUMENT "=-0.5 is not"},
        {"traceidratio", "nan", "traceidratio 1", ARGUMENT "=nan is not"},
        {"traceidratio", "inf", "traceidratio 1", ARGUMENT "=inf is not"},
        {"traceidratio", "half", "traceidratio 1", ARGUMENT "=half is not"},
        {"traceidratio", "0,5", "traceidratio 1", ARGUMENT "=0,5 is not"},
        {"traceidratio", "50%", "traceidratio 1", ARGUMENT "=50% is not"},
        {"parentbased_traceidratio", "x", "parentbased_traceidratio 1", ARGUMENT "=x is not"},
        {"always_on", "0.5", "always_on", ARGUMENT "=0.5 is ignored: always_on takes none"},
        {NULL, "0.5", "parentbased_always_on", ARGUMENT "=0.5 is ignored"},
        {"jaeger_remote", NULL, "parentbased_always_on", NAME "=jaeger_remote is none of"},
        {"xray", NULL, "parentbased_always_on", "using parentbased_always_on"},
    };
    for (size_t i = 0; i < SP_ARRAY_LENGTH(cases); i++) {
        set(NAME, cases[i].name);
        set(ARGUMENT, cases[i].argument);
        assert_string_equal(configured(NULL, NULL), cases[i].expected);
        assert_int_equal(warnings, cases[i].warning != NULL);
        if (cases[i].warning && !strstr(last_warning, cases[i].warning))
            fail_msg("%s: not %s", last_warning, cases[i].warning);
    }
}

static void options_win_over_the_environment(void **state)
{
    (void)state;
    set(NAME, "always_off");
    set(ARGUMENT, "0.5");
    assert_string_equal(configured("parentbased_traceidratio", "0.25"),
                        "parentbased_traceidratio 0.25");
    assert_string_equal(configured("traceidratio", NULL), "traceidratio 0.5");
    const spanprof_sampler own = SPANPROF_SAMPLER_INIT;
    const spanprof_options options = {
        .struct_size = sizeof options, .traces_sampler = "always_on", .sampler = &own};
    sp_config config = {0};
    sp_config_sampler(&config, &options);
    assert_ptr_equal(config.tracer.sampler, &own);
}

/* Programs that set the user's locale. */
static void ratios_are_read_in_any_locale(void **state)
{
    (void)state;
    static const char *const locales[] = {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "fr_FR.utf8"};
    bool is_set = false;
    for (size_t i = 0; i < SP_ARRAY_LENGTH(locales) && !is_set; i++)
        is_set = setlocale(LC_NUMERIC, locales[i]) != NULL;
    if (!is_set)
        skip(); /* a machine with no locale that writes a comma */
    assert_string_equal(configured("traceidratio", "0.25"), "traceidratio 0.25");
    assert_int_equal(warnings, 0);
    setlocale(LC_NUMERIC, "C");
}

/* What spans of a started SDK are, and not only what was read. */
static uint8_t flags_of_a_root(const spanprof_sampler *sampler)
{
    const spanprof_options options = {
        .struct_size = sizeof options, .exporter = "none", .profiles = "none", .sampler = sampler};
    assert_int_equal(spanprof_start(&options, NULL), SPANPROF_OK);
    spanprof_span span = spanprof_span_start(NULL, "root", NULL);
    uint8_t flags = spanprof_span_context(span).trace_flags;
    spanprof_span_end(span);
    assert_int_equal(spanprof_stop(UINT64_MAX), SPANPROF_OK);
    return flags;
}

static void start_puts_the_sampler_to_use(void **state)
{
    (void)state;
    const spanprof_sampler off = {.struct_size = sizeof off, .kind = SPANPROF_SAMPLER_ALWAYS_OFF};
    enum { SAMPLED = SPANPROF_TRACE_FLAG_SAMPLED | SPANPROF_TRACE_FLAG_RANDOM };
    assert_int_equal(flags_of_a_root(NULL), SAMPLED);
    assert_int_equal(flags_of_a_root(&off), SPANPROF_TRACE_FLAG_RANDOM);
    set(NAME, "always_off");
    assert_int_equal(flags_of_a_root(NULL), SPANPROF_TRACE_FLAG_RANDOM);
    set(NAME, "parentbased_traceidratio");
    set(ARGUMENT, "0");
    assert_int_equal(flags_of_a_root(NULL), SPANPROF_TRACE_FLAG_RANDOM);
    set(ARGUMENT, "1");
    assert_int_equal(flags_of_a_root(NULL), SAMPLED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(samplers_are_those_of_the_environment, clean_environment),
        cmocka_unit_test_setup(options_win_over_the_environment, clean_environment),
        cmocka_unit_test_setup(ratios_are_read_in_any_locale, clean_environment),
        cmocka_unit_test_setup(start_puts_the_sampler_to_use, clean_environment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
