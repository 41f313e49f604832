/* SPDX-License-Identifier: Apache-2.0 */
/* The table of live blocks: by one thread, and by many that allocate and free each other's blocks.
 * Blocks are numbers here. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "alloc/live_table.h"
#include "call/call_sampling.h"
#include "core/atomic.h"

static _Atomic uint8_t filter[SP_FILTER_SIZE];
static sp_live_table table;

/* Each test has a table of its own; none is ever freed. */
static int set_up(void **state)
{
    (void)state;
    memset((void *)filter, 0, sizeof filter);
    memset(&table, 0, sizeof table);
    return sp_live_init(&table, 1000, filter) ? 0 : -1;
}

static const void *block(uint64_t number)
{
    return (const void *)(uintptr_t)(0x10000000 + 16 * number); // NOLINT(performance-no-int-to-ptr)
}

static bool filter_says(const void *pointer)
{
    return sp_load_relaxed(&filter[sp_filter_index(pointer)]) != 0;
}

static bool filter_is_empty(void)
{
    for (int i = 0; i < SP_FILTER_SIZE; i++)
        if (filter[i])
            return false;
    return true;
}

static void table_finds_what_was_put_until_it_is_removed(void **state)
{
    (void)state;
    sp_live_entry first, second;
    assert_true(sp_live_put(&table, block(1), &first));
    assert_true(sp_live_put(&table, block(2), &second));
    assert_true(first.id != second.id && first.id && second.id);
    assert_true(filter_says(block(1)) && filter_says(block(2)));
    assert_true(sp_live_has(&table, first) && sp_live_has(&table, second));
    assert_true(sp_live_remove(&table, block(1)));
    assert_false(sp_live_has(&table, first));
    assert_true(sp_live_has(&table, second));
    assert_false(sp_live_remove(&table, block(1)));
    assert_false(sp_live_remove(&table, block(3)));
    assert_true(sp_live_remove(&table, block(2)));
    assert_true(filter_is_empty());
}

static void address_that_is_used_again_is_another_entry(void **state)
{
    (void)state;
    sp_live_entry before, now;
    assert_true(sp_live_put(&table, block(7), &before));
    assert_true(sp_live_remove(&table, block(7)));
    assert_true(sp_live_put(&table, block(7), &now));
    assert_false(sp_live_has(&table, before));
    assert_true(sp_live_has(&table, now));
    assert_true(sp_live_remove(&table, block(7)));
}

static void held_block_lives_and_is_not_found(void **state)
{
    (void)state;
    sp_live_entry entry, other;
    assert_true(sp_live_put(&table, block(5), &entry));
    uint32_t held = sp_live_hold(&table, block(5));
    assert_true(held != 0);
    assert_true(sp_live_has(&table, entry));
    assert_false(sp_live_remove(&table, block(5)));
    /* the address is another's meanwhile, as when a realloc moves the block */
    assert_true(sp_live_put(&table, block(5), &other));
    sp_live_settle(&table, held, true);
    assert_false(sp_live_has(&table, entry));
    assert_true(sp_live_has(&table, other));
    assert_true(sp_live_remove(&table, block(5)));
    assert_true(filter_is_empty());
}

static void held_block_is_as_it_was_when_nothing_came_of_it(void **state)
{
    (void)state;
    sp_live_entry entry;
    assert_true(sp_live_put(&table, block(5), &entry));
    sp_live_settle(&table, sp_live_hold(&table, block(5)), false);
    assert_true(sp_live_has(&table, entry));
    assert_true(sp_live_remove(&table, block(5)));
    assert_int_equal(sp_live_hold(&table, block(5)), 0);
    assert_true(filter_is_empty());
}

/* NULL has the filter's index 0, and the key of a free place. */
static void freed_null_leaves_a_block_of_its_index_alone(void **state)
{
    (void)state;
    sp_live_entry entry;
    const void *of_index_0 = (const void *)(uintptr_t)0x12301230; // NOLINT
    assert_int_equal(sp_filter_index(of_index_0), 0);
    assert_true(sp_live_put(&table, of_index_0, &entry));
    assert_false(sp_live_remove(&table, NULL));
    assert_int_equal(sp_live_hold(&table, NULL), 0);
    assert_true(filter_says(of_index_0));
    assert_true(sp_live_remove(&table, of_index_0));
    assert_true(filter_is_empty());
}

