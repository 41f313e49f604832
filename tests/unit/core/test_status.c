/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include <spanprof/spanprof.h>

static void status_names_lose_the_prefix(void **state)
{
    (void)state;
    assert_string_equal(spanprof_status_name(SPANPROF_OK), "OK");
    assert_string_equal(spanprof_status_name(SPANPROF_ERROR_TIMEOUT), "ERROR_TIMEOUT");
    assert_string_equal(spanprof_status_text(SPANPROF_OK), "done");
}

/* Codes are stable: 0, -1, -2, … without a gap, each with a name and a sentence of its own. */
static void status_codes_count_down_without_a_gap(void **state)
{
    (void)state;
    static const int codes[] = {
#define CODE(name, code, text) SPANPROF_##name,
        SPANPROF_STATUS_MAP(CODE)
#undef CODE
    };
    int count = (int)(sizeof codes / sizeof codes[0]);
    for (int i = 0; i < count; i++) {
        assert_int_equal(codes[i], -i);
        for (int k = 0; k < i; k++)
            assert_string_not_equal(spanprof_status_text((spanprof_status)-i),
                                    spanprof_status_text((spanprof_status)-k));
    }
}

static void status_unknown_number_has_words(void **state)
{
    (void)state;
    assert_string_equal(spanprof_status_name((spanprof_status)-999), "UNKNOWN");
    assert_non_null(spanprof_status_text((spanprof_status)1));
}

static void version_agrees_with_its_numbers(void **state)
{
    (void)state;
    char text[32];
    snprintf(text, sizeof text, "%d.%d.%d", SPANPROF_VERSION_MAJOR, SPANPROF_VERSION_MINOR,
             SPANPROF_VERSION_PATCH);
    assert_string_equal(text, SPANPROF_VERSION);
    assert_string_equal(text, spanprof_version());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(status_names_lose_the_prefix),
        cmocka_unit_test(status_codes_count_down_without_a_gap),
        cmocka_unit_test(status_unknown_number_has_words),
        cmocka_unit_test(version_agrees_with_its_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
