/* SPDX-License-Identifier: Apache-2.0 */
/* coroutine.hpp: the context of a coroutine that is suspended and goes on elsewhere
 * (coroutines.cpp). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "unit/cpp/coroutines.h"

static void assert_right(const char *fault)
{
    if (fault)
        fail_msg("%s", fault);
}

static void context_is_active_only_while_the_coroutine_runs(void **state)
{
    (void)state;
    assert_right(coroutine_context_is_active_only_while_it_runs());
}

static void nested_scopes_travel_together(void **state)
{
    (void)state;
    assert_right(coroutine_nested_scopes_travel_together());
}

static void every_kind_of_awaiter_can_be_carried(void **state)
{
    (void)state;
    assert_right(coroutine_every_kind_of_awaiter_can_be_carried());
}

static void destroyed_while_suspended_detaches_nothing(void **state)
{
    (void)state;
    assert_right(coroutine_destroyed_while_suspended_detaches_nothing());
}

static void awaiter_that_throws_leaves_the_context_active(void **state)
{
    (void)state;
    assert_right(coroutine_awaiter_that_throws_leaves_the_context_active());
}

static void plain_scopes_between_awaits_of_a_strict_task(void **state)
{
    (void)state;
    assert_right(coroutine_plain_scopes_between_awaits_of_a_strict_task());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(context_is_active_only_while_the_coroutine_runs),
        cmocka_unit_test(nested_scopes_travel_together),
        cmocka_unit_test(every_kind_of_awaiter_can_be_carried),
        cmocka_unit_test(destroyed_while_suspended_detaches_nothing),
        cmocka_unit_test(awaiter_that_throws_leaves_the_context_active),
        cmocka_unit_test(plain_scopes_between_awaits_of_a_strict_task),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
