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

/* Sixteen at once are as one by one: every byte in every place, every digit and what is none in
 * every place. */
static void hex_by_sixteen_is_the_same(void **state)
{
    (void)state;
    for (int place = 0; place < 8; place++)
        for (int byte = 0; byte < 256; byte++) {
            uint8_t in[8] = {0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef};
            char text[17], want[17];
            uint64_t word, out;
            in[place] = (uint8_t)byte;
            memcpy(&word, in, sizeof word);
            memset(text, 'x', sizeof text);
            sp_hex_encode(want, in, 8);
            sp_hex_encode16(text, word);
            assert_memory_equal(text, want, 16);
            assert_int_equal(text[16], 'x');
            assert_true(sp_hex_decode16(&out, text));
            assert_int_equal(out, word);
        }
    for (int place = 0; place < 16; place++)
        for (int c = -128; c < 128; c++) {
            char text[] = "0123456789abcdef";
            uint8_t bytes[8];
            uint64_t out;
            text[place] = (char)c;
            bool good = sp_hex_decode(bytes, text, 8, false);
            assert_int_equal(sp_hex_decode16(&out, text), good);
            if (good)
                assert_memory_equal(&out, bytes, 8);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hex_every_byte_survives),
        cmocka_unit_test(hex_is_lower_case_high_digit_first),
        cmocka_unit_test(hex_upper_case_only_when_allowed),
        cmocka_unit_test(hex_other_characters_are_refused),
        cmocka_unit_test(hex_by_sixteen_is_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
