/* SPDX-License-Identifier: Apache-2.0 */
/* The hooks for another tracer: which local root is learned, which attributes are asked for, and
 * the bounds of the table. */
#include "unit/trace/support.h"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/hex.h"
#include "trace/starts.h"

/* Context number SPAN of trace 1: as another tracer makes it, with no local root. */
static spanprof_context make(uint32_t span)
{
    spanprof_context context = {.trace_id = {1}, .trace_flags = SPANPROF_TRACE_FLAG_SAMPLED};
    memcpy(context.span_id, &span, sizeof span);
    return context;
}

static void on_start(uint32_t span, const spanprof_context *parent)
{
    spanprof_context context = make(span);
    spanprof_processor_on_start(&context, parent, "s", 0, NULL);
}

static void on_end(uint32_t span)
{
    spanprof_context context = make(span);
    spanprof_processor_on_end(&context, 0);
}

/* 0: not known. */
static uint64_t root_of(uint32_t span)
{
    spanprof_context context = make(span);
    return sp_starts_local_root(&context);
}

static void roots_are_learned_from_parents(void **state)
{
    (void)state;
    spanprof_context one = make(1), two = make(2), remote = make(1), unknown = make(99);
    remote.remote = 1;
    on_start(1, NULL);
    on_start(2, &one);
    on_start(3, &two);
    on_start(4, &(spanprof_context){0});
    on_start(5, &remote);
    on_start(6, &unknown);
    assert_int_equal(root_of(1), 1);
    assert_int_equal(root_of(2), 1);
    assert_int_equal(root_of(3), 1);
    assert_int_equal(root_of(4), 4);
    assert_int_equal(root_of(5), 5);
    assert_int_equal(root_of(6), 6);
    assert_int_equal(root_of(99), 0);
    assert_int_equal(sp_starts_local_root(&remote), 0);
    spanprof_context other_trace = make(1);
    other_trace.trace_id[15] = 1;
    assert_int_equal(sp_starts_local_root(&other_trace), 0);
    assert_int_equal(counters().foreign_started, 6);
}

static void roots_that_are_named_are_taken(void **state)
{
    (void)state;
    spanprof_context context = make(1), parent = make(2);
    context.local_root_span_id[0] = 7;
    parent.local_root_span_id[0] = 8;
    spanprof_processor_on_start(&context, &parent, "s", 0, NULL);
    assert_int_equal(root_of(1), 7);
    on_start(3, &parent);
    assert_int_equal(root_of(3), 8);
    on_start(3, &context); /* told again: the last counts */
    assert_int_equal(root_of(3), 7);
}

static void ended_spans_stay_known_for_a_while(void **state)
{
    (void)state;
    on_start(1, NULL);
    on_end(1);
    on_end(1);
    on_end(2);
    assert_int_equal(root_of(1), 1);
    assert_int_equal(counters().foreign_ended, 1);
    spanprof_context one = make(1);
    on_start(2, &one);
    assert_int_equal(root_of(2), 1);
}

static void what_no_sample_links_to_is_ignored(void **state)
{
    (void)state;
    spanprof_context unsampled = make(1), remote = make(2), invalid = make(0);
    unsampled.trace_flags = 0;
    remote.remote = 1;
    spanprof_processor_on_start(&unsampled, NULL, "s", 0, NULL);
    spanprof_processor_on_start(&remote, NULL, "s", 0, NULL);
    spanprof_processor_on_start(&invalid, NULL, "s", 0, NULL);
    spanprof_processor_on_start(NULL, NULL, NULL, 0, NULL);
    spanprof_processor_on_end(NULL, 0);
    assert_int_equal(root_of(1), 0);
    assert_int_equal(root_of(2), 0);
    assert_int_equal(counters().foreign_started, 0);
}

static void restart(bool mark_roots, bool mark_all)
{
    sp_tracer_config config = {
        .queue_spans = QUEUE, .record = false, .mark_roots = mark_roots, .mark_all = mark_all};
    sp_tracer_stop();
    assert_int_equal(sp_tracer_start(&config), SPANPROF_OK);
}

