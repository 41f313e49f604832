/* SPDX-License-Identifier: Apache-2.0 */
/* The join and the aggregation on records made by hand. */
#include <setjmp.h>
#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <spanprof/context.h>
#include "collect/aggregate.h"

static void join_interval(sp_join *join, uint64_t number, uint64_t id, uint32_t flags,
                          uint32_t remote)
{
    sp_interval_record record = {.header = {sizeof(sp_interval_record), SP_RECORD_INTERVAL},
                                 .number = number,
                                 .trace_id = {id, id},
                                 .span_id = id,
                                 .local_root_span_id = id + 1,
                                 .trace_flags = flags,
                                 .remote = remote};
    sp_join_interval(join, &record);
}

/* As the last sp_join_default_refresh left it. */
static sp_join_default fallback = {.result = SP_JOIN_NONE};

static sp_join_result join_sample(const sp_join *join, uint64_t number, uint8_t unknown,
                                  sp_window_link *link)
{
    sp_sample_record sample = {.number = number, .unknown = unknown};
    return sp_join_sample(join, &fallback, &sample, link);
}

static void join_sample_of_the_last_interval_is_linked(void **state)
{
    (void)state;
    sp_join join = {0};
    sp_window_link link;
    join_interval(&join, 8, 5, SPANPROF_TRACE_FLAG_SAMPLED, 0);
    assert_int_equal(join_sample(&join, 8, 0, &link), SP_JOIN_LINKED);
    static const uint64_t id = 5, trace_id[] = {5, 5}, root_id = 6;
    assert_memory_equal(link.span_id, &id, 8);
    assert_memory_equal(link.trace_id, trace_id, 16);
    assert_memory_equal(link.root_span_id, &root_id, 8);
}

static void set_default(const spanprof_context *context)
{
    spanprof_context_set_default(context);
    sp_join_default_refresh(&fallback);
}

static void join_without_a_context_has_the_default_one(void **state)
{
    (void)state;
    static const sp_window_link none;
    const spanprof_context process = {.trace_id = {1},
                                      .span_id = {2},
                                      .local_root_span_id = {3},
                                      .trace_flags = SPANPROF_TRACE_FLAG_SAMPLED};
    sp_join join = {0};
    sp_window_link link;
    set_default(&process);
    assert_int_equal(join_sample(&join, 8, 0, &link), SP_JOIN_UNKNOWN); /* no interval yet */
    join_interval(&join, 8, 0, 0, 0);
    assert_int_equal(join_sample(&join, 8, 0, &link), SP_JOIN_LINKED);
    assert_memory_equal(link.trace_id, process.trace_id, sizeof link.trace_id);
    assert_memory_equal(link.span_id, process.span_id, sizeof link.span_id);
    assert_memory_equal(link.root_span_id, process.local_root_span_id, sizeof link.root_span_id);
    assert_int_equal(join_sample(&join, 10, 0, &link), SP_JOIN_UNKNOWN);
    assert_memory_equal(&link, &none, sizeof link);
    set_default(NULL); /* also for an interval that was joined before */
    assert_int_equal(join_sample(&join, 8, 0, &link), SP_JOIN_NONE);
    assert_memory_equal(&link, &none, sizeof link);
}

static void join_default_takes_no_other_contexts_place(void **state)
{
    (void)state;
    static const uint64_t id = 5;
    const spanprof_context process = {
        .trace_id = {1}, .span_id = {2}, .trace_flags = SPANPROF_TRACE_FLAG_SAMPLED};
    sp_join join = {0};
    sp_window_link link;
    set_default(&process);
    join_interval(&join, 8, 5, SPANPROF_TRACE_FLAG_SAMPLED, 0);
    assert_int_equal(join_sample(&join, 8, 0, &link), SP_JOIN_LINKED);
    assert_memory_equal(link.span_id, &id, sizeof id);
    join_interval(&join, 10, 5, 0, 0); /* unsampled */
    assert_int_equal(join_sample(&join, 10, 0, &link), SP_JOIN_NONE);
    join_interval(&join, 12, 5, SPANPROF_TRACE_FLAG_SAMPLED, 1); /* remote */
    assert_int_equal(join_sample(&join, 12, 0, &link), SP_JOIN_NONE);
    set_default(NULL);
}

