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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slots_of_ended_threads_are_used_again_without_a_collector),
        cmocka_unit_test(slots_of_ended_threads_are_kept_for_a_collector),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
