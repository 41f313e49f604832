/* SPDX-License-Identifier: Apache-2.0 */
/* The rules of scopes (include/spanprof/context.h), seen through spanprof_context_current and the
 * published record. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "context/thread.h"

extern _Thread_local void *otel_thread_ctx_v1;

static spanprof_context context_of(uint8_t id)
{
    spanprof_context context = {.trace_flags = SPANPROF_TRACE_FLAG_SAMPLED};
    memset(context.trace_id, id, sizeof context.trace_id);
    memset(context.span_id, id, sizeof context.span_id);
    memset(context.local_root_span_id, 0x70 + id, sizeof context.local_root_span_id);
    return context;
}

static spanprof_scope attach(uint8_t id)
{
    spanprof_context context = context_of(id);
    return spanprof_context_attach(&context);
}

/* What the API says and what outside readers see must be the same span; 0 is none. */
static void assert_active(uint8_t id)
{
    spanprof_context context = spanprof_context_current();
    assert_int_equal(context.span_id[0], id);
    const sp_context_record *record = otel_thread_ctx_v1;
    assert_non_null(record);
    uint8_t bytes[28];
    memcpy(bytes, record, sizeof bytes);
    assert_int_equal(bytes[24], id ? 1 : 0);
    for (int i = 0; i < 24; i++)
        assert_int_equal(bytes[i], id);
    assert_int_equal(bytes[25], id ? SPANPROF_TRACE_FLAG_SAMPLED : 0);
    assert_int_equal(bytes[26] | bytes[27], 0);
}

static uint64_t dead_scopes(void)
{
    return sp_load_relaxed(&sp_thread_counts.misuse_dead_scope);
}

static void scope_detached_in_order_restores_what_was_before(void **state)
{
    (void)state;
    spanprof_scope outer = attach(1), inner = attach(2);
    assert_active(2);
    assert_int_equal(spanprof_scope_detach(&inner), SPANPROF_OK);
    assert_active(1);
    assert_int_equal(spanprof_scope_detach(&outer), SPANPROF_OK);
    assert_active(0);
}

static void scope_detached_out_of_order_leaves_the_chain(void **state)
{
    (void)state;
    spanprof_scope first = attach(1), second = attach(2), third = attach(3);
    assert_int_equal(spanprof_scope_detach(&second), SPANPROF_OK);
    assert_active(3);
    assert_int_equal(spanprof_scope_detach(&third), SPANPROF_OK);
    assert_active(1);
    assert_int_equal(spanprof_scope_detach(&first), SPANPROF_OK);
    assert_active(0);
}

static void scope_outermost_detached_first_keeps_inner_active(void **state)
{
    (void)state;
    spanprof_scope first = attach(1), second = attach(2);
    spanprof_scope_detach(&first);
    assert_active(2);
    spanprof_scope third = attach(3);
    spanprof_scope_detach(&second);
    assert_active(3);
    spanprof_scope_detach(&third);
    assert_active(0);
}

static void scope_detached_twice_is_counted_and_changes_nothing(void **state)
{
    (void)state;
    spanprof_scope outer = attach(1), inner = attach(2), copy = inner;
    uint64_t before = dead_scopes();
    spanprof_scope_detach(&inner);
    assert_int_equal(inner.serial, 0);
    assert_int_equal(spanprof_scope_detach(&inner), SPANPROF_OK);
    assert_int_equal(spanprof_scope_detach(&copy), SPANPROF_OK);
    assert_int_equal(spanprof_scope_detach(NULL), SPANPROF_OK);
    assert_int_equal(dead_scopes() - before, 3);
    assert_active(1);
    /* the place of a dead scope is used again: the old copy must not end the new one */
    spanprof_scope again = attach(4);
    copy.depth = again.depth;
    spanprof_scope_detach(&copy);
    assert_active(4);
    spanprof_scope_detach(&again);
    spanprof_scope_detach(&outer);
    assert_active(0);
}

static void attach_null_or_invalid_means_no_span(void **state)
{
    (void)state;
    spanprof_scope outer = attach(1);
    spanprof_scope none = spanprof_context_attach(NULL);
    assert_active(0);
    spanprof_scope_detach(&none);
    assert_active(1);
    spanprof_context no_span = context_of(5), no_trace = context_of(6);
    memset(no_span.span_id, 0, 8);
    memset(no_trace.trace_id, 0, 16);
    spanprof_scope a = spanprof_context_attach(&no_span);
    assert_active(0);
    spanprof_scope b = spanprof_context_attach(&no_trace);
    assert_active(0);
    spanprof_scope_detach(&b);
    spanprof_scope_detach(&a);
    assert_active(1);
    spanprof_scope_detach(&outer);
}

static void *detach_scope(void *argument)
{
    spanprof_scope own = attach(9);
    assert_int_equal(spanprof_scope_detach(argument), SPANPROF_ERROR_OTHER_THREAD);
    assert_active(9);
    spanprof_scope_detach(&own);
    return NULL;
}

static void detach_on_another_thread(spanprof_scope scope)
{
    pthread_t thread;
    pthread_create(&thread, NULL, detach_scope, &scope);
    pthread_join(thread, NULL);
    assert_int_equal(scope.serial, 0);
}

