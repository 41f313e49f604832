/* SPDX-License-Identifier: Apache-2.0 */
/* Another tracer's record as ticks and visits read it: what counts as a context, whose slot is
 * found, and which numbers they get. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "context/foreign_record_sig.h"

extern _Thread_local void *otel_thread_ctx_v1;

typedef struct record {
    uint8_t trace_id[16], span_id[8];
    uint8_t valid, trace_flags;
    uint16_t attributes_bytes;
} record;

static const record sample = {
    .trace_id = {1, 2, [15] = 3}, .span_id = {4, [7] = 5}, .valid = 1, .trace_flags = 1};

static record the_record;

static uint64_t own_pointer(void)
{
    return sp_load_relaxed(&sp_thread_self_create()->tick.context_tp);
}

static sp_foreign_result look(sp_thread *self)
{
    return sp_foreign_look(self, own_pointer);
}

/* Makes the calling thread's state, with RECORD in its slot. */
static sp_thread *begin(const record *record)
{
    sp_context_layout_learn();
    sp_thread *self = sp_thread_self_create();
    assert_non_null(self);
    otel_thread_ctx_v1 = (void *)(uintptr_t)record;
    return self;
}

static void a_change_of_the_context_is_a_switch(void **state)
{
    (void)state;
    the_record = sample;
    sp_thread *self = begin(&the_record);
    uint64_t before = self->tick.foreign_switches;
    assert_int_equal(look(self), SP_FOREIGN_ACTIVE);
    assert_int_equal(self->tick.foreign_switches, before + 2);
    assert_memory_equal(self->tick.foreign.trace_id, the_record.trace_id, 16);
    assert_memory_equal(&self->tick.foreign.span_id, the_record.span_id, 8);
    assert_int_equal(look(self), SP_FOREIGN_ACTIVE);
    assert_int_equal(self->tick.foreign_switches, before + 2);
    for (size_t i = 0; i < 26; i++) { /* each byte counts, but validity is no part of it */
        if (i == offsetof(struct record, valid))
            continue;
        ((uint8_t *)&the_record)[i] ^= 0x10;
        assert_int_equal(look(self), SP_FOREIGN_ACTIVE);
        assert_int_equal(self->tick.foreign_switches, before + 4);
        before += 2;
    }
    the_record.attributes_bytes = 5;
    assert_int_equal(look(self), SP_FOREIGN_ACTIVE);
    assert_int_equal(self->tick.foreign_switches, before + 2);
    the_record.valid = 0;
    assert_int_equal(look(self), SP_FOREIGN_NONE);
    assert_int_equal(self->tick.foreign_switches, before + 4);
    assert_int_equal(look(self), SP_FOREIGN_NONE);
    assert_int_equal(self->tick.foreign_switches, before + 4);
}

static void only_a_whole_valid_record_is_a_context(void **state)
{
    (void)state;
    the_record = sample;
    sp_thread *self = begin(&the_record);
    for (int valid = 0; valid < 256; valid++) {
        the_record.valid = (uint8_t)valid;
        assert_int_equal(look(self), valid == 1 ? SP_FOREIGN_ACTIVE : SP_FOREIGN_NONE);
    }
    the_record = sample;
    memset(the_record.span_id, 0, sizeof the_record.span_id);
    assert_int_equal(look(self), SP_FOREIGN_NONE);
    the_record = sample;
    memset(the_record.trace_id, 0, sizeof the_record.trace_id);
    assert_int_equal(look(self), SP_FOREIGN_NONE);
    otel_thread_ctx_v1 = NULL;
    assert_int_equal(look(self), SP_FOREIGN_NONE);
    otel_thread_ctx_v1 = &self->published.record;
    assert_int_equal(look(self), SP_FOREIGN_NONE);
}

/* Unknown is no switch: the same context behind it has the same number. */
static void a_record_that_cannot_be_read_is_unknown(void **state)
{
    (void)state;
    the_record = sample;
    sp_thread *self = begin(&the_record);
    assert_int_equal(look(self), SP_FOREIGN_ACTIVE);
    uint64_t before = self->tick.foreign_switches;
    otel_thread_ctx_v1 = (void *)16;
    assert_int_equal(look(self), SP_FOREIGN_UNKNOWN);
    otel_thread_ctx_v1 = (void *)UINTPTR_MAX;
    assert_int_equal(look(self), SP_FOREIGN_UNKNOWN);
    otel_thread_ctx_v1 = &the_record;
    assert_int_equal(look(self), SP_FOREIGN_ACTIVE);
    assert_int_equal(self->tick.foreign_switches, before);
}

/* As under a filter that forbids process_vm_readv: while nobody was ever seen to publish, a thread
 * has no span. */
