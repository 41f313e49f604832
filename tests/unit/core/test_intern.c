/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "core/intern.h"

static void intern_numbers_count_from_zero_in_order(void **state)
{
    (void)state;
    sp_intern table = {0};
    bool is_new = false;
    assert_int_equal(sp_intern_put(&table, "a", 1, &is_new), 0);
    assert_true(is_new);
    assert_int_equal(sp_intern_put_string(&table, "b"), 1);
    assert_int_equal(sp_intern_put(&table, "a", 1, &is_new), 0);
    assert_false(is_new);
    assert_int_equal(table.count, 2);
    assert_string_equal(sp_intern_key(&table, 1), "b");
    sp_intern_deinit(&table);
}

static void intern_empty_key_is_a_key(void **state)
{
    (void)state;
    sp_intern table = {0};
    assert_int_equal(sp_intern_put_string(&table, ""), 0);
    assert_int_equal(sp_intern_put_string(&table, ""), 0);
    assert_int_equal(sp_intern_put(&table, NULL, 0, NULL), 0);
    assert_int_equal(sp_intern_find(&table, "", 0), 0);
    sp_intern_deinit(&table);
}

static void intern_keys_are_bytes_not_text(void **state)
{
    (void)state;
    sp_intern table = {0};
    assert_int_equal(sp_intern_put(&table, "a\0b", 3, NULL), 0);
    assert_int_equal(sp_intern_put(&table, "a\0c", 3, NULL), 1);
    assert_int_equal(sp_intern_put(&table, "a", 1, NULL), 2);
    assert_int_equal(sp_intern_put(&table, "a\0", 2, NULL), 3);
    assert_int_equal(table.entries[0].length, 3);
    sp_intern_deinit(&table);
}

/* One hash for all: the keys alone tell them apart. */
static void intern_keys_with_one_hash_are_told_apart(void **state)
{
    (void)state;
    unsigned char key[72];
    for (size_t length = 1; length <= sizeof key; length++) {
        for (size_t at = 0; at < length; at++) {
            sp_intern table = {0};
            memset(key, 7, sizeof key);
            assert_int_equal(sp_intern_put(&table, key, length, NULL), 0);
            key[at] ^= 0x80;
            uint64_t hash = sp_hash_bytes(key, length);
            /* the first key's entry and slot moved to where the second one is looked for */
            sp_intern_slot *slot = &table.slots[hash & (table.slot_count - 1)];
            memset(table.slots, 0, table.slot_count * sizeof *table.slots);
            *slot = (sp_intern_slot){(uint32_t)(hash >> 32), 1};
            table.entries[0].hash = hash;
            assert_int_equal(sp_intern_find(&table, key, length), SP_INTERN_FAILED);
            assert_int_equal(sp_intern_put(&table, key, length, NULL), 1);
            sp_intern_deinit(&table);
        }
    }
}

static void intern_find_does_not_add(void **state)
{
    (void)state;
    sp_intern table = {0};
    assert_int_equal(sp_intern_find(&table, "x", 1), SP_INTERN_FAILED);
    sp_intern_put_string(&table, "y");
    assert_int_equal(sp_intern_find(&table, "x", 1), SP_INTERN_FAILED);
    assert_int_equal(table.count, 1);
    sp_intern_deinit(&table);
}

static void intern_many_keys_stay_distinct_and_found(void **state)
{
    (void)state;
    sp_intern table = {0};
    char key[32];
    for (uint32_t i = 0; i < 50000; i++) {
        int length = snprintf(key, sizeof key, "key %u", i);
        assert_int_equal(sp_intern_put(&table, key, (size_t)length, NULL), i);
    }
    for (uint32_t i = 0; i < 50000; i++) {
        int length = snprintf(key, sizeof key, "key %u", i);
        assert_int_equal(sp_intern_find(&table, key, (size_t)length), i);
        assert_memory_equal(sp_intern_key(&table, i), key, length);
        assert_int_equal((uintptr_t)sp_intern_key(&table, i) % 16, 0);
    }
    assert_true((uint64_t)table.count * 4 <= (uint64_t)table.slot_count * 3);
    sp_intern_deinit(&table);
}

static void intern_clear_starts_again_at_zero(void **state)
{
    (void)state;
    sp_intern table = {0};
    sp_intern_clear(&table);
    for (uint32_t i = 0; i < 1000; i++)
        sp_intern_put(&table, &i, sizeof i, NULL);
    sp_intern_clear(&table);
    assert_int_equal(sp_intern_find(&table, &(uint32_t){7}, 4), SP_INTERN_FAILED);
    assert_int_equal(sp_intern_put_string(&table, "first"), 0);
    sp_intern_deinit(&table);
}

/* All bytes count, also those of an odd tail; a weak hash would make the tables of a profile slow.
 */
static void hash_single_bit_flips_change_it(void **state)
{
    (void)state;
    unsigned char bytes[29] = {0};
    for (size_t length = 1; length <= sizeof bytes; length++) {
        uint64_t zero = sp_hash_bytes(bytes, length);
        assert_int_not_equal(zero, sp_hash_bytes(bytes, length - 1));
        for (size_t bit = 0; bit < length * 8; bit++) {
            bytes[bit / 8] = (unsigned char)(1u << bit % 8);
            assert_int_not_equal(zero, sp_hash_bytes(bytes, length));
            bytes[bit / 8] = 0;
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(intern_numbers_count_from_zero_in_order),
        cmocka_unit_test(intern_empty_key_is_a_key),
        cmocka_unit_test(intern_keys_are_bytes_not_text),
        cmocka_unit_test(intern_keys_with_one_hash_are_told_apart),
        cmocka_unit_test(intern_find_does_not_add),
        cmocka_unit_test(intern_many_keys_stay_distinct_and_found),
        cmocka_unit_test(intern_clear_starts_again_at_zero),
        cmocka_unit_test(hash_single_bit_flips_change_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