static void join_default_that_is_not_sampled_or_remote_links_nothing(void **state)
{
    (void)state;
    spanprof_context process = {.trace_id = {1}, .span_id = {2}};
    sp_join join = {0};
    sp_window_link link;
    join_interval(&join, 8, 0, 0, 0);
    set_default(&process);
    assert_int_equal(join_sample(&join, 8, 0, &link), SP_JOIN_NONE);
    process.trace_flags = SPANPROF_TRACE_FLAG_SAMPLED;
    process.remote = 1;
    set_default(&process);
    assert_int_equal(join_sample(&join, 8, 0, &link), SP_JOIN_NONE);
    set_default(NULL);
}

static void join_sample_of_another_number_is_unknown_and_without_link(void **state)
{
    (void)state;
    static const sp_window_link none;
    sp_join join = {0};
    sp_window_link link;
    assert_int_equal(join_sample(&join, 8, 0, &link), SP_JOIN_UNKNOWN); /* no interval yet */
    join_interval(&join, 8, 5, SPANPROF_TRACE_FLAG_SAMPLED, 0);
    static const uint64_t numbers[] = {0, 6, 7, 9, 10, 11};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        assert_int_equal(join_sample(&join, numbers[i], 0, &link), SP_JOIN_UNKNOWN);
        assert_memory_equal(&link, &none, sizeof link);
    }
    assert_int_equal(join_sample(&join, 8, 1, &link),
                     SP_JOIN_UNKNOWN); /* a foreign detach was pending */
    assert_memory_equal(&link, &none, sizeof link);
}

static void join_unsampled_remote_and_absent_spans_link_to_none(void **state)
{
    (void)state;
    static const sp_window_link none;
    static const struct {
        uint64_t id;
        uint32_t flags, remote;
    } contexts[] = {
        {5, 0, 0},
        {5, SPANPROF_TRACE_FLAG_RANDOM, 0},
        {5, SPANPROF_TRACE_FLAG_SAMPLED, 1},
        {0, SPANPROF_TRACE_FLAG_SAMPLED, 0},
    };
    for (size_t i = 0; i < sizeof contexts / sizeof contexts[0]; i++) {
        sp_join join = {0};
        sp_window_link link;
        join_interval(&join, 8, contexts[i].id, contexts[i].flags, contexts[i].remote);
        assert_int_equal(join_sample(&join, 8, 0, &link), SP_JOIN_NONE);
        assert_memory_equal(&link, &none, sizeof link);
    }
}

static uint64_t tick_time_ns; /* of the last tick that was aggregated */

/* A sample of LEAF, called from ROOT, under SPAN (0: none). */
static bool fold_called(sp_window *window, uint64_t leaf, uint64_t root, uint32_t span,
                        uint32_t periods, uint32_t max_samples)
{
    uint64_t room[(sizeof(sp_sample_record) + 2 * sizeof(uint64_t)) / sizeof(uint64_t)] = {0};
    sp_sample_record *record = (sp_sample_record *)(void *)room;
    record->periods = periods;
    record->count = record->leaf_count = 2;
    record->pcs[0] = leaf;
    record->pcs[1] = root;
    static const sp_window_thread thread = {.tid = 7, .name = "t"};
    sp_aggregate_sample one = {
        .record = record,
        .thread = &thread,
        .result = span ? SP_JOIN_LINKED : SP_JOIN_NONE,
        .weight = periods,
        .count = 1,
        .counted = periods,
        .time_ns = ++tick_time_ns,
    };
    memcpy(one.link.span_id, &span, sizeof span);
    return sp_aggregate_add(window, &window->cpu, &one, max_samples);
}

static bool aggregate(sp_window *window, uint64_t leaf, uint32_t span, uint32_t periods,
                      uint32_t max_samples)
{
    return fold_called(window, leaf, 0x1000, span, periods, max_samples);
}

static void fold_equal_samples_become_one_with_the_sum_of_weights(void **state)
{
    (void)state;
    sp_window window = {0};
    assert_true(aggregate(&window, 0x10, 1, 1, 100));
    assert_true(aggregate(&window, 0x10, 1, 4, 100));
    assert_true(aggregate(&window, 0x10, 2, 1, 100));
    assert_true(aggregate(&window, 0x20, 1, 1, 100));
    assert_true(aggregate(&window, 0x10, 0, 1, 100));
    assert_int_equal(window.cpu.keys.count, 4);
    assert_int_equal(window.cpu.values[0].weight, 5);
    assert_int_equal(window.cpu.values[0].count, 2);
    assert_int_equal(window.cpu.count, 5);
    assert_int_equal(window.cpu.linked, 7);
    assert_int_equal(window.cpu.none, 1);
    assert_int_equal(window.links.count, 3); /* none, 1, 2 */
    sp_window_clear(&window);
    assert_int_equal(window.cpu.keys.count, 0);
    assert_true(aggregate(&window, 0x10, 1, 1, 100));
    assert_int_equal(window.cpu.values[0].weight, 1);
    sp_window_deinit(&window);
}

