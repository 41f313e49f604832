/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "core/reach.h"

static void an_array_begins_with_its_first_length_and_doubles(void **state)
{
    (void)state;
    uint32_t *numbers = NULL;
    size_t capacity = 0;
    assert_true(SP_REACH(numbers, 0, capacity, 3));
    assert_int_equal(capacity, 3);
    for (uint32_t n = 0; n < 100; n++) {
        assert_true(SP_REACH(numbers, n, capacity, 3));
        numbers[n] = n;
    }
    assert_int_equal(capacity, 192);
    for (uint32_t n = 0; n < 100; n++)
        assert_int_equal(numbers[n], n);
    free(numbers);
}

static void an_element_far_behind_is_reached_at_once(void **state)
{
    (void)state;
    uint64_t *numbers = NULL;
    size_t capacity = 0;
    assert_true(SP_REACH(numbers, 1000, capacity, 8));
    assert_int_equal(capacity, 1024);
    numbers[1000] = 1;
    free(numbers);
}

/* Where the bytes, or the number of elements, would wrap to something small. */
static void what_cannot_be_had_changes_nothing(void **state)
{
    (void)state;
    const size_t unreachable[] = {SIZE_MAX, SIZE_MAX - 1, SIZE_MAX / 2 + 1, SIZE_MAX / 8 + 1,
                                  SIZE_MAX / 8};
    uint64_t *numbers = NULL;
    size_t capacity = 0;
    assert_true(SP_REACH(numbers, 0, capacity, 2));
    numbers[1] = 7;
    uint64_t *before = numbers;
    for (size_t i = 0; i < sizeof unreachable / sizeof *unreachable; i++) {
        assert_false(SP_REACH(numbers, unreachable[i], capacity, 2));
        assert_ptr_equal(numbers, before);
        assert_int_equal(capacity, 2);
    }
    assert_int_equal(numbers[1], 7);
    free(numbers);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_array_begins_with_its_first_length_and_doubles),
        cmocka_unit_test(an_element_far_behind_is_reached_at_once),
        cmocka_unit_test(what_cannot_be_had_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
