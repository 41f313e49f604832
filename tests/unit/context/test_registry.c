/* SPDX-License-Identifier: Apache-2.0 */
/* Slots of threads, while the SDK does not run: nobody drains, and threads that attach come and go
 * all the same. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include <spanprof/context.h>
#include "context/thread.h"

enum { THREADS = 2000 };

static void *attach_and_end(void *active)
{
    spanprof_context context = {.trace_flags = 1};
    memset(context.trace_id, 1, sizeof context.trace_id);
    memset(context.span_id, 1, sizeof context.span_id);
    spanprof_scope scope = spanprof_context_attach(&context);
    *(int *)active = spanprof_context_current().span_id[0];
    spanprof_scope_detach(&scope);
    return NULL;
}

static void slots_of_ended_threads_are_used_again_without_a_collector(void **state)
{
    (void)state;
    for (int i = 0; i < THREADS; i++) {
        pthread_t thread;
        int active = 0;
        assert_int_equal(pthread_create(&thread, NULL, attach_and_end, &active), 0);
        assert_int_equal(pthread_join(thread, NULL), 0);
        assert_int_equal(active, 1);
    }
    assert_true(sp_thread_slots() < 200);
}

/* A collector drains them first, and frees them then. */
static void slots_of_ended_threads_are_kept_for_a_collector(void **state)
{
    (void)state;
    uint32_t before = sp_thread_slots();
    sp_threads_set_collected(true);
    for (int i = 0; i < 300; i++) {
        pthread_t thread;
        int active = 0;
        assert_int_equal(pthread_create(&thread, NULL, attach_and_end, &active), 0);
        assert_int_equal(pthread_join(thread, NULL), 0);
    }
    sp_threads_set_collected(false);
    assert_true(sp_thread_slots() > before + 50);
}

/* Memory after them is reserved, and cannot be read. */
static void only_states_that_were_used_are_states(void **state)
{
    (void)state;
    uint32_t used = sp_thread_slots();
    assert_true(sp_thread_is_state(&sp_thread_states[0]));
    assert_true(sp_thread_is_state(&sp_thread_states[used - 1]));
    assert_false(sp_thread_is_state(&sp_thread_states[used]));
    assert_false(sp_thread_is_state((char *)&sp_thread_states[0] + 8));
    assert_false(sp_thread_is_state((char *)&sp_thread_states[0] - sizeof(sp_thread)));
    assert_false(sp_thread_is_state(NULL));
}

typedef struct identity {
    uint32_t slot, generation;
} identity;

static void *tell_identity(void *out)
{
    const sp_thread *self = sp_thread_self_create();
    *(identity *)out = (identity){self->slot, sp_load_relaxed(&self->registered.generation)};
    return NULL;
}

static void thread_in_the_slot_of_another_has_a_later_generation(void **state)
{
    (void)state;
    static uint32_t last[SP_THREADS_MAX];
    uint32_t reused = 0;
    for (int i = 0; i < 1000; i++) {
        pthread_t thread;
        identity own = {0};
        assert_int_equal(pthread_create(&thread, NULL, tell_identity, &own), 0);
        assert_int_equal(pthread_join(thread, NULL), 0);
        assert_true(own.generation > last[own.slot]);
        reused += last[own.slot] > 0;
        last[own.slot] = own.generation;
    }
    assert_true(reused > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slots_of_ended_threads_are_used_again_without_a_collector),
        cmocka_unit_test(slots_of_ended_threads_are_kept_for_a_collector),
        cmocka_unit_test(only_states_that_were_used_are_states),
        cmocka_unit_test(thread_in_the_slot_of_another_has_a_later_generation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