static void scope_detached_on_another_thread_ends_at_the_owners_next_switch(void **state)
{
    (void)state;
    spanprof_scope outer = attach(1), inner = attach(2);
    sp_thread *self = sp_thread_by_slot(outer.thread - 1);
    uint64_t before = sp_load_relaxed(&sp_thread_counts.misuse_foreign_scope);
    detach_on_another_thread(inner);
    assert_int_equal(sp_load_relaxed(&sp_thread_counts.misuse_foreign_scope) - before, 1);
    assert_int_not_equal(sp_load_relaxed(&self->owned.posts),
                         sp_load_relaxed(&self->owned.posts_seen)); /* ticks: unknown */
    assert_active(2);
    spanprof_scope next = attach(3);
    assert_int_equal(sp_load_relaxed(&self->owned.posts), sp_load_relaxed(&self->owned.posts_seen));
    assert_active(3);
    spanprof_scope_detach(&next);
    assert_active(1); /* not 2 */
    spanprof_scope_detach(&outer);
    assert_active(0);
}

static void scope_detached_by_owner_and_another_thread_ends_once(void **state)
{
    (void)state;
    spanprof_scope outer = attach(1), inner = attach(2), copy = inner;
    detach_on_another_thread(copy);
    uint64_t before = dead_scopes();
    spanprof_scope_detach(&inner); /* takes the post first, and then finds its scope gone */
    assert_int_equal(dead_scopes() - before, 1);
    assert_active(1);
    spanprof_scope_detach(&outer);
}

static void scopes_ten_thousand_deep_unwind_in_order(void **state)
{
    (void)state;
    enum { DEPTH = 10000 };
    spanprof_scope *scopes = calloc(DEPTH, sizeof *scopes);
    for (int i = 0; i < DEPTH; i++)
        scopes[i] = attach((uint8_t)(1 + i % 100));
    for (int i = DEPTH - 1; i >= 0; i--) {
        assert_active((uint8_t)(1 + i % 100));
        assert_int_equal(spanprof_scope_detach(&scopes[i]), SPANPROF_OK);
    }
    assert_active(0);
    free(scopes);
}

static void switch_number_is_even_and_grows_by_two(void **state)
{
    (void)state;
    spanprof_scope scope = attach(1);
    sp_thread *self = sp_thread_by_slot(scope.thread - 1);
    uint64_t number = sp_load_relaxed(&self->published.switch_number);
    assert_int_equal(number & 1, 0);
    spanprof_scope_detach(&scope);
    assert_int_equal(sp_load_relaxed(&self->published.switch_number), number + 2);
}

static void *attach_and_leak(void *argument)
{
    spanprof_scope scope = attach(7);
    *(uint32_t *)argument = scope.thread - 1;
    return NULL;
}

static void thread_that_exits_inside_a_scope_leaves_nothing_to_the_next(void **state)
{
    (void)state;
    uint32_t slots[2];
    for (int i = 0; i < 2; i++) {
        pthread_t thread;
        pthread_create(&thread, NULL, attach_and_leak, &slots[i]);
        pthread_join(thread, NULL);
        sp_thread *gone = sp_thread_by_slot(slots[i]);
        assert_int_equal(sp_load_acquire(&gone->registered.life), SP_THREAD_EXITED);
        sp_thread_free(gone);
    }
    assert_int_equal(slots[0], slots[1]); /* the slot was used again, from depth 0 */
    assert_int_equal(sp_thread_by_slot(slots[1])->owned.depth, 0);
}

/* A sequence of random attaches and detaches in any order, beside the plainest model: a list of
 * live scopes. */
static void random_attaches_and_detaches_match_the_model(void **state)
{
    (void)state;
    enum { MAX = 40, ROUNDS = 200000 };
    spanprof_scope scopes[MAX];
    uint8_t ids[MAX];
    int live = 0;
    unsigned seed = 1;
    for (int round = 0; round < ROUNDS; round++) {
        seed = seed * 1103515245u + 12345u;
        unsigned dice = seed >> 16;
        if (live == 0 || (dice % 2 && live < MAX)) {
            ids[live] = (uint8_t)(1 + dice % 250);
            scopes[live] = attach(ids[live]);
            live++;
        } else {
            int victim = (int)(dice / 2 % (unsigned)live);
            spanprof_scope_detach(&scopes[victim]);
            memmove(&scopes[victim], &scopes[victim + 1],
                    (size_t)(live - victim - 1) * sizeof scopes[0]);
            memmove(&ids[victim], &ids[victim + 1], (size_t)(live - victim - 1));
            live--;
        }
        assert_active(live ? ids[live - 1] : 0);
    }
    while (live)
        spanprof_scope_detach(&scopes[--live]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scope_detached_in_order_restores_what_was_before),
        cmocka_unit_test(scope_detached_out_of_order_leaves_the_chain),
        cmocka_unit_test(scope_outermost_detached_first_keeps_inner_active),
        cmocka_unit_test(scope_detached_twice_is_counted_and_changes_nothing),
        cmocka_unit_test(attach_null_or_invalid_means_no_span),
        cmocka_unit_test(scope_detached_on_another_thread_ends_at_the_owners_next_switch),
        cmocka_unit_test(scope_detached_by_owner_and_another_thread_ends_once),
        cmocka_unit_test(scopes_ten_thousand_deep_unwind_in_order),
        cmocka_unit_test(switch_number_is_even_and_grows_by_two),
        cmocka_unit_test(thread_that_exits_inside_a_scope_leaves_nothing_to_the_next),
        cmocka_unit_test(random_attaches_and_detaches_match_the_model),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
