/* SPDX-License-Identifier: Apache-2.0 */
/* Cases in C++20. Each returns NULL, or a text that says what was wrong. */
#ifndef TESTS_UNIT_CPP_COROUTINES_H
#define TESTS_UNIT_CPP_COROUTINES_H

#ifdef __cplusplus
extern "C" {
#endif

const char *coroutine_context_is_active_only_while_it_runs(void);
const char *coroutine_nested_scopes_travel_together(void);
const char *coroutine_every_kind_of_awaiter_can_be_carried(void);
const char *coroutine_destroyed_while_suspended_detaches_nothing(void);
const char *coroutine_awaiter_that_throws_leaves_the_context_active(void);
const char *coroutine_plain_scopes_between_awaits_of_a_strict_task(void);

#ifdef __cplusplus
}
#endif

#endif
