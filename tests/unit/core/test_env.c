/* SPDX-License-Identifier: Apache-2.0 */
/* Each value that cannot be used is named in exactly one warning; each that can in none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "core/compiler.h"
#include "core/env.h"
#include "core/log.h"

#define NAME "SPANPROF_TEST_VALUE"

#define KEPT "SPANPROF_TEST_KEPT"

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
char *__real_strdup(const char *text);
void __real_free(void *memory);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
char *__wrap_strdup(const char *text);
void __wrap_free(void *memory);

static int until_failure = -1; /* < 0: no allocation fails */
static int live;               /* allocations that were not freed */

static bool fails(void)
{
    bool failed = until_failure >= 0 && until_failure-- == 0;
    live += !failed;
    return failed;
}

void *__wrap_malloc(size_t bytes)
{
    return fails() ? NULL : __real_malloc(bytes);
}

void *__wrap_calloc(size_t count, size_t bytes)
{
    return fails() ? NULL : __real_calloc(count, bytes);
}

char *__wrap_strdup(const char *text)
{
    return fails() ? NULL : __real_strdup(text);
}

void __wrap_free(void *memory)
{
    live -= memory != NULL;
    __real_free(memory);
}

static int warnings;
static char last_warning[1100];

static void count_warning(spanprof_log_level level, const char *line, void *user)
{
    (void)user;
    assert_int_equal(level, SPANPROF_LOG_WARN);
    warnings++;
    strncpy(last_warning, line, sizeof last_warning - 1);
}

static int set_up(void **state)
{
    (void)state;
    warnings = 0;
    unsetenv(NAME);
    sp_log_configure(SPANPROF_LOG_WARN, count_warning, NULL);
    return 0;
}

static void set(const char *value)
{
    setenv(NAME, value, 1);
    warnings = 0;
}

static void assert_one_warning_names(const char *value, const char *instead)
{
    assert_int_equal(warnings, 1);
    assert_non_null(strstr(last_warning, NAME));
    assert_non_null(strstr(last_warning, value));
    assert_non_null(strstr(last_warning, instead));
}

static void env_empty_is_unset(void **state)
{
    (void)state;
    assert_null(sp_env(NAME));
    set("");
    assert_null(sp_env(NAME));
    set("x");
    assert_string_equal(sp_env(NAME), "x");
}

static void env_u32_unset_or_good_is_silent(void **state)
{
    (void)state;
    assert_int_equal(sp_env_u32(NAME, 1, 10000, 99), 99);
    set("1");
    assert_int_equal(sp_env_u32(NAME, 1, 10000, 99), 1);
    set("10000");
    assert_int_equal(sp_env_u32(NAME, 1, 10000, 99), 10000);
    assert_int_equal(warnings, 0);
}

static void env_u32_bad_warns_and_falls_back(void **state)
{
    (void)state;
    static const char *const bad[] = {"abc", "0",   "10001", "1000000",
                                      "-5",  "+5",  "5 ",    " 5",
                                      "5x",  "1e3", "0x10",  "99999999999999999999999"};
    for (size_t i = 0; i < SP_ARRAY_LENGTH(bad); i++) {
        set(bad[i]);
        assert_int_equal(sp_env_u32(NAME, 1, 10000, 99), 99);
        assert_one_warning_names(bad[i], "using 99");
    }
}

static void env_bool_knows_true_and_false_only(void **state)
{
    (void)state;
    assert_false(sp_env_bool(NAME));
    set("TRUE");
    assert_true(sp_env_bool(NAME));
    set("False");
    assert_false(sp_env_bool(NAME));
    assert_int_equal(warnings, 0);
    set("1");
    assert_false(sp_env_bool(NAME));
    assert_one_warning_names("=1 ", "using false");
}

static const char *const words[] = {"otlp", "file", "none"};

static void env_word_takes_any_case(void **state)
{
    (void)state;
    assert_int_equal(sp_env_word(NAME, words, 3, 2), 2);
    set("File");
    assert_int_equal(sp_env_word(NAME, words, 3, 2), 1);
    assert_int_equal(warnings, 0);
    set("fil");
    assert_int_equal(sp_env_word(NAME, words, 3, 2), 2);
    assert_one_warning_names("otlp, file, none", "using none");
}

static void word_list_collects_what_it_knows(void **state)
{
    (void)state;
    assert_int_equal(sp_parse_word_list(NAME, "otlp,file", words, 3, 4), 3);
    assert_int_equal(sp_parse_word_list(NAME, " FILE ,, none ,", words, 3, 4), 6);
    assert_int_equal(warnings, 0);
    assert_int_equal(sp_parse_word_list(NAME, "file,zipkin", words, 3, 4), 2);
    assert_one_warning_names("zipkin", "none");
}

static void word_list_of_nothing_falls_back(void **state)
{
    (void)state;
    assert_int_equal(sp_parse_word_list(NAME, "", words, 3, 4), 4);
    assert_int_equal(sp_parse_word_list(NAME, " , ,", words, 3, 4), 4);
    assert_int_equal(warnings, 0);
    assert_int_equal(sp_parse_word_list(NAME, "otl", words, 3, 4), 4);
    assert_int_equal(warnings, 1);
}

static void parse_u64_takes_the_whole_range_and_no_more(void **state)
{
    (void)state;
    uint64_t value = 7;
    assert_true(sp_parse_u64("18446744073709551615", &value));
    assert_true(value == UINT64_MAX);
    assert_true(sp_parse_u64("0", &value));
    assert_true(value == 0);
    value = 7;
    assert_false(sp_parse_u64("18446744073709551616", &value));
    assert_false(sp_parse_u64("", &value));
    assert_false(sp_parse_u64("-1", &value));
    assert_true(value == 7);
}

/* For each N the Nth allocation fails. */
static void env_keep_without_memory_keeps_and_leaks_nothing(void **state)
{
    (void)state;
    for (int n = 0, failed = true; failed; n++) {
        setenv(KEPT, "old", 1);
        live = 0;
        until_failure = n;
        sp_env_keep();
        failed = until_failure < 0;
        until_failure = -1;
        unsetenv(KEPT);
        if (failed) {
            assert_int_equal(live, 0);
            assert_null(sp_env(KEPT));
        }
    }
    assert_string_equal(sp_env(KEPT), "old");
    setenv(KEPT, "new", 1);
    assert_string_equal(sp_env(KEPT), "new");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(env_empty_is_unset, set_up),
        cmocka_unit_test_setup(env_u32_unset_or_good_is_silent, set_up),
        cmocka_unit_test_setup(env_u32_bad_warns_and_falls_back, set_up),
        cmocka_unit_test_setup(env_bool_knows_true_and_false_only, set_up),
        cmocka_unit_test_setup(env_word_takes_any_case, set_up),
        cmocka_unit_test_setup(word_list_collects_what_it_knows, set_up),
        cmocka_unit_test_setup(word_list_of_nothing_falls_back, set_up),
        cmocka_unit_test_setup(parse_u64_takes_the_whole_range_and_no_more, set_up),
        cmocka_unit_test_setup(env_keep_without_memory_keeps_and_leaks_nothing, set_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