/* What is counted of links and of stacks is all that was sampled, and so is what samples weigh. */
static void assert_sums(const sp_window *window, uint64_t periods)
{
    uint64_t weight = 0, ends = 0;
    const sp_window_samples *cpu = &window->cpu;
    for (uint32_t n = 0; n < cpu->keys.count; n++)
        weight += cpu->values[n].weight;
    for (uint32_t end = 0; end < SP_WINDOW_ENDS; end++)
        ends += cpu->stacks_by_end[end];
    assert_int_equal(weight, periods);
    assert_int_equal(cpu->linked + cpu->none + cpu->unknown, periods);
    assert_int_equal(ends + cpu->folded, periods);
}

/* Of the samples whose link is SPAN's and whose stack ends in END. */
static uint64_t weight_of(const sp_window *window, uint32_t span, sp_walk_end end)
{
    uint64_t weight = 0;
    for (uint32_t n = 0; n < window->cpu.keys.count; n++) {
        const sp_window_key *key = sp_intern_key(&window->cpu.keys, n);
        const sp_window_link *link = sp_intern_key(&window->links, key->link);
        const sp_intern_entry *stack = &window->stacks.entries[key->stack];
        const uint32_t *frames = stack->key;
        if (memcmp(link->span_id, &span, sizeof span) == 0 &&
            frames[stack->length / sizeof *frames - 1] == (uint32_t)end)
            weight += window->cpu.values[n].weight;
    }
    return weight;
}

static void fold_full_window_has_no_sample_too_many_and_loses_no_weight(void **state)
{
    (void)state;
    enum { SPANS = 200 };
    static const uint32_t bounds[] = {1, 2, 3, 4, 5, 7, 50, 333};
    for (size_t i = 0; i < sizeof bounds / sizeof bounds[0]; i++) {
        sp_window window = {0};
        for (uint32_t span = 0; span < SPANS; span++)
            for (uint32_t leaf = 0; leaf < 3; leaf++) {
                assert_true(aggregate(&window, 0x10 + leaf, span, 2, bounds[i]));
                assert_true(window.cpu.keys.count <= bounds[i]);
            }
        assert_sums(&window, SPANS * 3 * 2);
        assert_int_equal(window.cpu.none, 3 * 2);
        sp_window_deinit(&window);
    }
}

/* Each time from FIRST_NS on is in one sample, and each sample has a time for each of its periods.
 */
static void assert_times(const sp_window *window, uint64_t first_ns, uint64_t ticks)
{
    const sp_window_samples *cpu = &window->cpu;
    bool *seen = calloc(ticks + 1, sizeof *seen);
    uint64_t found = 0;
    for (uint32_t n = 0; n < cpu->keys.count; n++) {
        uint64_t periods = 0;
        for (uint32_t at = cpu->values[n].first_time; at; found++) {
            const sp_window_time *time = &cpu->times.entries[at - 1];
            periods += time->periods;
            assert_in_range(time->time_ns, first_ns, first_ns + ticks - 1);
            assert_false(seen[time->time_ns - first_ns]);
            seen[time->time_ns - first_ns] = true;
            at = at == cpu->values[n].last_time ? 0 : time->next;
        }
        assert_int_equal(periods, cpu->values[n].weight);
    }
    assert_int_equal(found, ticks);
    free(seen);
}

static void fold_full_window_keeps_all_times(void **state)
{
    (void)state;
    enum { SPANS = 200 };
    static const uint32_t bounds[] = {1, 2, 3, 5, 7, 50, 333, 1000};
    for (size_t i = 0; i < sizeof bounds / sizeof bounds[0]; i++) {
        sp_window window = {0};
        uint64_t first_ns = tick_time_ns + 1;
        for (uint32_t tick = 0; tick < SPANS * 6; tick++)
            assert_true(
                aggregate(&window, 0x10 + tick % 3, tick / 2 % SPANS, 1 + tick % 4, bounds[i]));
        assert_times(&window, first_ns, SPANS * 6);
        sp_window_clear(&window);
        assert_int_equal(window.cpu.times.count, 0);
        assert_true(aggregate(&window, 0x10, 1, 2, bounds[i]));
        assert_times(&window, tick_time_ns, 1);
        sp_window_deinit(&window);
    }
}

