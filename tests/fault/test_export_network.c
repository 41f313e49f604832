/* SPDX-License-Identifier: Apache-2.0 */
/* libcurl is loaded when something is to be sent, and not before; where it cannot be loaded, that
 * is one error. A process has it for good once it was loaded, so the test runs itself in roles,
 * with a directory in front of the system's whose libcurl is none. */
#include "fault/export_fixture.h"
#include "export/export_internal.h"

#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;
static const char *program;
static char directory[64];

static const char *const libraries[] = {"libcurl.so.4", "libcurl-gnutls.so.4"};

static int setup(void **state)
{
    strcpy(directory, "/tmp/spanprof-test-XXXXXX");
    assert_non_null(mkdtemp(directory));
    for (int i = 0; i < 2; i++) {
        char path[128];
        snprintf(path, sizeof path, "%s/%s", directory, libraries[i]);
        FILE *file = fopen(path, "w");
        assert_non_null(file);
        fputs("no library", file);
        fclose(file);
    }
    return fixture_setup(state);
}

static int teardown(void **state)
{
    for (int i = 0; i < 2; i++) {
        char path[128];
        snprintf(path, sizeof path, "%s/%s", directory, libraries[i]);
        unlink(path);
    }
    rmdir(directory);
    return fixture_teardown(state);
}

/* Its exit code, with the broken libraries in front. */
static int run(const char *role)
{
    pid_t child;
    int status;
    char *arguments[] = {(char *)program, (char *)role, directory, NULL};
    setenv("LD_LIBRARY_PATH", directory, 1);
    assert_int_equal(posix_spawn(&child, program, NULL, NULL, arguments, environ), 0);
    unsetenv("LD_LIBRARY_PATH");
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int role_sends(void)
{
    fixture f = {0};
    spanprof_error error = {0};
    fixture_prepare(&f, 9);
    for (int i = 0; i < 2; i++) /* and is said once */
        assert_null(sp_exporter_create(&f.config, &f.resource, &error));
    assert_int_equal(error.status, SPANPROF_ERROR_SYSTEM);
    assert_non_null(strstr(error.message, "libcurl"));
    assert_int_equal(log_awaited("export: loading libcurl: ", 1), 1);
    assert_int_equal(log_awaited("libcurl.so.4: file too short", 1), 1);
    assert_int_equal(log_awaited("", 1), 1);
    assert_false(sp_exporter_network_is_loaded());
    char *shown = sp_endpoint_shown("http://user:pa?ss@host/");
    assert_string_equal(shown, "http://***@host/");
    free(shown);
    fixture_end(&f);
    return 0;
}

static int role_writes(const char *where)
{
    fixture f = {0};
    char prefix[96], path[128];
    snprintf(prefix, sizeof prefix, "%s/out", where);
    fixture_prepare(&f, 9);
    f.config.http[SP_TRACES].enabled = f.config.http[SP_PROFILES].enabled = false;
    f.config.file_enabled = true;
    f.config.file_prefix = prefix;
    fixture_start(&f);
    submit(&f, "profile");
    assert_int_equal(fixture_stop(&f, PATIENCE_NS), SPANPROF_OK);
    static const char *const signals[] = {"traces", "profiles"};
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s.%s.binpb", prefix, signals[i]);
        assert_int_equal(unlink(path), 0);
    }
    assert_int_equal(log_count(""), 0);
    assert_false(sp_exporter_network_is_loaded());
    fixture_end(&f);
    return 0;
}

/* Variables of the network that files have no use for. */
static int role_reads_the_environment(const char *where)
{
    sp_export_config config;
    spanprof_options options = SPANPROF_OPTIONS_INIT;
    options.exporter = "file";
    options.file = where;
    options.endpoint = "http://127.0.0.1:9";
    setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9", 1);
    setenv("OTEL_EXPORTER_OTLP_HEADERS", "a=b", 1);
    assert_true(sp_export_config_init(&config, &options));
    sp_export_config_deinit(&config);
    assert_false(sp_exporter_network_is_loaded());
    return 0;
}

static void libcurl_is_broken_network_exporter_is_refused_with_one_error(void **state)
{
    (void)state;
    assert_int_equal(run("send"), 0);
}

static void libcurl_is_broken_files_are_written(void **state)
{
    (void)state;
    assert_int_equal(run("write"), 0);
}

static void libcurl_is_broken_network_variables_of_a_file_exporter_do_not_matter(void **state)
{
    (void)state;
    assert_int_equal(run("read"), 0);
}

static void libcurl_is_there_it_is_loaded_by_the_first_network_exporter(void **state)
{
    fixture *f = *state;
    assert_false(sp_exporter_network_is_loaded());
    fixture_start(f);
    assert_true(sp_exporter_network_is_loaded());
    fixture_stop(f, PATIENCE_NS);
}

#define CASE(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(int argc, char **argv)
{
    program = argv[0];
    if (argc > 2 && strcmp(argv[1], "send") == 0)
        return role_sends();
    if (argc > 2 && strcmp(argv[1], "write") == 0)
        return role_writes(argv[2]);
    if (argc > 2)
        return role_reads_the_environment(argv[2]);
    const struct CMUnitTest tests[] = {
        CASE(libcurl_is_broken_network_exporter_is_refused_with_one_error),
        CASE(libcurl_is_broken_files_are_written),
        CASE(libcurl_is_broken_network_variables_of_a_file_exporter_do_not_matter),
        CASE(libcurl_is_there_it_is_loaded_by_the_first_network_exporter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
