/* SPDX-License-Identifier: Apache-2.0 */
/* SPANPROF_CPU_TIME: which value wins, and one warning for those that are none. */
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

static unsigned warnings;

static void count_warning(spanprof_log_level level, const char *line, void *user)
{
    (void)level, (void)user;
    warnings += strstr(line, "SPANPROF_CPU_TIME") != NULL;
}

static sp_cpu_time read_cpu_time(const char *variable, const char *option)
{
    spanprof_options options = SPANPROF_OPTIONS_INIT;
    sp_config config;
    options.exporter = "none";
    options.cpu_time = option;
    if (variable)
        setenv("SPANPROF_CPU_TIME", variable, 1);
    else
        unsetenv("SPANPROF_CPU_TIME");
    sp_log_configure(SPANPROF_LOG_WARN, count_warning, NULL);
    warnings = 0;
    assert_true(sp_config_init(&config, &options));
    sp_config_deinit(&config);
    return config.tracer.cpu_time;
}

static void cpu_time_is_that_of_the_option_else_of_the_environment(void **state)
{
    (void)state;
    static const struct {
        const char *variable, *option;
        sp_cpu_time wanted;
        unsigned warnings;
    } cases[] = {
        {NULL, NULL, SP_CPU_TIME_NONE, 0},       {"", NULL, SP_CPU_TIME_NONE, 0},
        {"none", NULL, SP_CPU_TIME_NONE, 0},     {"root", NULL, SP_CPU_TIME_ROOT, 0},
        {"ALL", NULL, SP_CPU_TIME_ALL, 0},       {"all", "root", SP_CPU_TIME_ROOT, 0},
        {"nonsense", "all", SP_CPU_TIME_ALL, 0}, {"nonsense", NULL, SP_CPU_TIME_NONE, 1},
        {"root,all", NULL, SP_CPU_TIME_NONE, 1}, {"1", NULL, SP_CPU_TIME_NONE, 1},
        {NULL, "nonsense", SP_CPU_TIME_NONE, 1},
    };
    for (size_t i = 0; i < SP_ARRAY_LENGTH(cases); i++) {
        assert_int_equal(read_cpu_time(cases[i].variable, cases[i].option), cases[i].wanted);
        assert_int_equal(warnings, cases[i].warnings);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cpu_time_is_that_of_the_option_else_of_the_environment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