static void full_table_refuses_and_counts(void **state)
{
    (void)state;
    sp_live_entry entry;
    uint64_t put = 0, refused = 0, number = 0;
    for (; refused < 1000; number++)
        *(sp_live_put(&table, block(number), &entry) ? &put : &refused) += 1;
    assert_in_range(put, 1000, 2048);
    assert_int_equal(sp_load_relaxed(&table.full), refused);
    for (uint64_t n = 0; n < number; n++)
        put -= sp_live_remove(&table, block(n));
    assert_int_equal(put, 0);
    assert_true(filter_is_empty());
}

/* A thousand blocks find their places in a table for a thousand. */
static void table_has_room_for_what_it_was_made_for(void **state)
{
    (void)state;
    sp_live_entry entry;
    uint64_t random = 1;
    for (int n = 0; n < 1000; n++) {
        uint64_t address = sp_random_next(&random) >> 17 & ~UINT64_C(15);
        assert_true(sp_live_put(&table, (void *)(uintptr_t)address, &entry)); // NOLINT
    }
    assert_int_equal(sp_load_relaxed(&table.full), 0);
}

static void clear_removes_all(void **state)
{
    (void)state;
    sp_live_entry entries[100];
    for (uint64_t n = 0; n < 100; n++)
        assert_true(sp_live_put(&table, block(n), &entries[n]));
    sp_live_clear(&table);
    for (int n = 0; n < 100; n++)
        assert_false(sp_live_has(&table, entries[n]));
    assert_true(filter_is_empty());
}

static void filter_count_that_is_at_its_end_stays(void **state)
{
    (void)state;
    sp_live_entry entry;
    filter[sp_filter_index(block(1))] = UINT8_MAX;
    assert_true(sp_live_put(&table, block(1), &entry));
    assert_true(sp_live_remove(&table, block(1)));
    assert_true(filter_says(block(1)));
}

/* ---- many threads ---- */

enum { THREADS = 8, ROUNDS = 20000, SHELVES = 64 };

/* An allocator of blocks: shelf n has block n, taken by an exchange; a thread that puts it in the
 * table may hand it to another, which removes it, and only then gives it back. */
static _Atomic uint32_t shelf[SHELVES], handed[SHELVES];

static void *allocate_and_free(void *argument)
{
    uint64_t random = 1 + (uint64_t)(uintptr_t)argument, wrong = 0;
    for (int round = 0; round < ROUNDS; round++) {
        uint32_t n = (uint32_t)(sp_random_next(&random) % SHELVES);
        sp_live_entry entry;
        if (atomic_exchange(&shelf[n], 0) == 1) {
            wrong += !sp_live_put(&table, block(n), &entry);
            wrong += !sp_live_has(&table, entry);
            atomic_store(&handed[n], 1);
        } else if (atomic_exchange(&handed[n], 0) == 1) {
            uint32_t held = sp_live_hold(&table, block(n));
            wrong += held == 0;
            if (held && round % 4)
                sp_live_settle(&table, held, true);
            else if (held) { /* as a realloc that failed */
                sp_live_settle(&table, held, false);
                wrong += !sp_live_remove(&table, block(n));
            }
            atomic_store(&shelf[n], 1);
        }
    }
    return (void *)(uintptr_t)wrong; // NOLINT(performance-no-int-to-ptr)
}

static void threads_that_free_each_others_blocks_lose_none(void **state)
{
    (void)state;
    pthread_t threads[THREADS];
    for (int n = 0; n < SHELVES; n++)
        atomic_store(&shelf[n], 1);
    for (uintptr_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, allocate_and_free, (void *)i),
                         0); // NOLINT
    for (int i = 0; i < THREADS; i++) {
        void *wrong;
        pthread_join(threads[i], &wrong);
        assert_null(wrong);
    }
    for (uint64_t n = 0; n < SHELVES; n++)
        assert_int_equal(sp_live_remove(&table, block(n)), handed[n]);
    assert_true(filter_is_empty());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(table_finds_what_was_put_until_it_is_removed, set_up),
        cmocka_unit_test_setup(address_that_is_used_again_is_another_entry, set_up),
        cmocka_unit_test_setup(held_block_lives_and_is_not_found, set_up),
        cmocka_unit_test_setup(held_block_is_as_it_was_when_nothing_came_of_it, set_up),
        cmocka_unit_test_setup(freed_null_leaves_a_block_of_its_index_alone, set_up),
        cmocka_unit_test_setup(full_table_refuses_and_counts, set_up),
        cmocka_unit_test_setup(table_has_room_for_what_it_was_made_for, set_up),
        cmocka_unit_test_setup(clear_removes_all, set_up),
        cmocka_unit_test_setup(filter_count_that_is_at_its_end_stays, set_up),
        cmocka_unit_test_setup(threads_that_free_each_others_blocks_lose_none, set_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