static bool is_marked(uint32_t span, const spanprof_context *parent)
{
    spanprof_start_attributes out = SPANPROF_START_ATTRIBUTES_INIT;
    spanprof_context context = make(span);
    char id[17];
    out.count = 99;
    spanprof_processor_on_start(&context, parent, "s", 0, &out);
    if (out.count == 0)
        return false;
    assert_int_equal(out.count, 1);
    assert_string_equal(out.items[0].key, "pyroscope.profile.id");
    assert_int_equal(out.items[0].type, SPANPROF_ATTRIBUTE_STRING);
    sp_hex_encode(id, context.span_id, sizeof context.span_id);
    assert_string_equal(out.items[0].value.string_value, id);
    return true;
}

static void attributes_are_those_that_links_need(void **state)
{
    (void)state;
    spanprof_context one = make(1);
    restart(false, false);
    assert_false(is_marked(1, NULL));
    restart(true, false);
    assert_true(is_marked(1, NULL));
    assert_false(is_marked(2, &one));
    restart(true, true);
    assert_true(is_marked(1, NULL));
    assert_true(is_marked(2, &one));
}

static void attributes_of_any_size_are_written_as_far_as_they_go(void **state)
{
    (void)state;
    const spanprof_start_attributes marked = {0};
    spanprof_context one = make(1);
    restart(true, true);
    for (uint32_t size = 0; size < sizeof marked; size++) {
        spanprof_start_attributes out = {.struct_size = size, .count = 99};
        spanprof_processor_on_start(&one, NULL, "s", 0, &out);
        assert_int_equal(out.count, size < 8 ? 99 : 0);
        assert_memory_equal(out.items, marked.items, sizeof out.items);
        assert_memory_equal(out.text, marked.text, sizeof out.text);
    }
}

static void nothing_is_learned_while_the_sdk_is_stopped(void **state)
{
    (void)state;
    on_start(1, NULL);
    sp_tracer_stop();
    assert_false(is_marked(2, NULL));
    on_start(3, NULL);
    on_end(1);
    assert_int_equal(root_of(2), 0);
    assert_int_equal(root_of(3), 0);
    assert_int_equal(start_tracer(state), 0);
    assert_int_equal(root_of(1), 0); /* its end may have been missed */
}

/* A span of ours under one of theirs belongs to their root. */
static void own_span_under_a_foreign_one_has_its_root(void **state)
{
    (void)state;
    spanprof_context one = make(1), two = make(2), unknown = make(99);
    on_start(1, NULL);
    on_start(2, &one);
    spanprof_span_options options = SPANPROF_SPAN_OPTIONS_INIT;
    options.parent = &two;
    spanprof_span span = spanprof_span_start(NULL, "ours", &options);
    spanprof_context context = spanprof_span_context(span);
    spanprof_span_end(span);
    assert_memory_equal(context.local_root_span_id, one.span_id, 8);
    options.parent = &unknown;
    span = spanprof_span_start(NULL, "ours", &options);
    context = spanprof_span_context(span);
    spanprof_span_end(span);
    assert_memory_equal(context.local_root_span_id, context.span_id, 8);
    assert_int_equal(release_all(), 2);
}

/* --- bounds ----------------------------------------------------------------------------------- */

enum { ALL = SP_STARTS_SHARDS * SP_STARTS_SHARD_SPANS };

/* Returns how many of COUNT spans from FIRST on are known; their root is span 1. */
static uint32_t count_known(uint32_t first, uint32_t count)
{
    uint32_t known = 0;
    for (uint32_t span = first; span < first + count; span++) {
        uint64_t root = root_of(span);
        assert_true(root == 0 || root == 1);
        known += root != 0;
    }
    return known;
}