static void fold_keeps_a_bounded_number_of_times(void **state)
{
    (void)state;
    sp_window window = {0};
    for (uint32_t i = 0; i < SP_WINDOW_TIMES_MAX / 1000; i++)
        assert_true(aggregate(&window, 0x10, 1, 1000, 100));
    assert_int_equal(window.cpu.times.periods, SP_WINDOW_TIMES_MAX);
    assert_int_equal(window.cpu.times.lost, 0);
    assert_true(aggregate(&window, 0x10, 1, 3, 100));
    assert_true(aggregate(&window, 0x10, 1, UINT32_MAX, 100));
    assert_int_equal(window.cpu.times.periods, SP_WINDOW_TIMES_MAX);
    assert_int_equal(window.cpu.times.lost, UINT64_C(3) + UINT32_MAX);
    assert_int_equal(window.cpu.values[0].weight, SP_WINDOW_TIMES_MAX + UINT64_C(3) + UINT32_MAX);
    sp_window_deinit(&window);
}

static void fold_full_window_adds_to_the_sample_that_is_there(void **state)
{
    (void)state;
    enum { MAX = 50 };
    sp_window window = {0};
    for (int round = 0; round < 3; round++)
        for (uint32_t span = 0; span < MAX; span++)
            assert_true(aggregate(&window, 0x10, span, 1, MAX));
    assert_int_equal(window.cpu.keys.count, MAX);
    assert_int_equal(window.cpu.folded, 0);
    assert_int_equal(weight_of(&window, 7, SP_WALK_COMPLETE), 3);
    sp_window_deinit(&window);
}

/* As a program does that starts a span a millisecond, and then one that takes long. */
static void fold_full_window_keeps_stack_and_link_of_a_late_heavy_span(void **state)
{
    (void)state;
    enum { MAX = 50, SPANS = 500, LATE = 1000, TICKS = 100 };
    sp_window window = {0};
    for (uint32_t span = 1; span <= SPANS; span++)
        assert_true(aggregate(&window, 0x10, span, 1, MAX));
    for (int i = 0; i < TICKS; i++)
        assert_true(aggregate(&window, 0x10, LATE, 1, MAX));
    for (uint32_t span = SPANS + 1; span < LATE; span++)
        assert_true(aggregate(&window, 0x10, span, 1, MAX));
    assert_int_equal(weight_of(&window, LATE, SP_WALK_COMPLETE), TICKS);
    assert_true(window.cpu.unknown > 0);
    assert_true(window.cpu.keys.count <= MAX);
    assert_sums(&window, LATE - 1 + TICKS);
    sp_window_deinit(&window);
}

static void fold_full_window_drops_frames_before_links(void **state)
{
    (void)state;
    enum { MAX = 50, ROOTS = 200 };
    sp_window window = {0};
    for (uint32_t root = 0; root < ROOTS; root++)
        for (uint32_t span = 1; span <= 2; span++)
            assert_true(fold_called(&window, 0x10 + span, 0x1000 + root, span, 3, MAX));
    assert_int_equal(window.cpu.unknown, 0);
    assert_int_equal(window.cpu.linked, ROOTS * 2 * 3);
    assert_true(weight_of(&window, 1, SP_WALK_FOLDED) > 0);
    assert_int_equal(window.cpu.folded,
                     weight_of(&window, 1, SP_WALK_FOLDED) + weight_of(&window, 2, SP_WALK_FOLDED));
    for (uint32_t n = 0; n < window.cpu.keys.count; n++) { /* the leaf stays */
        const sp_window_key *key = sp_intern_key(&window.cpu.keys, n);
        const uint32_t *frames = sp_intern_key(&window.stacks, key->stack);
        const sp_window_location *leaf = sp_intern_key(&window.locations, frames[0]);
        assert_in_range(leaf->address, 0x11, 0x12);
    }
    assert_sums(&window, ROOTS * 2 * 3);
    sp_window_deinit(&window);
}

