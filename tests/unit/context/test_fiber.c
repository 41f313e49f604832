/* SPDX-License-Identifier: Apache-2.0 */
/* The rules of fibers (include/spanprof/fiber.h), seen through spanprof_context_current. No stack
 * is switched here: to the library a fiber is what the program says it runs. */
#include <spanprof/fiber.h>

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "unwind/fiber_stack_sig.h"

static const spanprof_fiber own;
static uint8_t stack_a[4096], stack_b[4096];

/* The linker sends the system calls that get memory here (tests/CMakeLists.txt). */
void *__real_mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset);
int __real_mprotect(void *at, size_t bytes, int protection);
void *__wrap_mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset);
int __wrap_mprotect(void *at, size_t bytes, int protection);
void *__real_malloc(size_t bytes);
void *__wrap_malloc(size_t bytes);

static bool memory_is_short;

void *__wrap_mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset)
{
    return memory_is_short ? MAP_FAILED : __real_mmap(at, bytes, protection, flags, fd, offset);
}

int __wrap_mprotect(void *at, size_t bytes, int protection)
{
    return memory_is_short ? -1 : __real_mprotect(at, bytes, protection);
}

void *__wrap_malloc(size_t bytes)
{
    return memory_is_short ? NULL : __real_malloc(bytes);
}

static spanprof_scope attach(uint8_t id)
{
    spanprof_context context = {.trace_flags = SPANPROF_TRACE_FLAG_SAMPLED};
    memset(context.trace_id, id, sizeof context.trace_id);
    memset(context.span_id, id, sizeof context.span_id);
    return spanprof_context_attach(&context);
}

static sp_thread *self(void)
{
    return sp_thread_self_create();
}

static bool is_unknown(void)
{
    return sp_load_relaxed(&self()->owned.posts) != sp_load_relaxed(&self()->owned.posts_seen);
}

/* What the API says, and what a tick would read; 0 is none. */
static void assert_active(uint8_t id)
{
    spanprof_context context = spanprof_context_current();
    assert_int_equal(context.span_id[0], id);
    assert_int_equal((uint8_t)sp_load_relaxed(&self()->published.record.span_id), id);
    assert_int_equal(sp_load_relaxed(&self()->published.switch_number) & 1, 0);
}

static void assert_current(spanprof_fiber fiber)
{
    assert_int_equal(spanprof_fiber_current().slot, fiber.slot);
    assert_int_equal(spanprof_fiber_current().generation, fiber.generation);
}

static uint64_t misuses(void)
{
    return sp_load_relaxed(&sp_thread_counts.misuse_fiber);
}

static void on_another_thread(void *(*function)(void *), void *argument)
{
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, function, argument), 0);
    pthread_join(thread, NULL);
}

/* First, for later tests need the range. */
static void fiber_without_memory_is_unknown_and_attaches_nothing(void **state)
{
    (void)state;
    spanprof_scope outer = attach(1);
    memory_is_short = true;
    uint64_t failed = sp_load_relaxed(&sp_thread_counts.failed_attaches);
    spanprof_fiber fiber = spanprof_fiber_create(stack_a, sizeof stack_a);
    memory_is_short = false;
    assert_int_equal(sp_load_relaxed(&sp_thread_counts.failed_attaches) - failed, 1);
    assert_int_not_equal(fiber.slot, 0);
    assert_false(is_unknown());
    assert_int_equal(spanprof_fiber_switch(fiber), SPANPROF_ERROR_NOT_FOUND);
    assert_true(is_unknown());
    assert_active(0);
    spanprof_scope inner = attach(2);
    assert_int_equal(inner.serial, 0);
    assert_true(is_unknown());
    assert_int_equal(spanprof_fiber_current().slot, 0);
    assert_int_equal(spanprof_fiber_switch(own), SPANPROF_OK);
    assert_false(is_unknown());
    assert_active(1);
    uint64_t before = misuses();
    spanprof_fiber_destroy(fiber);
    assert_int_equal(misuses(), before);
    spanprof_scope_detach(&outer);
    assert_active(0);
}

