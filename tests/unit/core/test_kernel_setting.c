/* SPDX-License-Identifier: Apache-2.0 */
#include "core/kernel_setting.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

static void kernel_setting_is_the_number_of_the_file(void **state)
{
    (void)state;
    assert_true(sp_kernel_setting("kernel/pid_max", -5) > 300);
}

static void kernel_setting_without_a_number_is_the_other(void **state)
{
    (void)state;
    errno = EDOM;
    assert_int_equal(sp_kernel_setting("kernel/no such setting", -5), -5);
    assert_int_equal(sp_kernel_setting("kernel/ostype", -5), -5);
    assert_int_equal(errno, EDOM);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kernel_setting_is_the_number_of_the_file),
        cmocka_unit_test(kernel_setting_without_a_number_is_the_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
