/* SPDX-License-Identifier: Apache-2.0 */
/* Values of equal keys are added up. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tool/model/key_sums.h"

static sp_key_sums table;

static void add(const char *key, size_t length, uint64_t value)
{
    assert_true(sp_key_sums_add(&table, key, length, value));
}

static int clear(void **state)
{
    (void)state;
    sp_key_sums_deinit(&table);
    return 0;
}

static void empty_table_has_no_largest_sum(void **state)
{
    (void)state;
    assert_int_equal(sp_key_sums_largest(&table), SP_INTERN_FAILED);
}

static void equal_keys_are_added_up(void **state)
{
    (void)state;
    add("lock", 4, 3);
    add("semaphore", 9, 5);
    add("locker", 4, 4); /* its first four bytes */
    assert_int_equal(table.keys.count, 2);
    uint32_t largest = sp_key_sums_largest(&table);
    assert_int_equal(table.sums[largest], 7);
    assert_string_equal(sp_intern_key(&table.keys, largest), "lock");
}

static void of_equal_sums_the_first_is_the_largest(void **state)
{
    (void)state;
    add("b", 1, 2);
    add("a", 1, 2);
    assert_string_equal(sp_intern_key(&table.keys, sp_key_sums_largest(&table)), "b");
}

static void sum_begins_at_zero_after_the_table_has_grown(void **state)
{
    (void)state;
    for (unsigned round = 0; round < 2; round++)
        for (uint32_t key = 0; key < 1000; key++)
            assert_true(sp_key_sums_add(&table, &key, sizeof key, key));
    assert_int_equal(table.keys.count, 1000);
    for (uint32_t key = 0; key < 1000; key++)
        assert_int_equal(table.sums[key], 2 * key);
}

static void sum_does_not_overflow(void **state)
{
    (void)state;
    add("a", 1, INT64_MAX);
    add("a", 1, INT64_MAX);
    assert_int_equal(table.sums[0], INT64_MAX);
}

int main(void)
{
#define TEST(function) cmocka_unit_test_teardown(function, clear)
    const struct CMUnitTest tests[] = {
        TEST(empty_table_has_no_largest_sum),
        TEST(equal_keys_are_added_up),
        TEST(of_equal_sums_the_first_is_the_largest),
        TEST(sum_begins_at_zero_after_the_table_has_grown),
        TEST(sum_does_not_overflow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