static void fiber_has_scopes_of_its_own(void **state)
{
    (void)state;
    spanprof_fiber a = spanprof_fiber_create(stack_a, sizeof stack_a);
    spanprof_fiber b = spanprof_fiber_create(stack_b, sizeof stack_b);
    spanprof_scope outer = attach(1);
    assert_int_equal(spanprof_fiber_switch(a), SPANPROF_OK);
    assert_active(0);
    spanprof_scope in_a = attach(2);
    assert_active(2);
    spanprof_fiber_switch(b);
    assert_active(0);
    spanprof_scope in_b = attach(3), deeper = attach(4);
    spanprof_fiber_switch(a);
    assert_active(2);
    assert_current(a);
    assert_int_equal(spanprof_fiber_switch(a), SPANPROF_OK); /* changes nothing */
    assert_active(2);
    spanprof_fiber_switch(own);
    assert_active(1);
    assert_int_equal(spanprof_fiber_current().slot, 0);
    assert_int_equal(spanprof_scope_detach(&outer), SPANPROF_OK);
    spanprof_fiber_switch(b);
    assert_active(4);
    assert_int_equal(spanprof_scope_detach(&deeper), SPANPROF_OK);
    assert_active(3);
    assert_int_equal(spanprof_scope_detach(&in_b), SPANPROF_OK);
    spanprof_fiber_switch(a);
    assert_int_equal(spanprof_scope_detach(&in_a), SPANPROF_OK);
    spanprof_fiber_switch(own);
    spanprof_fiber_destroy(a);
    spanprof_fiber_destroy(b);
    assert_active(0);
}

static void fiber_keeps_scopes_nested_deeper_than_a_chunk(void **state)
{
    (void)state;
    enum { DEPTH = 100 };
    spanprof_fiber a = spanprof_fiber_create(stack_a, sizeof stack_a);
    spanprof_scope scopes[DEPTH];
    spanprof_fiber_switch(a);
    for (int i = 0; i < DEPTH; i++) {
        scopes[i] = attach((uint8_t)(i + 1));
        spanprof_fiber_switch(own);
        assert_active(0);
        spanprof_fiber_switch(a);
    }
    for (int i = DEPTH - 1; i >= 0; i--) {
        assert_active((uint8_t)(i + 1));
        assert_int_equal(spanprof_scope_detach(&scopes[i]), SPANPROF_OK);
    }
    spanprof_fiber_switch(own);
    spanprof_fiber_destroy(a);
}

typedef struct journey {
    spanprof_fiber fiber;
    spanprof_scope scope;
    spanprof_status switched, detached;
} journey;

static void *go_on_elsewhere(void *argument)
{
    journey *j = argument;
    j->switched = spanprof_fiber_switch(j->fiber);
    assert_active(5);
    j->detached = spanprof_scope_detach(&j->scope);
    assert_active(0);
    j->scope = attach(6);
    spanprof_fiber_switch(own);
    return NULL;
}

static void fiber_goes_on_with_its_scopes_on_another_thread(void **state)
{
    (void)state;
    journey j = {.fiber = spanprof_fiber_create(stack_a, sizeof stack_a)};
    spanprof_fiber_switch(j.fiber);
    j.scope = attach(5);
    spanprof_fiber_switch(own);
    on_another_thread(go_on_elsewhere, &j);
    assert_int_equal(j.switched, SPANPROF_OK);
    assert_int_equal(j.detached, SPANPROF_OK);
    spanprof_fiber_switch(j.fiber);
    assert_active(6);
    assert_int_equal(spanprof_scope_detach(&j.scope), SPANPROF_OK);
    assert_active(0);
    spanprof_fiber_switch(own);
    spanprof_fiber_destroy(j.fiber);
}

static void *detach_elsewhere(void *argument)
{
    journey *j = argument;
    spanprof_scope mine = attach(9);
    j->detached = spanprof_scope_detach(&j->scope);
    assert_active(9);
    spanprof_scope_detach(&mine);
    return NULL;
}

static void scope_detached_while_its_fiber_is_suspended_is_gone_when_it_goes_on(void **state)
{
    (void)state;
    journey j = {.fiber = spanprof_fiber_create(stack_a, sizeof stack_a)};
    spanprof_fiber_switch(j.fiber);
    spanprof_scope outer = attach(1);
    j.scope = attach(2);
    spanprof_fiber_switch(own);
    assert_int_equal(spanprof_scope_detach(&j.scope), SPANPROF_ERROR_OTHER_THREAD);
    assert_false(is_unknown()); /* nobody runs it */
    assert_active(0);
    spanprof_fiber_switch(j.fiber);
    assert_false(is_unknown());
    assert_active(1);
    j.scope = attach(3);
    on_another_thread(detach_elsewhere, &j); /* it runs here */
    assert_int_equal(j.detached, SPANPROF_ERROR_OTHER_THREAD);
    assert_true(is_unknown());
    spanprof_fiber_switch(own);
    assert_false(is_unknown());
    spanprof_fiber_switch(j.fiber);
    assert_active(1);
    assert_int_equal(spanprof_scope_detach(&outer), SPANPROF_OK);
    spanprof_fiber_switch(own);
    spanprof_fiber_destroy(j.fiber);
}