static void a_slot_that_cannot_be_read_is_unknown_only_beside_another_tracer(void **state)
{
    (void)state;
    sp_foreign_context context;
    sp_thread *self = begin(NULL);
    uint64_t slot = sp_load_relaxed(&self->tick.context_slot);
    sp_store_relaxed(&self->tick.context_slot, 16);
    sp_store_relaxed(&sp_context_is_shared, 0);
    assert_int_equal(sp_foreign_peek(self, &context), SP_FOREIGN_NONE);
    sp_store_relaxed(&sp_context_is_shared, 1);
    assert_int_equal(sp_foreign_peek(self, &context), SP_FOREIGN_UNKNOWN);
    sp_store_relaxed(&self->tick.context_slot, slot);
}

static void a_record_may_lie_at_either_edge_of_what_is_mapped(void **state)
{
    (void)state;
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    uint8_t *pages = mmap(NULL, 3 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_int_equal(mprotect(pages + page, page, PROT_READ | PROT_WRITE), 0);
    memcpy(pages + page, &sample, sizeof sample);
    memcpy(pages + 2 * page - SP_FOREIGN_RECORD_BYTES, &sample, SP_FOREIGN_RECORD_BYTES);
    sp_thread *self = begin((const record *)(void *)(pages + page));
    assert_int_equal(look(self), SP_FOREIGN_ACTIVE);
    otel_thread_ctx_v1 = pages + 2 * page - SP_FOREIGN_RECORD_BYTES;
    assert_int_equal(look(self), SP_FOREIGN_ACTIVE);
    otel_thread_ctx_v1 = pages + 2 * page - SP_FOREIGN_RECORD_BYTES + 2;
    assert_int_equal(look(self), SP_FOREIGN_UNKNOWN);
    munmap(pages, 3 * page);
}

static uint64_t known_pointer;

static uint64_t remembered_pointer(void)
{
    return known_pointer;
}

/* As it is when its first tick comes before a scan has seen it. */
static void a_thread_whose_slot_is_not_known_yet_finds_it(void **state)
{
    (void)state;
    the_record = sample;
    sp_thread *self = begin(&the_record);
    if (sp_context_layout_now.kind == SP_CONTEXT_NOWHERE)
        skip();
    known_pointer = own_pointer();
    sp_store_relaxed(&self->tick.context_tp, 0);
    sp_store_relaxed(&self->tick.context_slot, 0);
    assert_int_equal(sp_foreign_look(self, remembered_pointer), SP_FOREIGN_ACTIVE);
    assert_ptr_equal((void *)(uintptr_t)sp_load_relaxed(&self->tick.context_slot),
                     &otel_thread_ctx_v1);
    known_pointer++; /* another thread's */
    assert_int_equal(sp_foreign_look(self, remembered_pointer), SP_FOREIGN_NONE);
}

/* As in a program that exchanges its thread pointer: a sample there must not join the interval of
 * the context before. */
static void a_thread_pointer_that_changed_ends_the_context(void **state)
{
    (void)state;
    the_record = sample;
    sp_thread *self = begin(&the_record);
    known_pointer = own_pointer();
    assert_int_equal(sp_foreign_look(self, remembered_pointer), SP_FOREIGN_ACTIVE);
    uint64_t before = self->tick.foreign_switches;
    known_pointer++; /* another thread's */
    for (int i = 0; i < 2; i++) {
        static const sp_foreign_context none;
        assert_int_equal(sp_foreign_look(self, remembered_pointer), SP_FOREIGN_NONE);
        assert_int_equal(self->tick.foreign_switches, before + 2);
        assert_true(sp_foreign_is_same(&self->tick.foreign, &none));
    }
    known_pointer--;
    assert_int_equal(sp_foreign_look(self, remembered_pointer), SP_FOREIGN_ACTIVE);
    assert_int_equal(self->tick.foreign_switches, before + 4);
    assert_memory_equal(&self->tick.foreign.span_id, the_record.span_id, 8);
}

static void a_record_of_another_copy_of_this_library_is_left_to_it(void **state)
{
    (void)state;
    static _Alignas(SP_CACHE_LINE) sp_thread copy = {.signature = SP_THREAD_SIGNATURE};
    memcpy(&copy.published.record, &sample, 24);
    sp_store_relaxed(&copy.published.record.tail, 0x101);
    sp_thread *self = begin((const record *)(const void *)&copy.published.record);
    assert_int_equal(look(self), SP_FOREIGN_NONE);
    copy.signature = 0;
    assert_int_equal(look(self), SP_FOREIGN_ACTIVE);
}

/* --- numbers ---------------------------------------------------------------------------------- */

/* Ticks between switches of both kinds: a number never comes again under another context, and never
 * one that is smaller. */
static void numbers_grow_and_each_has_one_context(void **state)
{
    (void)state;
    the_record = sample;
    sp_thread *self = begin(&the_record);
    spanprof_context ours = {.trace_id = {9}, .span_id = {9}};
    spanprof_scope scope = {0};
    uint64_t last = 0, last_words[3] = {0}, random = 88172645463325252u;
    for (int i = 0; i < 200000; i++) {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        switch (random % 5) {
        case 0:
            the_record.span_id[0] = (uint8_t)(1 + random / 8 % 3);
            break;
        case 1:
            the_record.valid = !the_record.valid;
            break;
        case 2:
            if (!scope.serial)
                scope = spanprof_context_attach(&ours);
            break;
        case 3:
            if (scope.serial)
                spanprof_scope_detach(&scope);
            break;
        default:
            break;
        }
        uint64_t words[3] = {0};
        bool is_hidden = sp_foreign_is_hidden(self);
        if (!is_hidden && look(self) == SP_FOREIGN_ACTIVE)
            memcpy(words, &self->tick.foreign, sizeof words);
        if (is_hidden)
            memcpy(words, &self->published.record, sizeof words);
        uint64_t number =
            sp_load_relaxed(&self->published.switch_number) + self->tick.foreign_switches;
        assert_true(number >= last && number % 2 == 0);
        if (number == last)
            assert_memory_equal(words, last_words, sizeof words);
        last = number;
        memcpy(last_words, words, sizeof words);
    }
    if (scope.serial)
        spanprof_scope_detach(&scope);
}

/* --- other threads ---------------------------------------------------------------------------- */

typedef struct other {
    pid_t tid;
    void **slot;
    pthread_barrier_t ready, done;
} other;

static void *publish_and_wait(void *argument)
{
    static const record its = {.trace_id = {7}, .span_id = {7}, .valid = 1};
    other *other = argument;
    other->tid = (pid_t)syscall(SYS_gettid);
    other->slot = &otel_thread_ctx_v1;
    otel_thread_ctx_v1 = (void *)(uintptr_t)&its;
    pthread_barrier_wait(&other->ready);
    pthread_barrier_wait(&other->done);
    return NULL;
}

static sp_thread *state_of(pid_t tid)
{
    for (uint32_t slot = 0; slot < sp_thread_slots(); slot++) {
        sp_thread *thread = sp_thread_by_slot(slot);
        if (sp_load_relaxed(&thread->registered.life) == SP_THREAD_LIVE &&
            thread->registered.tid == tid)
            return thread;
    }
    return NULL;
}

static void a_thread_that_never_called_is_read_from_outside(void **state)
{
    (void)state;
    other other;
    pthread_t thread;
    sp_foreign_context context;
    void *head;
    size_t size;
    if (syscall(SYS_get_robust_list, 0, &head, &size) != 0) {
        print_message("the kernel does not tell lists of robust mutexes (an emulator)\n");
        skip();
    }
    sp_context_layout_learn();
    assert_int_not_equal(sp_context_layout_now.kind, SP_CONTEXT_NOWHERE);
    pthread_barrier_init(&other.ready, NULL, 2);
    pthread_barrier_init(&other.done, NULL, 2);
    assert_int_equal(pthread_create(&thread, NULL, publish_and_wait, &other), 0);
    pthread_barrier_wait(&other.ready);
    assert_true(sp_threads_scan());
    sp_thread *found = state_of(other.tid);
    assert_non_null(found);
    assert_ptr_equal((void **)(uintptr_t)sp_load_relaxed(&found->tick.context_slot), other.slot);
    assert_int_equal(sp_foreign_peek(found, &context), SP_FOREIGN_ACTIVE);
    assert_int_equal(context.span_id & 0xff, 7);
    pthread_barrier_wait(&other.done);
    pthread_join(thread, NULL);
}

/* What is there first stays, also when the thread attaches and when it ends. */
static void *attach_under_another(void *argument)
{
    spanprof_context ours = {.trace_id = {9}, .span_id = {9}};
    otel_thread_ctx_v1 = argument;
    spanprof_scope scope = spanprof_context_attach(&ours);
    assert_ptr_equal(otel_thread_ctx_v1, argument);
    spanprof_scope_detach(&scope);
    assert_ptr_equal(otel_thread_ctx_v1, argument);
    return NULL;
}

static void a_slot_that_another_tracer_uses_is_never_written(void **state)
{
    (void)state;
    the_record = sample;
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, attach_under_another, &the_record), 0);
    pthread_join(thread, NULL);
    assert_memory_equal(&the_record, &sample, sizeof the_record);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_change_of_the_context_is_a_switch),
        cmocka_unit_test(only_a_whole_valid_record_is_a_context),
        cmocka_unit_test(a_record_that_cannot_be_read_is_unknown),
        cmocka_unit_test(a_slot_that_cannot_be_read_is_unknown_only_beside_another_tracer),
        cmocka_unit_test(a_record_may_lie_at_either_edge_of_what_is_mapped),
        cmocka_unit_test(a_thread_whose_slot_is_not_known_yet_finds_it),
        cmocka_unit_test(a_thread_pointer_that_changed_ends_the_context),
        cmocka_unit_test(a_record_of_another_copy_of_this_library_is_left_to_it),
        cmocka_unit_test(numbers_grow_and_each_has_one_context),
        cmocka_unit_test(a_thread_that_never_called_is_read_from_outside),
        cmocka_unit_test(a_slot_that_another_tracer_uses_is_never_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
