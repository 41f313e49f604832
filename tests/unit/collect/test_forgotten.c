/* SPDX-License-Identifier: Apache-2.0 */
/* Which threads are found to go on under a span that they have ended, at times made by hand. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <spanprof/context.h>
#include "collect/forgotten.h"
#include "context/self.h"
#include "core/atomic.h"

#define SECOND SP_FORGOTTEN_AFTER_NS

static const spanprof_context context = {.trace_id = {1}, .span_id = {2}, .trace_flags = 1};

/* What spanprof_span_end does on a thread that bears the span. */
static void end_the_span(void)
{
    sp_thread *thread = sp_self_get();
    sp_store_relaxed(&thread->owned.ended_span_id,
                     sp_load_relaxed(&thread->published.record.span_id));
}

static void forgotten_scope_is_found_once_after_a_second(void **state)
{
    (void)state;
    sp_forgotten seen = {0};
    spanprof_scope scope = spanprof_context_attach(&context);
    assert_false(sp_forgotten_look(&seen, sp_self_get(), 5 * SECOND));
    assert_false(sp_forgotten_look(&seen, sp_self_get(), 9 * SECOND)); /* its span lives */
    end_the_span();
    assert_false(sp_forgotten_look(&seen, sp_self_get(), 10 * SECOND));
    assert_false(sp_forgotten_look(&seen, sp_self_get(), 11 * SECOND - 1));
    assert_true(sp_forgotten_look(&seen, sp_self_get(), 11 * SECOND));
    for (uint64_t i = 12; i < 20; i++)
        assert_false(sp_forgotten_look(&seen, sp_self_get(), i * SECOND));
    spanprof_scope_detach(&scope);
}

static void scope_that_is_detached_in_time_is_none(void **state)
{
    (void)state;
    sp_forgotten seen = {0};
    for (uint64_t i = 1; i < 9; i++) { /* each looks the same from outside, but for its number */
        spanprof_scope scope = spanprof_context_attach(&context);
        end_the_span();
        assert_false(sp_forgotten_look(&seen, sp_self_get(), i * SECOND));
        spanprof_scope_detach(&scope);
    }
    assert_false(sp_forgotten_look(&seen, sp_self_get(), 99 * SECOND));
    assert_int_equal(seen.since_ns, 0);
}

static void thread_that_attaches_below_counts_by_itself(void **state)
{
    (void)state;
    sp_forgotten seen = {0};
    spanprof_context other = context;
    other.span_id[0]++;
    spanprof_scope outer = spanprof_context_attach(&context);
    end_the_span();
    assert_false(sp_forgotten_look(&seen, sp_self_get(), SECOND));
    uint64_t before = sp_load_relaxed(&sp_thread_counts.misuse_ended_parent);
    spanprof_scope inner = spanprof_context_attach(&other);
    assert_int_equal(sp_load_relaxed(&sp_thread_counts.misuse_ended_parent), before + 1);
    assert_false(sp_forgotten_look(&seen, sp_self_get(), 9 * SECOND));
    spanprof_scope_detach(&inner);
    spanprof_scope_detach(&outer);
}

static void what_was_found_is_not_counted_again_by_the_thread(void **state)
{
    (void)state;
    sp_forgotten seen = {0};
    spanprof_scope outer = spanprof_context_attach(&context);
    end_the_span();
    assert_false(sp_forgotten_look(&seen, sp_self_get(), SECOND));
    assert_true(sp_forgotten_look(&seen, sp_self_get(), 2 * SECOND));
    uint64_t before = sp_load_relaxed(&sp_thread_counts.misuse_ended_parent);
    spanprof_scope inner = spanprof_context_attach(&context);
    assert_int_equal(sp_load_relaxed(&sp_thread_counts.misuse_ended_parent), before);
    spanprof_scope_detach(&inner);
    spanprof_scope_detach(&outer);
}

static void *detach(void *scope)
{
    spanprof_scope_detach(scope);
    return NULL;
}

static void scope_that_another_thread_has_detached_is_none(void **state)
{
    (void)state;
    sp_forgotten seen = {0};
    pthread_t thread;
    spanprof_scope scope = spanprof_context_attach(&context);
    assert_int_equal(pthread_create(&thread, NULL, detach, &scope), 0);
    pthread_join(thread, NULL);
    end_the_span();
    assert_false(sp_forgotten_look(&seen, sp_self_get(), SECOND));
    assert_false(sp_forgotten_look(&seen, sp_self_get(), 9 * SECOND));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forgotten_scope_is_found_once_after_a_second),
        cmocka_unit_test(scope_that_is_detached_in_time_is_none),
        cmocka_unit_test(thread_that_attaches_below_counts_by_itself),
        cmocka_unit_test(what_was_found_is_not_counted_again_by_the_thread),
        cmocka_unit_test(scope_that_another_thread_has_detached_is_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