static void scope_of_the_thread_detached_in_a_fiber_is_gone_when_it_comes_back(void **state)
{
    (void)state;
    spanprof_fiber a = spanprof_fiber_create(stack_a, sizeof stack_a);
    spanprof_scope outer = attach(1), inner = attach(2);
    spanprof_fiber_switch(a);
    spanprof_scope in_a = attach(3);
    assert_int_equal(spanprof_scope_detach(&inner), SPANPROF_ERROR_OTHER_THREAD);
    assert_active(3);
    spanprof_scope_detach(&in_a);
    assert_false(is_unknown());
    spanprof_fiber_switch(own);
    assert_active(1);
    spanprof_scope_detach(&outer);
    spanprof_fiber_destroy(a);
}

static void *switch_elsewhere(void *argument)
{
    journey *j = argument;
    spanprof_scope mine = attach(7);
    j->switched = spanprof_fiber_switch(j->fiber);
    assert_true(is_unknown());
    assert_active(0);
    assert_int_equal(spanprof_fiber_switch(own), SPANPROF_OK);
    assert_false(is_unknown());
    assert_active(7);
    spanprof_scope_detach(&mine);
    return NULL;
}

static void fiber_that_another_thread_runs_cannot_be_entered(void **state)
{
    (void)state;
    journey j = {.fiber = spanprof_fiber_create(stack_a, sizeof stack_a)};
    spanprof_fiber_switch(j.fiber);
    spanprof_scope scope = attach(8);
    uint64_t before = misuses();
    on_another_thread(switch_elsewhere, &j);
    assert_int_equal(j.switched, SPANPROF_ERROR_OTHER_THREAD);
    assert_int_equal(misuses() - before, 1);
    assert_active(8);
    spanprof_scope_detach(&scope);
    spanprof_fiber_switch(own);
    spanprof_fiber_destroy(j.fiber);
}

static void destroyed_fiber_is_unknown_and_its_slot_a_fiber_anew(void **state)
{
    (void)state;
    spanprof_fiber a = spanprof_fiber_create(stack_a, sizeof stack_a);
    spanprof_fiber_switch(a);
    spanprof_scope leaked = attach(1), copy = leaked;
    spanprof_fiber_switch(own);
    spanprof_fiber_destroy(a);
    uint64_t before = misuses();
    spanprof_fiber_destroy(a);
    assert_int_equal(spanprof_fiber_switch(a), SPANPROF_ERROR_NOT_FOUND);
    assert_int_equal(misuses() - before, 2);
    assert_true(is_unknown());
    spanprof_fiber b = spanprof_fiber_create(stack_b, sizeof stack_b);
    assert_int_equal(b.slot, a.slot);
    assert_int_equal(spanprof_fiber_switch(b), SPANPROF_OK);
    assert_active(0);
    spanprof_scope scope = attach(2);
    assert_int_equal(spanprof_scope_detach(&leaked), SPANPROF_OK); /* of the fiber before */
    assert_active(2);
    spanprof_scope_detach(&copy);
    assert_active(2);
    spanprof_scope_detach(&scope);
    spanprof_fiber_switch(own);
    spanprof_fiber_destroy(b);
    spanprof_fiber_destroy(own);
    assert_int_equal(misuses() - before, 2);
    spanprof_fiber made_up = {.slot = 200000, .generation = 1};
    assert_int_equal(spanprof_fiber_switch(made_up), SPANPROF_ERROR_NOT_FOUND);
    spanprof_fiber_switch(own);
}