/* A record of COUNT pcs from 0x1000 down, LEAF_COUNT of them in front of a gap. */
static bool fold_stack(sp_window *window, uint16_t count, uint16_t leaf_count, sp_walk_end end,
                       uint16_t by_frame_pointer)
{
    uint64_t room[sizeof(sp_sample_record) / sizeof(uint64_t) + 8] = {0};
    sp_sample_record *record = (sp_sample_record *)(void *)room;
    record->periods = 2;
    record->count = count;
    record->leaf_count = leaf_count;
    record->end = (uint8_t)end;
    record->by_frame_pointer = by_frame_pointer;
    for (uint16_t i = 0; i < count; i++)
        record->pcs[i] = 0x1000u - i;
    static const sp_window_thread thread = {.tid = 1};
    sp_aggregate_sample one = {
        .record = record, .thread = &thread, .result = SP_JOIN_NONE, .weight = 2, .counted = 2};
    return sp_aggregate_add(window, &window->cpu, &one, 100);
}

static void fold_marks_the_gap_of_a_deep_stack_and_counts_ends(void **state)
{
    (void)state;
    sp_window window = {0};
    assert_true(fold_stack(&window, 4, 4, SP_WALK_COMPLETE, 0));
    assert_true(fold_stack(&window, 4, 3, SP_WALK_COMPLETE, 0));
    assert_true(fold_stack(&window, 4, 3, SP_WALK_COMPLETE, 0));
    assert_true(fold_stack(&window, 4, 3, SP_WALK_NO_TABLE, 2));
    assert_true(fold_stack(&window, 3, 3, SP_WALK_TRUNCATED, 0));
    assert_int_equal(window.stacks.count, 4);
    const uint32_t *cut = sp_intern_key(&window.stacks, 1);
    static const uint32_t expected[] = {0, 1, 2, SP_WINDOW_GAP, 3, SP_WALK_COMPLETE};
    assert_int_equal(window.stacks.entries[1].length, sizeof expected);
    assert_memory_equal(cut, expected, sizeof expected);
    assert_int_equal(window.cpu.stacks_by_end[SP_WALK_COMPLETE], 2);
    assert_int_equal(window.cpu.stacks_by_end[SP_WALK_TRUNCATED], 6);
    assert_int_equal(window.cpu.stacks_by_end[SP_WALK_NO_TABLE], 2); /* the doubt weighs more */
    assert_int_equal(window.cpu.stacks_by_frame_pointer, 2);
    sp_window_clear(&window);
    assert_int_equal(window.cpu.stacks_by_end[SP_WALK_TRUNCATED], 0);
    sp_window_deinit(&window);
}

/* What lay in it may have been another library's already, that was loaded in its place. */
static void fold_cuts_a_stack_at_a_library_that_went(void **state)
{
    (void)state;
    sp_modules *modules = sp_modules_create();
    assert_non_null(modules);
    void *library = dlopen("libsqlite3.so.0", RTLD_NOW);
    if (!library) {
        printf("SKIP: libsqlite3.so.0 is not installed\n");
        skip();
    }
    assert_true(sp_modules_refresh(modules));
    uint64_t room[sizeof(sp_sample_record) / sizeof(uint64_t) + 3] = {0};
    sp_sample_record *record = (sp_sample_record *)(void *)room;
    record->periods = 1;
    record->count = record->leaf_count = 3;
    record->pcs[0] = record->pcs[2] = (uint64_t)(uintptr_t)fold_stack;
    record->pcs[1] = (uint64_t)(uintptr_t)dlsym(library, "sqlite3_open");
    static const sp_window_thread thread = {.tid = 1};
    uint32_t number = sp_modules_newest_number(modules);
    sp_aggregate_sample sample = {.record = record,
                                  .generation = sp_modules_generation(modules, number),
                                  .thread = &thread,
                                  .result = SP_JOIN_NONE,
                                  .weight = 1,
                                  .counted = 1};
    sp_window window = {0};
    assert_true(sp_aggregate_add(&window, &window.cpu, &sample, 100));
    dlclose(library);
    assert_true(sp_modules_refresh(modules));
    sample.changed = modules;
    assert_true(sp_aggregate_add(&window, &window.cpu, &sample, 100));
    static const uint32_t whole[] = {0, 1, 0, SP_WALK_COMPLETE}, cut[] = {0, SP_WALK_UNLOADED};
    assert_int_equal(window.stacks.count, 2);
    assert_memory_equal(sp_intern_key(&window.stacks, 0), whole, sizeof whole);
    assert_int_equal(window.stacks.entries[1].length, sizeof cut);
    assert_memory_equal(sp_intern_key(&window.stacks, 1), cut, sizeof cut);
    assert_int_equal(window.cpu.stacks_by_end[SP_WALK_UNLOADED], 1);
    sp_window_deinit(&window);
    sp_modules_destroy(modules);
}

