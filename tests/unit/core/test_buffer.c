/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "core/buffer.h"

static void buffer_adds_end_with_a_nul(void **state)
{
    (void)state;
    sp_buffer buffer = SP_BUFFER_INIT(1000);
    assert_null(buffer.data);
    assert_true(sp_buffer_add_string(&buffer, "one "));
    assert_true(sp_buffer_add_char(&buffer, '2'));
    assert_true(sp_buffer_printf(&buffer, " %s", "three"));
    assert_string_equal((char *)buffer.data, "one 2 three");
    assert_int_equal(buffer.length, 11);
    sp_buffer_deinit(&buffer);
    assert_null(buffer.data);
}

static void buffer_full_appends_nothing_and_stays_failed(void **state)
{
    (void)state;
    sp_buffer buffer = SP_BUFFER_INIT(8);
    assert_true(sp_buffer_add_string(&buffer, "12345"));
    assert_false(sp_buffer_add_string(&buffer, "6789"));
    assert_true(buffer.failed);
    assert_string_equal((char *)buffer.data, "12345");
    assert_false(sp_buffer_printf(&buffer, "%d", 6789));
    assert_string_equal((char *)buffer.data, "12345");
    assert_true(sp_buffer_add_string(&buffer, "678"));
    assert_string_equal((char *)buffer.data, "12345678");
    assert_true(buffer.failed);
    assert_false(sp_buffer_add_char(&buffer, '9'));
    sp_buffer_deinit(&buffer);
}

static void buffer_huge_request_is_refused(void **state)
{
    (void)state;
    sp_buffer buffer = SP_BUFFER_INIT(100);
    assert_true(sp_buffer_add_char(&buffer, 'x'));
    assert_null(sp_buffer_reserve(&buffer, SIZE_MAX));
    assert_null(sp_buffer_reserve(&buffer, SIZE_MAX - 1));
    assert_int_equal(buffer.length, 1);
    sp_buffer_deinit(&buffer);
}

static void buffer_clear_keeps_memory_and_forgets_failure(void **state)
{
    (void)state;
    sp_buffer buffer = SP_BUFFER_INIT(10);
    sp_buffer_add_string(&buffer, "0123456789");
    assert_false(sp_buffer_add_char(&buffer, 'x'));
    const uint8_t *data = buffer.data;
    sp_buffer_clear(&buffer);
    assert_false(buffer.failed);
    assert_int_equal(buffer.length, 0);
    assert_true(sp_buffer_add_string(&buffer, "again"));
    assert_ptr_equal(buffer.data, data);
    sp_buffer_deinit(&buffer);
}

static void buffer_grows_and_keeps_its_bytes(void **state)
{
    (void)state;
    sp_buffer buffer = SP_BUFFER_INIT(1 << 20);
    for (int i = 0; i < 100000; i++)
        assert_true(sp_buffer_add_char(&buffer, (char)i));
    assert_int_equal(buffer.length, 100000);
    for (int i = 0; i < 100000; i++)
        assert_int_equal(buffer.data[i], (uint8_t)i);
    sp_buffer_deinit(&buffer);
}

static void buffer_reserve_is_written_by_the_caller(void **state)
{
    (void)state;
    sp_buffer buffer = SP_BUFFER_INIT(600);
    uint8_t *room = sp_buffer_reserve(&buffer, 600);
    assert_non_null(room);
    memset(room, 'r', 600);
    buffer.length += 600;
    assert_false(buffer.failed);
    assert_null(sp_buffer_reserve(&buffer, 1));
    sp_buffer_deinit(&buffer);
}

static void buffer_adds_what_fits_and_marks_the_cut(void **state)
{
    (void)state;
    sp_buffer buffer = SP_BUFFER_INIT(8);
    assert_true(sp_buffer_add_cut(&buffer, "12345678", 8));
    assert_string_equal((const char *)buffer.data, "12345678");
    sp_buffer_clear(&buffer);
    assert_true(sp_buffer_add_cut(&buffer, "123456789", 9));
    assert_string_equal((const char *)buffer.data, "12345\xe2\x80\xa6");
    sp_buffer_clear(&buffer);
    assert_true(sp_buffer_add_cut(&buffer, "1234\xc3\xa4xyz", 9));
    assert_string_equal((const char *)buffer.data, "1234\xe2\x80\xa6");
    assert_true(sp_buffer_add(&buffer, "", 0));
    assert_false(sp_buffer_add_cut(&buffer, "xy", 2)); /* one byte is left */
    assert_true(buffer.failed);
    sp_buffer_deinit(&buffer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(buffer_adds_end_with_a_nul),
        cmocka_unit_test(buffer_full_appends_nothing_and_stays_failed),
        cmocka_unit_test(buffer_huge_request_is_refused),
        cmocka_unit_test(buffer_clear_keeps_memory_and_forgets_failure),
        cmocka_unit_test(buffer_grows_and_keeps_its_bytes),
        cmocka_unit_test(buffer_reserve_is_written_by_the_caller),
        cmocka_unit_test(buffer_adds_what_fits_and_marks_the_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