static void fiber_destroyed_while_it_runs_goes_on_until_it_is_left(void **state)
{
    (void)state;
    spanprof_fiber a = spanprof_fiber_create(stack_a, sizeof stack_a);
    spanprof_fiber_switch(a);
    attach(1);
    uint64_t before = misuses();
    spanprof_fiber_destroy(a);
    assert_int_equal(misuses() - before, 1);
    assert_active(1);
    assert_current(a);
    spanprof_fiber b = spanprof_fiber_create(stack_b, sizeof stack_b);
    assert_int_not_equal(b.slot, a.slot);
    spanprof_fiber_switch(own);
    assert_active(0);
    assert_int_equal(spanprof_fiber_switch(a), SPANPROF_ERROR_NOT_FOUND);
    spanprof_fiber_switch(own);
    spanprof_fiber c = spanprof_fiber_create(stack_a, sizeof stack_a);
    assert_int_equal(c.slot, a.slot);
    assert_int_equal(spanprof_fiber_switch(c), SPANPROF_OK);
    assert_active(0);
    spanprof_fiber_switch(own);
    spanprof_fiber_destroy(b);
    spanprof_fiber_destroy(c);
}

static void *end_in_a_fiber(void *argument)
{
    journey *j = argument;
    spanprof_fiber_switch(j->fiber);
    j->scope = attach(4);
    return NULL;
}

static void thread_that_ends_in_a_fiber_leaves_it_suspended(void **state)
{
    (void)state;
    journey j = {.fiber = spanprof_fiber_create(stack_a, sizeof stack_a)};
    uint64_t before = misuses();
    on_another_thread(end_in_a_fiber, &j);
    assert_int_equal(misuses() - before, 1);
    assert_int_equal(spanprof_fiber_switch(j.fiber), SPANPROF_OK);
    assert_active(4);
    assert_int_equal(spanprof_scope_detach(&j.scope), SPANPROF_OK);
    spanprof_fiber_switch(own);
    spanprof_fiber_destroy(j.fiber);
}

static pthread_barrier_t barrier;

static void *hold(void *argument)
{
    journey *j = argument;
    spanprof_fiber_switch(j->fiber);
    j->scope = attach(3);
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    spanprof_scope_detach(&j->scope);
    spanprof_fiber_switch(own);
    return NULL;
}

static int child_of_fork(const journey *j, spanprof_fiber mine, spanprof_scope scope)
{
    if (spanprof_fiber_current().slot != mine.slot || spanprof_context_current().span_id[0] != 2)
        return 1;
    if (spanprof_fiber_switch(j->fiber) != SPANPROF_OK ||
        spanprof_context_current().span_id[0] != 3)
        return 2;
    if (spanprof_fiber_switch(own) != SPANPROF_OK || spanprof_context_current().span_id[0] != 1)
        return 3;
    spanprof_fiber_switch(mine);
    if (spanprof_scope_detach(&scope) != SPANPROF_OK)
        return 4;
    spanprof_fiber_switch(own);
    spanprof_fiber_destroy(mine);
    spanprof_fiber_destroy(j->fiber);
    return spanprof_fiber_create(NULL, 0).slot == UINT32_MAX ? 5 : 0;
}

static void forked_child_keeps_fibers_and_those_of_other_threads_are_suspended(void **state)
{
    (void)state;
    journey j = {.fiber = spanprof_fiber_create(stack_a, sizeof stack_a)};
    spanprof_fiber mine = spanprof_fiber_create(stack_b, sizeof stack_b);
    pthread_t thread;
    pthread_barrier_init(&barrier, NULL, 2);
    pthread_create(&thread, NULL, hold, &j);
    pthread_barrier_wait(&barrier);
    spanprof_scope outer = attach(1);
    spanprof_fiber_switch(mine);
    spanprof_scope scope = attach(2);
    pid_t child = fork();
    if (child == 0)
        _exit(child_of_fork(&j, mine, scope));
    int status = -1;
    waitpid(child, &status, 0);
    assert_int_equal(status, 0);
    pthread_barrier_wait(&barrier);
    pthread_join(thread, NULL);
    pthread_barrier_destroy(&barrier);
    spanprof_scope_detach(&scope);
    spanprof_fiber_switch(own);
    spanprof_scope_detach(&outer);
    spanprof_fiber_destroy(mine);
    spanprof_fiber_destroy(j.fiber);
}

static bool is_on(const uint8_t *stack)
{
    return sp_is_on_stack(self(), (uint64_t)(uintptr_t)(stack + 100));
}

