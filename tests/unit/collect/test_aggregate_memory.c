/* SPDX-License-Identifier: Apache-2.0 */
/* The aggregation and the builder when memory is short: each allocation of a window fails in turn.
 * A sample that finds no memory is not counted, the others keep their stacks and weights; a profile
 * that finds none is not made; and the next window works. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "profile/builder.h"
#include "collect/aggregate.h"
#include "failing_memory.h"

static uint64_t allocations, failing; /* failing 0: none */

static bool allocation_fails(void)
{
    return ++allocations == failing;
}

enum { SAMPLES = 600, STACKS = 90, DEPTH = 12, SPANS = 70, MAX_SAMPLES = 400 };

static sp_modules *modules;
static sp_symbolizer *symbolizer;

static const sp_sample_record *record_of(uint32_t stack)
{
    static uint64_t room[sizeof(sp_sample_record) / sizeof(uint64_t) + DEPTH];
    sp_sample_record *record = (sp_sample_record *)(void *)room;
    record->generation = sp_modules_newest_number(modules);
    record->count = record->leaf_count = DEPTH;
    record->end = SP_WALK_COMPLETE;
    for (uint32_t i = 0; i < DEPTH; i++)
        record->pcs[i] = 0x1000 + stack * i;
    return record;
}

static bool fold_one(sp_window *window, uint32_t number)
{
    static const sp_window_thread thread = {.tid = 1, .name = "worker"};
    uint32_t generation = sp_modules_newest_number(modules);
    sp_aggregate_sample sample = {.record = record_of(number * 7 % STACKS),
                                  .generation = sp_modules_generation(modules, generation),
                                  .thread = &thread,
                                  .result = SP_JOIN_LINKED,
                                  .weight = 1,
                                  .count = 1,
                                  .counted = 1,
                                  .time_ns = window->start_time_ns + number};
    memset(sample.link.trace_id, 1, sizeof sample.link.trace_id);
    memset(sample.link.span_id, (int)(1 + number % SPANS), sizeof sample.link.span_id);
    return sp_aggregate_add(window, &window->cpu, &sample, MAX_SAMPLES);
}

/* Returns how many samples were taken. */
static uint32_t fold_all(sp_window *window)
{
    uint32_t taken = 0;
    window->start_time_ns = 1700000000000000000;
    window->end_time_ns = window->start_time_ns + 1000000;
    window->period_ns = 10000000;
    for (uint32_t i = 0; i < SAMPLES; i++)
        taken += fold_one(window, i);
    return taken;
}

static uint64_t weight_of(const sp_window *window)
{
    uint64_t sum = 0;
    for (uint32_t n = 0; n < window->cpu.keys.count; n++)
        sum += window->cpu.values[n].weight;
    return sum;
}

static bool build(sp_profile_data *data, const sp_window *window)
{
    const sp_build_options options = {.link_scope = SPANPROF_LINK_SCOPE_ROOT,
                                      .thread_attributes = true};
    return sp_profile_build(data, window, symbolizer, &options);
}

static int64_t value_of(const sp_profile_data *data)
{
    int64_t sum = 0;
    for (uint32_t i = 0; i < data->profiles[0].sample_count; i++)
        sum += data->profiles[0].samples[i].value;
    return sum;
}

static void fold_without_memory_counts_only_what_it_took(void **state)
{
    (void)state;
    bool is_over = false;
    for (uint64_t n = 1; !is_over; n++) {
        sp_window window = {0};
        allocations = 0;
        failing = n;
        uint32_t taken = fold_all(&window);
        is_over = allocations < n;
        failing = 0;
        assert_in_range(taken, SAMPLES - 1, SAMPLES);
        assert_int_equal(weight_of(&window), taken);
        assert_int_equal(window.cpu.linked + window.cpu.unknown, taken);
        sp_window_clear(&window);
        assert_int_equal(fold_all(&window), SAMPLES);
        assert_int_equal(weight_of(&window), SAMPLES);
        sp_window_deinit(&window);
    }
}

static void builder_without_memory_makes_nothing_and_then_works(void **state)
{
    (void)state;
    sp_window window = {0};
    sp_profile_data data;
    bool is_over = false;
    assert_int_equal(fold_all(&window), SAMPLES);
    assert_true(build(&data, &window)); /* names are cached from now on */
    sp_profile_data_deinit(&data);
    for (uint64_t n = 1; !is_over; n++) {
        allocations = 0;
        failing = n;
        bool built = build(&data, &window);
        is_over = allocations < n;
        failing = 0;
        assert_int_equal(built, is_over);
        sp_profile_data_deinit(&data);
        assert_true(build(&data, &window));
        assert_int_equal(value_of(&data), SAMPLES);
        sp_profile_data_deinit(&data);
    }
    sp_window_deinit(&window);
}

static int set_up(void **state)
{
    (void)state;
    modules = sp_modules_create();
    symbolizer = sp_symbolizer_create();
    return modules && symbolizer ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    sp_symbolizer_destroy(symbolizer);
    sp_modules_destroy(modules);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(fold_without_memory_counts_only_what_it_took, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(builder_without_memory_makes_nothing_and_then_works, set_up,
                                        tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
