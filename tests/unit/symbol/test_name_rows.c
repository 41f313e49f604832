/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of addresses, added function by function in any order. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "core/compiler.h"
#include "symbol/name_rows.h"

static sp_name_rows rows;

static int tear_down(void **state)
{
    (void)state;
    sp_name_rows_deinit(&rows);
    return 0;
}

static void assert_row(uint64_t address, uint64_t start, uint64_t end)
{
    const sp_name_row *row = sp_name_rows_find(&rows, address);
    assert_non_null(row);
    assert_int_equal(row->start, start);
    assert_int_equal(row->end, end);
}

static void rows_are_found_by_any_of_their_addresses(void **state)
{
    (void)state;
    const uint64_t last[] = {300, 310}, first[] = {100, 104, 120}, middle[] = {120, 121};
    sp_name_rows_add(&rows, last, SP_ARRAY_LENGTH(last));
    sp_name_rows_add(&rows, first, SP_ARRAY_LENGTH(first));
    sp_name_rows_add(&rows, middle, SP_ARRAY_LENGTH(middle));
    assert_row(100, 100, 104);
    assert_row(103, 100, 104);
    assert_row(104, 104, 120);
    assert_row(119, 104, 120);
    assert_row(120, 120, 121);
    assert_row(309, 300, 310);
    assert_null(sp_name_rows_find(&rows, 99));
    assert_null(sp_name_rows_find(&rows, 121));
    assert_null(sp_name_rows_find(&rows, 310));
}

static void rows_that_overlap_are_not_added(void **state)
{
    (void)state;
    const uint64_t there[] = {100, 110, 120};
    const uint64_t same[] = {100, 110, 120}, above[] = {119, 130}, below[] = {90, 101}, one[] = {5};
    sp_name_rows_add(&rows, there, SP_ARRAY_LENGTH(there));
    sp_name_rows_add(&rows, same, SP_ARRAY_LENGTH(same));
    sp_name_rows_add(&rows, above, SP_ARRAY_LENGTH(above));
    sp_name_rows_add(&rows, below, SP_ARRAY_LENGTH(below));
    sp_name_rows_add(&rows, one, SP_ARRAY_LENGTH(one));
    sp_name_rows_add(&rows, one, 0);
    assert_int_equal(rows.count, 2);
}

static void rows_stay_within_their_bound(void **state)
{
    (void)state;
    for (uint64_t at = 0; at < 2 * SP_NAME_ROWS_MAX; at++) {
        const uint64_t steps[] = {10 * at, 10 * at + 10};
        sp_name_rows_add(&rows, steps, SP_ARRAY_LENGTH(steps));
        assert_true(rows.count <= SP_NAME_ROWS_MAX);
        assert_row(10 * at + 9, 10 * at, 10 * at + 10);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(rows_are_found_by_any_of_their_addresses, tear_down),
        cmocka_unit_test_teardown(rows_that_overlap_are_not_added, tear_down),
        cmocka_unit_test_teardown(rows_stay_within_their_bound, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
