/* SPDX-License-Identifier: Apache-2.0 */
/* Variables that are none of ours are named, once a process. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

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

/* A second process, because each says it once. */
static void names_of_opentelemetry_are_told_when_a_letter_or_two_differ(void **state)
{
    (void)state;
    pid_t child = fork();
    if (child == 0) {
        said[0] = 0;
        clearenv();
        setenv("OTEL_SERVICE_NAM", "shop", 1);
        setenv("OTEL_EXPORTER_OTLP_ENDPONT", "http://secret", 1);
        setenv("OTEL_EXPORTER_OTLP_TRACE_HEADERS", "x", 1);
        setenv("OTEL_SERVICE_NAME", "shop", 1);
        setenv("OTEL_BLRP_SCHEDULE_DELAY", "1", 1);
        setenv("OTEL_METRICS_EXPORTER", "none", 1);
        setenv("OTEL_EXPORTER_OTLP_LOGS_ENDPOINT", "x", 1);
        setenv("OTEL_EXPORTER_OTLP_METRICS_HEADERS", "x", 1);
        setenv("SPANPROF_HZ", "99", 1);
        setenv("SPANPROF_SERVICE_NAME", "shop", 1);
        setenv("SPANPROF_ENDPOINT", "x", 1);
        sp_log_configure(SPANPROF_LOG_WARN, keep_line, NULL);
        sp_variables_check();
        static const char *const expected[] = {
            "OTEL_SERVICE_NAM is no variable of spanprof: OTEL_SERVICE_NAME is\n",
            "OTEL_EXPORTER_OTLP_ENDPONT is no variable of spanprof: OTEL_EXPORTER_OTLP_ENDPOINT is",
            "OTEL_EXPORTER_OTLP_TRACE_HEADERS is no variable of spanprof: OTEL_EXPORTER_OTLP_",
            "SPANPROF_HZ is no variable of spanprof: SPANPROF_CPU_HZ is\n",
            "SPANPROF_SERVICE_NAME is no variable of spanprof: OTEL_SERVICE_NAME is\n",
            "SPANPROF_ENDPOINT is no variable of spanprof: OTEL_EXPORTER_OTLP_ENDPOINT is\n"};
        size_t lines = 0;
        for (const char *at = said; (at = strchr(at, '\n')) != NULL; at++)
            lines++;
        int wrong = lines == sizeof expected / sizeof *expected ? 0 : 100;
        for (size_t i = 0; i < sizeof expected / sizeof *expected; i++)
            wrong += strstr(said, expected[i]) ? 0 : 1;
        if (wrong || strstr(said, "secret"))
            fprintf(stderr, "%s", said);
        _exit(wrong || strstr(said, "secret"));
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_of_opentelemetry_are_told_when_a_letter_or_two_differ),
        cmocka_unit_test(unknown_variables_are_named_with_what_was_meant),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
