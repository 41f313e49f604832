/* SPDX-License-Identifier: Apache-2.0 */
/* The line that says how far long work is; test_input.py has it on a terminal. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tool/text/progress.h"

static void progress_says_bytes_of_bytes(void **state)
{
    (void)state;
    char line[SP_PROGRESS_LENGTH];
    sp_progress_text(line, "reading", "shop.jsonl", 5 << 20, UINT64_C(3) << 30, 80);
    assert_string_equal(line, "reading shop.jsonl: 5.00 MiB of 3.00 GiB");
    sp_progress_text(line, "reading", "-", 2048, 0, 80);
    assert_string_equal(line, "reading -: 2.00 KiB");
    sp_progress_text(line, "adding up", NULL, 1 << 20, 2 << 20, 80);
    assert_string_equal(line, "adding up: 1.00 MiB of 2.00 MiB");
}

static void progress_fits_its_line_and_is_harmless(void **state)
{
    (void)state;
    char line[SP_PROGRESS_LENGTH];
    sp_progress_text(line, "reading", "shop.jsonl", 1, 2, 12);
    assert_string_equal(line, "reading sho~");
    sp_progress_text(line, "reading", "a\033[2J\n", 1, 0, 80);
    assert_string_equal(line, "reading a\\x1b[2J\\x0a: 1 byte");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(progress_says_bytes_of_bytes),
        cmocka_unit_test(progress_fits_its_line_and_is_harmless),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
