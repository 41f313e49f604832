/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "core/steal.h"

#define SECOND UINT64_C(1000000000)

static int begin(void **state)
{
    static sp_steal steal;
    memset(&steal, 0, sizeof steal);
    *state = &steal;
    sp_steal_share_of(&steal, "cpu  1000 0 0 5000 0 0 0 100 0 0\n", 0, 0);
    return 0;
}

static double share(sp_steal *steal, unsigned busy, unsigned stolen, uint64_t on_core, uint64_t ran)
{
    char stat[100];
    snprintf(stat, sizeof stat, "cpu  %u 20 30 5000 7 40 10 %u 0 0\ncpu0 1 2 3\n",
             1000 + busy - 100, 100 + stolen);
    return sp_steal_share_of(steal, stat, on_core, ran);
}

static void steal_is_what_visits_saw_beyond_the_clocks(void **state)
{
    assert_float_equal(share(*state, 1000, 100, 105 * SECOND, 100 * SECOND), 0.05, 1e-12);
}

static void steal_is_not_more_than_the_kernel_tells(void **state)
{
    assert_float_equal(share(*state, 1000, 20, 105 * SECOND, 100 * SECOND), 0.02, 1e-12);
}

static void steal_is_none_where_the_kernel_tells_none(void **state)
{
    assert_float_equal(share(*state, 1000, 0, 105 * SECOND, 100 * SECOND), 0, 0);
}

static void steal_is_never_negative(void **state)
{
    assert_float_equal(share(*state, 1000, 100, 95 * SECOND, 100 * SECOND), 0, 0);
    assert_float_equal(share(*state, 1000, 100, 0, 0), 0, 0);
}

/* Each window counts 7/8 of the one behind it. */
static void steal_is_of_the_last_windows(void **state)
{
    assert_float_equal(share(*state, 1000, 100, 100 * SECOND, 100 * SECOND), 0, 0);
    double second = share(*state, 2000, 200, 110 * SECOND, 100 * SECOND);
    assert_float_equal(second, 10 / (87.5 + 100), 1e-9);
    double before = second;
    for (unsigned i = 3; i < 100; i++) {
        double now = share(*state, i * 1000, i * 200, 110 * SECOND, 100 * SECOND);
        assert_true(now >= before);
        before = now;
    }
    assert_float_equal(before, 0.1, 1e-4);
}

/* What cannot be read, numbers that go back, columns that old kernels do not have: nothing is
 * stolen, and the next window is as if it were the first. */
static void steal_makes_nothing_of_what_makes_no_sense(void **state)
{
    static const char *const texts[] = {"", "cpu", "cpu  1 2 3 4\n", "intr 5 6 7 8 9 10 11 12\n",
                                        "cpu  1 0 0 1 0 0 0 1 0 0\n"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        assert_float_equal(sp_steal_share_of(*state, texts[i], 0, 0), 0, 0);
    assert_float_equal(
        sp_steal_share_of(*state, "cpu  101 0 0 1 0 0 0 11 0 0\n", 105 * SECOND, 100 * SECOND),
        0.05, 1e-12);
}

static void steal_of_this_machine_is_bounded(void **state)
{
    sp_steal_begin(*state);
    for (volatile int i = 0; i < 100000000; i++)
        ;
    double some = sp_steal_share(*state, 200 * SECOND, 100 * SECOND);
    assert_true(some >= 0 && some <= 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(steal_is_what_visits_saw_beyond_the_clocks, begin),
        cmocka_unit_test_setup(steal_is_not_more_than_the_kernel_tells, begin),
        cmocka_unit_test_setup(steal_is_none_where_the_kernel_tells_none, begin),
        cmocka_unit_test_setup(steal_is_never_negative, begin),
        cmocka_unit_test_setup(steal_is_of_the_last_windows, begin),
        cmocka_unit_test_setup(steal_makes_nothing_of_what_makes_no_sense, begin),
        cmocka_unit_test_setup(steal_of_this_machine_is_bounded, begin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
