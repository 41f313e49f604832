/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "core/steal.h"

static int begin(void **state)
{
    static sp_steal steal;
    memset(&steal, 0, sizeof steal);
    *state = &steal;
    return 0;
}

static void steal_of_busy_cores_is_all_theirs(void **state)
{
    sp_steal_look_at(*state, "cpu  30 0 0 0 0 0 0 0 0 0\n"
                             "cpu0 10 0 0 500 0 0 0 7 0 0\n"
                             "cpu1 20 0 0 500 0 0 0 0 0 0\n"
                             "intr 1 2 3\n");
    assert_float_equal(sp_steal_take(*state), 0, 0); /* of the time before nothing is known */
    sp_steal_look_at(*state, "cpu0 50 10 20 500 0 5 5 17 0 0\n"
                             "cpu1 30 0 0 500 0 0 0 0 0 0\n");
    assert_float_equal(sp_steal_take(*state), 10.0 / (80 + 10), 1e-12);
    assert_float_equal(sp_steal_take(*state), 0, 0);
}

static void steal_of_a_core_that_was_idle_is_shared_out(void **state)
{
    sp_steal_look_at(*state, "cpu0 1 0 0 1 0 0 0 0 0 0\n");
    sp_steal_look_at(*state, "cpu0 31 0 0 51 10 0 0 10 0 0\n");
    assert_float_equal(sp_steal_take(*state), 10 * 0.4 / 30, 1e-12);
}

static void steal_adds_up_over_looks(void **state)
{
    sp_steal_look_at(*state, "cpu0 1 0 0 0 0 0 0 0 0 0\n");
    sp_steal_look_at(*state, "cpu0 11 0 0 0 0 0 0 1 0 0\n");
    sp_steal_look_at(*state, "cpu0 21 0 0 0 0 0 0 3 0 0\n");
    assert_float_equal(sp_steal_take(*state), 3.0 / 20, 1e-12);
}

/* A core that comes and goes, numbers that go back, lines that are cut, words that are none, and columns that old kernels do not have. */
static void steal_makes_nothing_of_what_makes_no_sense(void **state)
{
    static const char *const texts[] = {
        "",
        "cpu0 10 0 0 0 0 0 0 5 0 0",
        "cpu0 10 0 0 0\n",
        "cpu99999 10 0 0 0 0 0 0 5 0 0\n",
        "cpu-1 10 0 0 0 0 0 0 5 0 0\n",
        "cpu 5 10 0 0 0 0 0 0 5 0 0\n",
        "cpux\ncpu\n",
        "intr 5\ncpu0 50 0 0 0 0 0 0 40 0 0\n",
    };
    sp_steal_look_at(*state, "cpu0 1 0 0 0 0 0 0 0 0 0\ncpu1 9 0 0 0 0 0 0 9 0 0\n");
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        sp_steal_look_at(*state, texts[i]);
    sp_steal_look_at(*state, "cpu1 8 0 0 0 0 0 0 10 0 0\n");
    assert_float_equal(sp_steal_take(*state), 0, 0);
    sp_steal_look_at(*state, "cpu0 2 0 0 0 0 0 0 1 0 0\n");
    assert_float_equal(sp_steal_take(*state), 1, 1e-12);
}

static void steal_of_this_machine_is_no_nonsense(void **state)
{
    sp_steal_look(*state);
    for (volatile int i = 0; i < 100000000; i++)
        ;
    sp_steal_look(*state);
    double share = sp_steal_take(*state);
    assert_true(share >= 0 && share < 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(steal_of_busy_cores_is_all_theirs, begin),
        cmocka_unit_test_setup(steal_of_a_core_that_was_idle_is_shared_out, begin),
        cmocka_unit_test_setup(steal_adds_up_over_looks, begin),
        cmocka_unit_test_setup(steal_makes_nothing_of_what_makes_no_sense, begin),
        cmocka_unit_test_setup(steal_of_this_machine_is_no_nonsense, begin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
