/* SPDX-License-Identifier: Apache-2.0 */
#include "attach/target.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static char problem[SP_ATTACH_PROBLEM];

static void assert_says(bool is_another_users, long yama_scope, const char *words)
{
    assert_false(sp_attach_say_denied(4711, is_another_users, yama_scope, problem));
    assert_non_null(strstr(problem, "4711"));
    assert_non_null(strstr(problem, words));
    assert_null(strchr(problem, '\n'));
}

static void target_of_another_user_asks_for_that_user(void **state)
{
    (void)state;
    assert_says(true, 0, "run this as that user, or with sudo");
    assert_says(true, 1, "run this as that user, or with sudo");
}

static void target_under_yama_names_the_setting_and_what_helps(void **state)
{
    (void)state;
    assert_says(false, 1, "ptrace_scope is 1, which asks for CAP_SYS_PTRACE: run this with sudo");
    assert_says(false, 2, "ptrace_scope is 2, which asks for CAP_SYS_PTRACE: run this with sudo");
}

static void target_under_yamas_last_level_is_not_told_of_sudo(void **state)
{
    (void)state;
    for (int is_another_users = 0; is_another_users < 2; is_another_users++) {
        assert_says(is_another_users, 3, "ptrace_scope is 3, which forbids it to all");
        assert_null(strstr(problem, "sudo"));
    }
}

static void target_that_yama_does_not_protect_has_other_reasons(void **state)
{
    (void)state;
    assert_says(false, 0, "seccomp");
    assert_null(strstr(problem, "yama"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(target_of_another_user_asks_for_that_user),
        cmocka_unit_test(target_under_yama_names_the_setting_and_what_helps),
        cmocka_unit_test(target_under_yamas_last_level_is_not_told_of_sudo),
        cmocka_unit_test(target_that_yama_does_not_protect_has_other_reasons),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