/* What a tick makes of stack pointers, on each side of each switch. */
static void stack_that_is_not_the_contexts_is_told(void **state)
{
    (void)state;
    uint8_t here[200];
    spanprof_fiber a = spanprof_fiber_create(stack_a, sizeof stack_a);
    spanprof_fiber b = spanprof_fiber_create(stack_b, sizeof stack_b);
    spanprof_fiber c = spanprof_fiber_create(NULL, 0);
    spanprof_fiber_switch(a);
    assert_true(is_on(stack_a) && !is_on(here) && !is_on(stack_b));
    assert_int_equal(sp_stack_of_fiber(self()).low, (uintptr_t)stack_a);
    assert_int_equal(sp_stack_of_fiber(self()).high, (uintptr_t)stack_a + sizeof stack_a);
    spanprof_fiber_switch(b);
    assert_true(is_on(stack_b) && !is_on(here) && !is_on(stack_a));
    spanprof_fiber_switch(own);
    assert_true(is_on(here) && !is_on(stack_b));
    assert_int_equal(sp_stack_of_fiber(self()).high, 0);
    spanprof_fiber_switch(c);
    assert_true(is_on(here) && is_on(stack_b));
    spanprof_fiber_switch(own);
    spanprof_fiber_destroy(a);
    spanprof_fiber_destroy(b);
    spanprof_fiber_destroy(c);
}

/* No memory is asked for, also where the fiber's scopes have outgrown a chunk before. */
static void switch_needs_no_memory(void **state)
{
    (void)state;
    enum { DEPTH = 20 };
    spanprof_scope scopes[DEPTH];
    spanprof_fiber a = spanprof_fiber_create(stack_a, sizeof stack_a);
    spanprof_fiber_switch(a);
    for (int i = 0; i < DEPTH; i++)
        scopes[i] = attach(1);
    memory_is_short = true;
    for (int i = 0; i < 100; i++) {
        assert_int_equal(spanprof_fiber_switch(own), SPANPROF_OK);
        assert_int_equal(spanprof_fiber_switch(a), SPANPROF_OK);
        assert_active(1);
    }
    memory_is_short = false;
    for (int i = DEPTH - 1; i >= 0; i--)
        spanprof_scope_detach(&scopes[i]);
    spanprof_fiber_switch(own);
    spanprof_fiber_destroy(a);
}

static void many_fibers_have_slots_of_their_own(void **state)
{
    (void)state;
    enum { COUNT = 10000 };
    spanprof_fiber *fibers = calloc(COUNT, sizeof *fibers);
    spanprof_scope *scopes = calloc(COUNT, sizeof *scopes);
    for (int i = 0; i < COUNT; i++) {
        fibers[i] = spanprof_fiber_create(NULL, 0);
        assert_int_equal(spanprof_fiber_switch(fibers[i]), SPANPROF_OK);
        scopes[i] = attach((uint8_t)(1 + i % 250));
    }
    for (int i = 0; i < COUNT; i++) {
        spanprof_fiber_switch(fibers[i]);
        assert_active((uint8_t)(1 + i % 250));
        assert_int_equal(spanprof_scope_detach(&scopes[i]), SPANPROF_OK);
    }
    spanprof_fiber_switch(own);
    for (int i = 0; i < COUNT; i++)
        spanprof_fiber_destroy(fibers[i]);
    free(fibers);
    free(scopes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fiber_without_memory_is_unknown_and_attaches_nothing),
        cmocka_unit_test(fiber_has_scopes_of_its_own),
        cmocka_unit_test(fiber_keeps_scopes_nested_deeper_than_a_chunk),
        cmocka_unit_test(fiber_goes_on_with_its_scopes_on_another_thread),
        cmocka_unit_test(scope_detached_while_its_fiber_is_suspended_is_gone_when_it_goes_on),
        cmocka_unit_test(scope_of_the_thread_detached_in_a_fiber_is_gone_when_it_comes_back),
        cmocka_unit_test(fiber_that_another_thread_runs_cannot_be_entered),
        cmocka_unit_test(destroyed_fiber_is_unknown_and_its_slot_a_fiber_anew),
        cmocka_unit_test(fiber_destroyed_while_it_runs_goes_on_until_it_is_left),
        cmocka_unit_test(thread_that_ends_in_a_fiber_leaves_it_suspended),
        cmocka_unit_test(forked_child_keeps_fibers_and_those_of_other_threads_are_suspended),
        cmocka_unit_test(stack_that_is_not_the_contexts_is_told),
        cmocka_unit_test(switch_needs_no_memory),
        cmocka_unit_test(many_fibers_have_slots_of_their_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