/* Stack NUMBER: some addresses are the program's, and more than can be remembered lie in no module.
 */
static sp_sample_record *made_stack(uint32_t number, uint32_t generation)
{
    enum { DEPTH = 400 };
    static uint64_t room[sizeof(sp_sample_record) / sizeof(uint64_t) + DEPTH];
    sp_sample_record *record = (sp_sample_record *)(void *)room;
    record->generation = generation;
    record->count = (uint16_t)(number % 7 ? DEPTH : 3);
    record->leaf_count = (uint16_t)(number % 5 ? record->count : 2);
    record->end = (uint8_t)(number % 3);
    for (uint32_t i = 0; i < record->count; i++)
        record->pcs[i] =
            i % 3 ? 0x1000 + number * 11 + i : (uint64_t)(uintptr_t)made_stack + (number + i) % 64;
    return record;
}

static void fold_made_stack(sp_window *window, const sp_modules *modules, uint32_t number,
                            bool remembers)
{
    static const sp_window_thread thread = {.tid = 1};
    uint32_t generation = sp_modules_newest_number(modules);
    sp_aggregate_sample sample = {.record = made_stack(number, generation),
                                  .generation = sp_modules_generation(modules, generation),
                                  .changed = remembers ? NULL : modules,
                                  .thread = &thread,
                                  .result = SP_JOIN_NONE,
                                  .weight = 1};
    assert_true(sp_aggregate_add(window, &window->cpu, &sample, UINT32_MAX));
}

static void assert_same_keys(const sp_intern *a, const sp_intern *b)
{
    assert_int_equal(a->count, b->count);
    for (uint32_t n = 0; n < a->count; n++) {
        assert_int_equal(a->entries[n].length, b->entries[n].length);
        assert_memory_equal(a->entries[n].key, b->entries[n].key, a->entries[n].length);
    }
}

/* More stacks and addresses than the window remembers, and each stack several times. */
static void fold_remembered_stacks_are_those_that_a_search_finds(void **state)
{
    (void)state;
    enum { STACKS = 2500 };
    sp_modules *modules = sp_modules_create();
    assert_non_null(modules);
    sp_window remembers = {0}, searches = {0};
    for (int round = 0; round < 2; round++) {
        for (uint32_t i = 0; i < 2 * STACKS; i++) {
            fold_made_stack(&remembers, modules, i * 7919 % STACKS, true);
            fold_made_stack(&searches, modules, i * 7919 % STACKS, false);
        }
        assert_same_keys(&remembers.locations, &searches.locations);
        assert_same_keys(&remembers.stacks, &searches.stacks);
        assert_same_keys(&remembers.cpu.keys, &searches.cpu.keys);
        assert_true(sp_intern_bytes(&remembers.recorded.stacks) < 6 * 1024 * 1024);
        sp_window_clear(&remembers);
        sp_window_clear(&searches);
    }
    sp_window_deinit(&remembers);
    sp_window_deinit(&searches);
    sp_modules_destroy(modules);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(join_sample_of_the_last_interval_is_linked),
        cmocka_unit_test(join_without_a_context_has_the_default_one),
        cmocka_unit_test(join_default_takes_no_other_contexts_place),
        cmocka_unit_test(join_default_that_is_not_sampled_or_remote_links_nothing),
        cmocka_unit_test(join_sample_of_another_number_is_unknown_and_without_link),
        cmocka_unit_test(join_unsampled_remote_and_absent_spans_link_to_none),
        cmocka_unit_test(fold_equal_samples_become_one_with_the_sum_of_weights),
        cmocka_unit_test(fold_full_window_has_no_sample_too_many_and_loses_no_weight),
        cmocka_unit_test(fold_full_window_keeps_all_times),
        cmocka_unit_test(fold_keeps_a_bounded_number_of_times),
        cmocka_unit_test(fold_full_window_adds_to_the_sample_that_is_there),
        cmocka_unit_test(fold_full_window_keeps_stack_and_link_of_a_late_heavy_span),
        cmocka_unit_test(fold_full_window_drops_frames_before_links),
        cmocka_unit_test(fold_marks_the_gap_of_a_deep_stack_and_counts_ends),
        cmocka_unit_test(fold_cuts_a_stack_at_a_library_that_went),
        cmocka_unit_test(fold_remembered_stacks_are_those_that_a_search_finds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
