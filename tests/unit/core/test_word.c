/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "core/word.h"

static void word_has_its_bytes_as_they_lie_in_memory(void **state)
{
    (void)state;
    uint8_t bytes[17] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17};
    assert_int_equal(sp_word_load(bytes, 0), UINT64_C(0x0807060504030201));
    assert_int_equal(sp_word_load(bytes, 1), UINT64_C(0x100f0e0d0c0b0a09));
    assert_int_equal(sp_word_load(bytes + 1, 0), UINT64_C(0x0908070605040302));
    assert_int_equal(sp_word_load_alone(bytes + 1, 1), UINT64_C(0x11100f0e0d0c0b0a));
}

static void stored_word_touches_its_own_bytes_only(void **state)
{
    (void)state;
    uint8_t bytes[26] = {0};
    sp_word_store(bytes + 1, 1, UINT64_MAX);
    for (size_t i = 0; i < sizeof bytes; i++)
        assert_int_equal(bytes[i], i >= 9 && i < 17 ? 0xff : 0);
    assert_int_equal(sp_word_load(bytes + 1, 1), UINT64_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(word_has_its_bytes_as_they_lie_in_memory),
        cmocka_unit_test(stored_word_touches_its_own_bytes_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
