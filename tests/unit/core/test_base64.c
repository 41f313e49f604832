/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "core/base64.h"

/* RFC 4648, section 10. */
static const char *const vectors[][2] = {{"", ""},
                                         {"f", "Zg=="},
                                         {"fo", "Zm8="},
                                         {"foo", "Zm9v"},
                                         {"foob", "Zm9vYg=="},
                                         {"fooba", "Zm9vYmE="},
                                         {"foobar", "Zm9vYmFy"}};

static void assert_decodes(const char *text, const char *wanted, size_t length)
{
    uint8_t out[64];
    size_t count = 99;
    assert_true(sp_base64_decode(out, &count, text, strlen(text)));
    assert_int_equal(count, length);
    assert_memory_equal(out, wanted, length);
}

static void vectors_of_the_rfc_both_ways(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) {
        sp_buffer out = SP_BUFFER_INIT(64);
        const char *plain = vectors[i][0];
        sp_base64_add(&out, (const uint8_t *)plain, strlen(plain));
        assert_string_equal(out.data ? (char *)out.data : "", vectors[i][1]);
        assert_decodes(vectors[i][1], plain, strlen(plain));
        sp_buffer_deinit(&out);
    }
}

static void padding_and_alphabet_may_be_either(void **state)
{
    (void)state;
    assert_decodes("Zg", "f", 1);
    assert_decodes("Zm8", "fo", 2);
    assert_decodes("+/+/", "\xfb\xff\xbf", 3);
    assert_decodes("-_-_", "\xfb\xff\xbf", 3);
}

static void text_that_is_no_base64_is_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "Z", "Zg=", "Zm9v=", "Z===", "Zm 9v", "Zm9v\n", "=", "Zg==Zg=="};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        uint8_t out[64];
        size_t count;
        assert_false(sp_base64_decode(out, &count, bad[i], strlen(bad[i])));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(vectors_of_the_rfc_both_ways),
        cmocka_unit_test(padding_and_alphabet_may_be_either),
        cmocka_unit_test(text_that_is_no_base64_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
