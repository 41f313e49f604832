/* SPDX-License-Identifier: Apache-2.0 */
/* Variables that are none of ours are named, once a process. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/log.h"
#include "sdk/variables.h"

static char said[4096];

static void keep_line(spanprof_log_level level, const char *line, void *user)
{
    (void)level;
    (void)user;
    strcat(strcat(said, line), "\n");
}

static void unknown_variables_are_named_with_what_was_meant(void **state)
{
    (void)state;
    setenv("SPANPROF_WALHZ", "secret", 1);
    setenv("SPANPROF_PROFILE", "cpu", 1);
    setenv("SPANPROF_EXPORTERS", "file", 1);
    setenv("SPANPROF_COLOR_OF_THE_PAGE", "red", 1);
    setenv("SPANPROF_", "x", 1);
    setenv("SPANPROF_CPU_HZ", "99", 1);
    setenv("SPANPROF_TEST_PLANT", "x", 1);
    setenv("MY_SPANPROF_FILE", "x", 1);
    sp_log_configure(SPANPROF_LOG_WARN, keep_line, NULL);
    sp_variables_check();
    assert_non_null(strstr(said, "SPANPROF_WALHZ is no variable of spanprof: SPANPROF_WALL_HZ is"));
    assert_non_null(
        strstr(said, "SPANPROF_PROFILE is no variable of spanprof: SPANPROF_PROFILES is"));
    assert_non_null(
        strstr(said, "SPANPROF_EXPORTERS is no variable of spanprof: SPANPROF_EXPORTER is"));
    assert_non_null(
        strstr(said, "SPANPROF_COLOR_OF_THE_PAGE is no variable of spanprof: it does nothing"));
    assert_null(strstr(said, "SPANPROF_CPU_HZ"));
    assert_null(strstr(said, "TEST_"));
    assert_null(strstr(said, "MY_"));
    assert_null(strstr(said, "secret"));
    said[0] = 0;
    sp_variables_check();
    assert_string_equal(said, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unknown_variables_are_named_with_what_was_meant),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
