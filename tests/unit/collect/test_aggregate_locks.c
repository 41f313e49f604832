/* SPDX-License-Identifier: Apache-2.0 */
/* Waits for more locks than a window tells apart: the tables stay bounded, the sums stay right, and
 * what goes is the lock's name, before anything of the stacks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "collect/aggregate.h"

enum { LOCKS = 100000, DEPTH = 12, MAX_SAMPLES = 1000 };

static sp_window window;
static sp_modules *modules;

static const sp_sample_record *record_here(void)
{
    static uint64_t room[sizeof(sp_sample_record) / sizeof(uint64_t) + DEPTH];
    sp_sample_record *record = (sp_sample_record *)(void *)room;
    record->generation = sp_modules_newest_number(modules);
    record->count = record->leaf_count = DEPTH;
    record->end = SP_WALK_COMPLETE;
    for (uint64_t i = 0; i < DEPTH; i++)
        record->pcs[i] = 0x1000 + i;
    return record;
}

/* A wait for the lock at ADDRESS; 0: which one is not told. */
static bool add_wait(uint64_t address, uint32_t max_samples)
{
    static const sp_window_thread thread = {.tid = 1, .name = "worker"};
    const sp_aggregate_holder holder = {.lock = address};
    const sp_sample_record *record = record_here();
    const sp_aggregate_sample sample = {.record = record,
                                        .generation =
                                            sp_modules_generation(modules, record->generation),
                                        .thread = &thread,
                                        .holder = &holder,
                                        .weight = 1000,
                                        .count = 2,
                                        .counted = 2};
    return sp_aggregate_add(&window, &window.calls[SP_CALL_LOCK], &sample, max_samples);
}

static uint64_t count_of(bool with_lock)
{
    const sp_window_samples *waits = &window.calls[SP_CALL_LOCK];
    uint64_t sum = 0;
    for (uint32_t n = 0; n < waits->keys.count; n++) {
        const sp_window_key *key = sp_intern_key(&waits->keys, n);
        if ((sp_window_lock_of(&window, key->wait) != 0) == with_lock)
            sum += waits->values[n].count;
    }
    return sum;
}

static int set_up(void **state)
{
    (void)state;
    modules = sp_modules_create();
    return modules ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    sp_window_deinit(&window);
    sp_modules_destroy(modules);
    return 0;
}

static void each_lock_is_a_sample_of_its_own(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++)
        assert_true(add_wait(0x500000 + 64 * (uint64_t)(i % 2), MAX_SAMPLES));
    assert_int_equal(window.calls[SP_CALL_LOCK].keys.count, 2);
    assert_int_equal(count_of(true), 8);
    assert_int_equal(window.dropped_locks, 0);
}

static void what_has_no_lock_is_one_sample(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++)
        assert_true(add_wait(0, MAX_SAMPLES));
    assert_int_equal(window.calls[SP_CALL_LOCK].keys.count, 1);
    assert_int_equal(count_of(false), 8);
}

static void assert_all_is_there(void)
{
    const sp_window_samples *waits = &window.calls[SP_CALL_LOCK];
    assert_int_equal(count_of(true) + count_of(false), 2 * LOCKS);
    assert_int_equal(window.dropped_locks, count_of(false));
    assert_int_equal(waits->folded, 0);
    assert_int_equal(waits->stacks_by_end[SP_WALK_COMPLETE], 2 * LOCKS);
}

/* A program that locks each of its 100,000 objects. */
static void locks_beyond_the_bound_are_not_told_and_counted(void **state)
{
    (void)state;
    for (uint64_t i = 0; i < LOCKS; i++)
        assert_true(add_wait(0x500000 + 64 * i, 2 * SP_WINDOW_LOCKS_MAX));
    assert_int_equal(window.locks.count, SP_WINDOW_LOCKS_MAX);
    assert_int_equal(window.calls[SP_CALL_LOCK].keys.count, SP_WINDOW_LOCKS_MAX + 1);
    assert_int_equal(count_of(true), 2 * SP_WINDOW_LOCKS_MAX);
    assert_all_is_there();
}

static void full_window_loses_locks_before_frames(void **state)
{
    (void)state;
    for (uint64_t i = 0; i < LOCKS; i++)
        assert_true(add_wait(0x500000 + 64 * i, MAX_SAMPLES));
    assert_in_range(window.calls[SP_CALL_LOCK].keys.count, MAX_SAMPLES / 2, MAX_SAMPLES);
    assert_all_is_there();
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        CASE(each_lock_is_a_sample_of_its_own),
        CASE(what_has_no_lock_is_one_sample),
        CASE(locks_beyond_the_bound_are_not_told_and_counted),
        CASE(full_window_loses_locks_before_frames),
    };
    return cmocka_run_group_tests_name("aggregate_locks", tests, NULL, NULL);
}
