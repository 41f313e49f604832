/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "core/hex.h"

static void hex_every_byte_survives(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 256; i++) {
        char text[3];
        uint8_t in = (uint8_t)i, out = 0;
        sp_hex_encode(text, &in, 1);
        assert_int_equal(strlen(text), 2);
        assert_true(sp_hex_decode(&out, text, 1, false));
        assert_int_equal(out, in);
    }
}

static void hex_is_lower_case_high_digit_first(void **state)
{
    (void)state;
    char text[9];
    sp_hex_encode(text, (const uint8_t[]){0x0a, 0xbc, 0xde, 0xf1}, 4);
    assert_string_equal(text, "0abcdef1");
    sp_hex_encode(text, NULL, 0);
    assert_string_equal(text, "");
}

static void hex_upper_case_only_when_allowed(void **state)
{
    (void)state;
    uint8_t out[2];
    assert_false(sp_hex_decode(out, "aB10", 2, false));
    assert_true(sp_hex_decode(out, "aB10", 2, true));
    assert_int_equal(out[0], 0xab);
}

/* Every character but the digits is refused, in either place. */
static void hex_other_characters_are_refused(void **state)
{
    (void)state;
    int digits = 0;
    for (int c = -128; c < 128; c++) {
        uint8_t out;
        char high[2] = {(char)c, '0'}, low[2] = {'0', (char)c};
        bool good = sp_hex_decode(&out, high, 1, true);
        assert_int_equal(good, sp_hex_decode(&out, low, 1, true));
        digits += good;
    }
    assert_int_equal(digits, 22);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hex_every_byte_survives),
        cmocka_unit_test(hex_is_lower_case_high_digit_first),
        cmocka_unit_test(hex_upper_case_only_when_allowed),
        cmocka_unit_test(hex_other_characters_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
