/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/cells.h"

enum { PERIOD = 1000, TIMES = 20000, BEGIN = 5000 };

static uint64_t random_state;

static double draw(void)
{
    random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (double)(random_state >> 11) * 0x1p-53;
}

/* What the moments stand for that are between FROM and TO, both from the begin of the cells. */
static uint64_t seen(uint64_t from, uint64_t to)
{
    sp_cells cells = {.begin_ns = BEGIN};
    uint64_t sum = 0;
    sp_cells_moment moment = sp_cells_choose(&cells, BEGIN, PERIOD, draw());
    for (; moment.ns < BEGIN + to; moment = sp_cells_choose(&cells, moment.ns, PERIOD, draw()))
        if (moment.ns >= BEGIN + from)
            sum += moment.cells * PERIOD;
    return sum;
}

/* The random numbers are the same in each run, so four standard errors are a fixed bound. */
static void check_mean(uint64_t from, uint64_t to)
{
    double sum = 0, squares = 0;
    random_state = 1;
    for (int i = 0; i < TIMES; i++) {
        double one = (double)seen(from, to);
        sum += one;
        squares += one * one;
    }
    double mean = sum / TIMES, off = mean - (double)(to - from);
    double error2 = (squares / TIMES - mean * mean) / TIMES;
    assert_true(off * off <= 16 * error2);
}

static void cells_sum_is_right_from_the_begin_to_any_end(void **state)
{
    (void)state;
    for (uint64_t to = 100; to < 4000; to += 300)
        check_mean(0, to);
}

static void cells_sum_is_right_anywhere(void **state)
{
    (void)state;
    for (uint64_t from = 700; from < 3000; from += 700)
        check_mean(from, from + 1700);
}

static void cells_that_were_missed_are_in_the_next_moment(void **state)
{
    (void)state;
    sp_cells cells = {.begin_ns = BEGIN};
    assert_int_equal(sp_cells_choose(&cells, BEGIN, PERIOD, 0.5).ns, BEGIN + 500);
    sp_cells_moment late = sp_cells_choose(&cells, BEGIN + 4 * PERIOD + 1, PERIOD, 0.25);
    assert_int_equal(late.ns, BEGIN + 4 * PERIOD + 250);
    assert_int_equal(late.cells, 4);
    assert_int_equal(sp_cells_choose(&cells, late.ns, PERIOD, 0).cells, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cells_sum_is_right_from_the_begin_to_any_end),
        cmocka_unit_test(cells_sum_is_right_anywhere),
        cmocka_unit_test(cells_that_were_missed_are_in_the_next_moment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
