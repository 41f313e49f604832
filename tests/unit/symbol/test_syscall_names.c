/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include <sys/syscall.h>

#include "symbol/syscall_names.h"

static void syscall_numbers_have_the_names_of_the_header(void **state)
{
    (void)state;
    assert_string_equal(sp_syscall_name(SYS_read), "read");
    assert_string_equal(sp_syscall_name(SYS_futex), "futex");
    assert_string_equal(sp_syscall_name(SYS_clock_nanosleep), "clock_nanosleep");
    assert_string_equal(sp_syscall_name(SYS_epoll_pwait), "epoll_pwait");
    assert_string_equal(sp_syscall_name(SYS_newfstatat), "newfstatat");
#ifdef SYS_epoll_wait
    assert_string_equal(sp_syscall_name(SYS_epoll_wait), "epoll_wait");
#endif
#ifdef SYS_futex_waitv
    assert_string_equal(sp_syscall_name(SYS_futex_waitv), "futex_waitv");
#endif
}

static void syscall_numbers_of_no_call_have_no_name(void **state)
{
    (void)state;
    assert_null(sp_syscall_name(-1));
    assert_null(sp_syscall_name(INT64_MIN));
    assert_null(sp_syscall_name(INT64_MAX));
    assert_null(sp_syscall_name(1 << 16));
    assert_null(sp_syscall_name(SYS_read + (INT64_C(1) << 32)));
}

/* Two numbers with one name would be a header that was read wrong. Both machines have over 300
 * calls. */
static void syscall_names_are_distinct(void **state)
{
    (void)state;
    int count = 0;
    for (int64_t i = 0; i < 1000; i++) {
        const char *name = sp_syscall_name(i);
        count += name != NULL;
        for (int64_t j = 0; name && j < i; j++)
            if (sp_syscall_name(j))
                assert_string_not_equal(name, sp_syscall_name(j));
    }
    assert_true(count > 300);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(syscall_numbers_have_the_names_of_the_header),
        cmocka_unit_test(syscall_numbers_of_no_call_have_no_name),
        cmocka_unit_test(syscall_names_are_distinct),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
