/* SPDX-License-Identifier: Apache-2.0 */
#include "core/counted.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

static void one_is_singular_and_all_others_are_plural(void **state)
{
    (void)state;
    assert_string_equal(SP_COUNTED(0, "span"), "0 spans");
    assert_string_equal(SP_COUNTED(1, "span"), "1 span");
    assert_string_equal(SP_COUNTED(2, "span"), "2 spans");
    assert_string_equal(SP_COUNTED(1, "other process"), "1 other process");
    assert_string_equal(SP_COUNTED(3, "other process"), "3 other processes");
    assert_string_equal(SP_COUNTED(3, "switch"), "3 switches");
    assert_string_equal(SP_COUNTED(UINT64_MAX, "byte"), "18446744073709551615 bytes");
}

static void two_in_one_call_do_not_share_memory(void **state)
{
    char text[64];
    (void)state;
    snprintf(text, sizeof text, "%s, %s", SP_COUNTED(1, "span"), SP_COUNTED(2, "sample"));
    assert_string_equal(text, "1 span, 2 samples");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_is_singular_and_all_others_are_plural),
        cmocka_unit_test(two_in_one_call_do_not_share_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
