/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "core/compiler.h"
#include "core/utf8.h"

#define REPLACEMENT "\xef\xbf\xbd"

static void utf8_edges_of_each_length_are_valid(void **state)
{
    (void)state;
    static const char *const good[] = {
        "\x01",         "\x7f",         "\xc2\x80",     "\xdf\xbf",         "\xe0\xa0\x80",
        "\xed\x9f\xbf", "\xee\x80\x80", "\xef\xbf\xbf", "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf"};
    for (size_t i = 0; i < SP_ARRAY_LENGTH(good); i++) {
        assert_int_equal(sp_utf8_sequence(good[i], strlen(good[i])), strlen(good[i]));
        assert_true(sp_utf8_valid(good[i], strlen(good[i])));
    }
    assert_int_equal(sp_utf8_sequence("", 1), 1);
    assert_int_equal(sp_utf8_sequence("", 0), 0);
}

static void utf8_overlong_surrogates_and_beyond_are_not(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "\x80",         "\xbf",         "\xc0\x80",         "\xc1\xbf",         "\xe0\x9f\xbf",
        "\xed\xa0\x80", "\xed\xbf\xbf", "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80",
        "\xff",         "\xc2\x41",     "\xe1\x80\x41",     "\xf1\x80\x80\x41"};
    for (size_t i = 0; i < SP_ARRAY_LENGTH(bad); i++) {
        assert_int_equal(sp_utf8_sequence(bad[i], strlen(bad[i])), 0);
        assert_false(sp_utf8_valid(bad[i], strlen(bad[i])));
    }
}

static void utf8_cut_sequence_is_not_valid(void **state)
{
    (void)state;
    static const char *const whole[] = {"\xc3\xa4", "\xe2\x82\xac", "\xf0\x9f\x94\xa5"};
    for (size_t i = 0; i < SP_ARRAY_LENGTH(whole); i++)
        for (size_t left = 1; left < strlen(whole[i]); left++)
            assert_false(sp_utf8_valid(whole[i], left));
}

static void assert_repaired(const char *text, size_t length, const char *expected)
{
    char out[64];
    assert_true(3 * length + 1 <= sizeof out);
    assert_int_equal(sp_utf8_repair(out, text, length), strlen(expected));
    assert_string_equal(out, expected);
    assert_true(sp_utf8_valid(out, strlen(out)));
}

static void utf8_repair_replaces_each_bad_byte(void **state)
{
    (void)state;
    assert_repaired("", 0, "");
    assert_repaired("gr\xc3\xbcn", 5, "gr\xc3\xbcn");
    assert_repaired("a\xff"
                    "b",
                    3, "a" REPLACEMENT "b");
    assert_repaired("\xe2\x82", 2, REPLACEMENT REPLACEMENT);
    assert_repaired("\xed\xa0\x80x", 4, REPLACEMENT REPLACEMENT REPLACEMENT "x");
    assert_repaired("\xe2\xc3\xa4", 3, REPLACEMENT "\xc3\xa4");
}

static void assert_shown(const char *text, size_t size, const char *expected)
{
    char out[64];
    assert_true(size <= sizeof out);
    assert_int_equal(sp_utf8_show(out, size, text, strlen(text)), strlen(expected));
    assert_string_equal(out, expected);
    assert_true(sp_utf8_valid(out, strlen(out)));
}

static void utf8_show_leaves_nothing_that_a_terminal_obeys(void **state)
{
    (void)state;
    assert_shown("gr\xc3\xbcn \xf0\x9f\x94\xa5", 64, "gr\xc3\xbcn \xf0\x9f\x94\xa5");
    assert_shown("a\nb\r\t\x1b[31m\x7f", 64, "a?b???[31m?");
    assert_shown("\xc2\x85\xc2\x9b|\xe2\x80\xae|\xe2\x80\xa8|\xe2\x81\xa6|\xd8\x9c", 64,
                 "??|?|?|?|?");
    assert_shown("\xc2\xa0\xe2\x80\x8d", 64,
                 "\xc2\xa0\xe2\x80\x8d"); /* a space, and what joins emoji */
    assert_shown("a\xff\xc3", 64, "a??");
}

static void utf8_show_cuts_behind_a_whole_character(void **state)
{
    (void)state;
    assert_shown("1234567", 8, "1234567");
    assert_shown("12345678", 8, "1234...");
    assert_shown("123\xc3\xa4xyz", 8, "123...");
    assert_shown("12\xc3\xa4xyz!", 8, "12\xc3\xa4...");
    assert_shown("123456\xc3\xa4", 8, "1234...");
    assert_shown("12345\xc3\xa4", 8, "12345\xc3\xa4");
}

static void utf8_fit_never_cuts_through_a_character(void **state)
{
    (void)state;
    static const char text[] =
        "a\xc3\xa4\xe2\x82\xac\xf0\x9f\x94\xa5z"; /* of 1, 2, 3, 4 and 1 bytes */
    static const size_t fits[] = {0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10, 11, 11};
    for (size_t limit = 0; limit < sizeof fits / sizeof fits[0]; limit++)
        assert_int_equal(sp_utf8_fit(text, sizeof text - 1, limit), fits[limit]);
    assert_int_equal(sp_utf8_fit("\x80\x80\x80\x80\x80\x80", 6, 5), 5); /* nothing to keep whole */
    assert_int_equal(sp_utf8_fit("\xff\xff\xff", 3, 2), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(utf8_edges_of_each_length_are_valid),
        cmocka_unit_test(utf8_overlong_surrogates_and_beyond_are_not),
        cmocka_unit_test(utf8_cut_sequence_is_not_valid),
        cmocka_unit_test(utf8_repair_replaces_each_bad_byte),
        cmocka_unit_test(utf8_show_leaves_nothing_that_a_terminal_obeys),
        cmocka_unit_test(utf8_show_cuts_behind_a_whole_character),
        cmocka_unit_test(utf8_fit_never_cuts_through_a_character),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