static void table_that_is_full_forgets_ended_spans_first(void **state)
{
    (void)state;
    spanprof_context one = make(1);
    on_start(1, NULL);
    for (uint32_t span = 2; span < 2 + 4 * ALL; span++) {
        if (span % 1000 == 0)
            on_start(1, NULL); /* told again, it is among the newest */
        on_start(span, &one);
        on_end(span);
    }
    assert_int_equal(counters().foreign_evicted, 0);
    assert_int_equal(root_of(1), 1);
    uint32_t known = count_known(2, 4 * ALL);
    assert_int_equal(known, ALL - 1);
    /* What came last is what is known, but for the unevenness of the shards: of 4 * ALL spans, a
     * shard's share is 4,096 ± 64 (σ). */
    assert_int_equal(count_known(2 + 3 * ALL + ALL / 2, ALL / 2), ALL / 2);
}

static void table_full_of_live_spans_forgets_the_oldest_and_counts(void **state)
{
    (void)state;
    spanprof_context one = make(1);
    one.local_root_span_id[0] = 1;
    for (uint32_t span = 2; span < 2 + 2 * ALL; span++)
        on_start(span, &one);
    assert_int_equal(counters().foreign_started, 2 * ALL);
    assert_int_equal(counters().foreign_evicted, ALL);
    assert_int_equal(count_known(2, 2 * ALL), ALL);
    assert_int_equal(count_known(2 + 2 * ALL - ALL / 2, ALL / 2), ALL / 2);
    for (uint32_t span = 2; span < 2 + 2 * ALL; span++)
        on_end(span);
    assert_int_equal(counters().foreign_ended, ALL);
}

enum { THREADS = 4, ROUNDS = 4000 };

static void *run_foreign(void *number)
{
    uint32_t root = *(const uint32_t *)number;
    spanprof_context parent = make(root);
    on_start(root, NULL);
    for (uint32_t i = 1; i < ROUNDS; i++) {
        on_start(root + i, &parent);
        assert_int_equal(root_of(root + i), root);
        on_end(root + i);
        uint64_t of_others = root_of((root + i * 7) % (THREADS * ROUNDS) + 1);
        assert_true(of_others == 0 || of_others % ROUNDS == 1);
    }
    on_end(root);
    return NULL;
}

static void threads_share_the_table(void **state)
{
    (void)state;
    pthread_t threads[THREADS];
    uint32_t roots[THREADS];
    for (uint32_t i = 0; i < THREADS; i++) {
        roots[i] = i * ROUNDS + 1;
        assert_int_equal(pthread_create(&threads[i], NULL, run_foreign, &roots[i]), 0);
    }
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(counters().foreign_started, THREADS * ROUNDS);
    assert_int_equal(counters().foreign_ended, THREADS * ROUNDS);
}

static int check_child(void)
{
    sp_tracer_after_fork();
    sp_tracer_config config = {.queue_spans = QUEUE};
    if (root_of(1) != 0 || sp_tracer_start(&config) != SPANPROF_OK)
        return 1;
    on_start(2, NULL);
    return root_of(2) == 2 && counters().foreign_started == 1 ? 0 : 2;
}

static void forked_child_knows_no_spans(void **state)
{
    (void)state;
    on_start(1, NULL);
    pid_t child = fork();
    if (child == 0)
        _exit(check_child());
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    assert_int_equal(root_of(1), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        traced(roots_are_learned_from_parents),
        traced(roots_that_are_named_are_taken),
        traced(ended_spans_stay_known_for_a_while),
        traced(what_no_sample_links_to_is_ignored),
        traced(attributes_are_those_that_links_need),
        traced(attributes_of_any_size_are_written_as_far_as_they_go),
        traced(nothing_is_learned_while_the_sdk_is_stopped),
        traced(own_span_under_a_foreign_one_has_its_root),
        traced(table_that_is_full_forgets_ended_spans_first),
        traced(table_full_of_live_spans_forgets_the_oldest_and_counts),
        traced(threads_share_the_table),
        traced(forked_child_knows_no_spans),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
