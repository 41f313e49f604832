/* SPDX-License-Identifier: Apache-2.0 */
/* Which span held a lock: the one that was active while its thread was the owner, or none; never
 * one from before or after. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <cmocka.h>

#include <spanprof/context.h>
#include "context/thread.h"
#include "lock/lock_holder.h"

enum { LOOKS = 200000, NAMED_LEAST = 100 };

#if defined(__x86_64__)
enum { HOLDERS_ARE_READ = 1 };
#else
enum { HOLDERS_ARE_READ = 0 };
#endif

static int owner; /* as in a mutex: written by the thread that takes it, and gives it back */

static spanprof_context context_of(uint8_t byte)
{
    spanprof_context context = {.trace_flags = SPANPROF_TRACE_FLAG_SAMPLED};
    memset(context.trace_id, byte, sizeof context.trace_id);
    memset(context.span_id, byte, sizeof context.span_id);
    return context;
}

static void set_owner(int tid)
{
    __atomic_store_n(&owner, tid, __ATOMIC_RELEASE);
}

static int own_tid(void)
{
    return (int)syscall(SYS_gettid);
}

/* What is found; its bytes are all the same, or it would be torn. */
static uint8_t look(void)
{
    sp_contention wait = {.begin_ns = 7};
    uint8_t bytes[24];
    sp_lock_holder_find(&wait, &owner);
    assert_int_equal(wait.begin_ns, 7);
    memcpy(bytes, wait.holder_trace_id, sizeof wait.holder_trace_id);
    memcpy(bytes + 16, &wait.holder_span_id, sizeof wait.holder_span_id);
    for (size_t i = 0; i < sizeof bytes; i++)
        assert_int_equal(bytes[i], bytes[0]);
    return bytes[0];
}

static void span_of_the_owner_is_found(void **state)
{
    (void)state;
    spanprof_context context = context_of(0x11);
    spanprof_scope scope = spanprof_context_attach(&context);
    set_owner(own_tid());
    assert_int_equal(look(), HOLDERS_ARE_READ ? 0x11 : 0);
    spanprof_scope_detach(&scope);
    assert_int_equal(look(), 0);
}

/* What the owner does between the two looks at it. The linker sends the search for its state here
 * (tests/CMakeLists.txt). */
static void (*meanwhile)(void);

sp_thread *__real_sp_thread_try_find(pid_t tid);
sp_thread *__wrap_sp_thread_try_find(pid_t tid);

sp_thread *__wrap_sp_thread_try_find(pid_t tid)
{
    sp_thread *thread = __real_sp_thread_try_find(tid);
    if (meanwhile)
        meanwhile();
    return thread;
}

static spanprof_scope own_scope;

static void give_and_go_on(void)
{
    spanprof_context next = context_of(0x44);
    set_owner(0);
    spanprof_scope_detach(&own_scope);
    own_scope = spanprof_context_attach(&next);
}

static void span_of_a_thread_that_gave_the_lock_is_not_named(void **state)
{
    (void)state;
    spanprof_context context = context_of(0x11);
    own_scope = spanprof_context_attach(&context);
    set_owner(own_tid());
    meanwhile = give_and_go_on;
    assert_int_equal(look(), 0);
    meanwhile = NULL;
    spanprof_scope_detach(&own_scope);
}

static void no_owner_and_no_thread_have_no_span(void **state)
{
    (void)state;
    sp_contention wait = {0};
    spanprof_context context = context_of(0x11);
    spanprof_scope scope = spanprof_context_attach(&context);
    sp_lock_holder_find(&wait, NULL);
    assert_int_equal(wait.holder_span_id, 0);
    const int no_owners[] = {0, -1, 0x7fffffff, 0x7ffffffe}; /* the last two are glibc's marks */
    for (size_t i = 0; i < sizeof no_owners / sizeof *no_owners; i++) {
        set_owner(no_owners[i]);
        assert_int_equal(look(), 0);
    }
    spanprof_scope_detach(&scope);
}

static void unsampled_and_remote_spans_are_not_named(void **state)
{
    (void)state;
    spanprof_context unsampled = context_of(0x22), remote = context_of(0x33);
    unsampled.trace_flags = 0;
    remote.remote = true;
    set_owner(own_tid());
    spanprof_scope scope = spanprof_context_attach(&unsampled);
    assert_int_equal(look(), 0);
    spanprof_scope_detach(&scope);
    scope = spanprof_context_attach(&remote);
    assert_int_equal(look(), 0);
    spanprof_scope_detach(&scope);
}

static _Atomic int done;

/* Long enough for a look, and no longer: most looks begin and end in different spans. */
static void stay(void)
{
    for (volatile int i = 0; i < 20;)
        i = i + 1;
}

/* Owner under 0x55 only; before and after it other spans are active. */
static void *hold_again_and_again(void *unused)
{
    spanprof_context outside = context_of(0x44), inside = context_of(0x55);
    while (!done) {
        spanprof_scope before = spanprof_context_attach(&outside);
        stay();
        spanprof_scope_detach(&before);
        spanprof_scope scope = spanprof_context_attach(&inside);
        set_owner(own_tid());
        stay();
        set_owner(0);
        spanprof_scope_detach(&scope);
        spanprof_scope after = spanprof_context_attach(&outside);
        stay();
        spanprof_scope_detach(&after);
    }
    return unused;
}

static void span_from_before_or_after_is_never_named(void **state)
{
    (void)state;
    pthread_t thread;
    unsigned named = 0;
    done = 0;
    set_owner(0);
    assert_int_equal(pthread_create(&thread, NULL, hold_again_and_again, NULL), 0);
    for (int i = 0; i < LOOKS || (HOLDERS_ARE_READ && named < NAMED_LEAST); i++) {
        uint8_t found = look();
        assert_true(found == 0 || found == 0x55);
        named += found != 0;
    }
    done = 1;
    pthread_join(thread, NULL);
    printf("%u looks found the holder\n", named);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(span_of_the_owner_is_found),
        cmocka_unit_test(span_of_a_thread_that_gave_the_lock_is_not_named),
        cmocka_unit_test(no_owner_and_no_thread_have_no_span),
        cmocka_unit_test(unsampled_and_remote_spans_are_not_named),
        cmocka_unit_test(span_from_before_or_after_is_never_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
