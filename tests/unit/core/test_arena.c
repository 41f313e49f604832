/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "core/arena.h"

static void arena_alloc_gives_zeroed_aligned_memory(void **state)
{
    (void)state;
    sp_arena arena = {0};
    for (size_t bytes = 1; bytes < 100; bytes++) {
        unsigned char *memory = sp_arena_alloc(&arena, bytes);
        assert_non_null(memory);
        assert_int_equal((uintptr_t)memory % 16, 0);
        for (size_t i = 0; i < bytes; i++)
            assert_int_equal(memory[i], 0);
        memset(memory, 0xaa, bytes);
    }
    sp_arena_deinit(&arena);
}

static void arena_reset_zeroes_what_it_hands_out_again(void **state)
{
    (void)state;
    sp_arena arena = {0};
    memset(sp_arena_alloc(&arena, 64), 0xaa, 64);
    sp_arena_reset(&arena);
    assert_int_equal(arena.used_bytes, 0);
    static const unsigned char zero[64];
    assert_memory_equal(sp_arena_alloc(&arena, 64), zero, 64);
    sp_arena_deinit(&arena);
}

static void arena_keeps_all_blocks_until_reset(void **state)
{
    (void)state;
    sp_arena arena = {0};
    enum { COUNT = 3000, BYTES = 160 };
    unsigned char *memory[COUNT];
    for (int i = 0; i < COUNT; i++) {
        memory[i] = sp_arena_alloc(&arena, BYTES);
        assert_non_null(memory[i]);
        memset(memory[i], i & 0xff, BYTES);
    }
    assert_int_equal(arena.used_bytes, COUNT * BYTES);
    for (int i = 0; i < COUNT; i++)
        assert_true(memory[i][0] == (i & 0xff) && memory[i][BYTES - 1] == (i & 0xff));
    sp_arena_deinit(&arena);
    assert_null(arena.blocks);
}

static void arena_larger_than_a_block_fits(void **state)
{
    (void)state;
    sp_arena arena = {0};
    char *large = sp_arena_alloc(&arena, 3 << 20);
    assert_non_null(large);
    large[(3 << 20) - 1] = 1;
    sp_arena_deinit(&arena);
}

static void arena_impossible_size_fails_and_says_so_until_reset(void **state)
{
    (void)state;
    sp_arena arena = {0};
    assert_null(sp_arena_alloc(&arena, SIZE_MAX));
    assert_true(arena.failed);
    assert_non_null(sp_arena_alloc(&arena, 1));
    assert_true(arena.failed);
    sp_arena_reset(&arena);
    assert_false(arena.failed);
    assert_null(sp_arena_array(&arena, SIZE_MAX / 2, 3));
    assert_true(arena.failed);
    sp_arena_deinit(&arena);
}

static void arena_text_is_copied(void **state)
{
    (void)state;
    sp_arena arena = {0};
    char text[] = "stack";
    char *whole = sp_arena_strdup(&arena, text);
    char *part = sp_arena_strndup(&arena, text, 2);
    char *none = sp_arena_strndup(&arena, NULL, 0);
    char *printed = sp_arena_printf(&arena, "%s-%d", text, 42);
    void *bytes = sp_arena_memdup(&arena, text, sizeof text);
    memset(text, 'x', 5);
    assert_string_equal(whole, "stack");
    assert_string_equal(part, "st");
    assert_string_equal(none, "");
    assert_string_equal(printed, "stack-42");
    assert_memory_equal(bytes, "stack", 6);
    sp_arena_deinit(&arena);
}

static void arena_join_takes_all_and_keeps_on(void **state)
{
    (void)state;
    sp_arena to = {0}, from = {0};
    char *own = sp_arena_strdup(&to, "own");
    char *taken = sp_arena_strdup(&from, "taken");
    char *large = sp_arena_alloc(&from, 40 << 20);
    large[(40 << 20) - 1] = 'x';
    size_t bytes = to.used_bytes + from.used_bytes;
    sp_arena_join(&to, &from);
    assert_int_equal(to.used_bytes, bytes);
    assert_null(from.blocks);
    assert_int_equal(from.used_bytes, 0);
    assert_ptr_equal(sp_arena_strdup(&to, "next"), own + 16); /* in the block that it had */
    assert_string_equal(taken, "taken");
    assert_int_equal(large[(40 << 20) - 1], 'x');
    sp_arena_join(&from, &to);
    assert_string_equal(own, "own");
    sp_arena_deinit(&to);
    sp_arena_deinit(&from);
}

static void arena_goes_back_to_a_mark(void **state)
{
    (void)state;
    sp_arena arena = {0};
    sp_arena_mark empty = sp_arena_get_mark(&arena);
    sp_arena_strdup(&arena, "first");
    sp_arena_go_back(&arena, empty);
    assert_null(arena.blocks);
    char *kept = sp_arena_strdup(&arena, "kept");
    size_t used = arena.used_bytes;
    sp_arena_mark mark = sp_arena_get_mark(&arena);
    char *next = sp_arena_strdup(&arena, "next");
    assert_non_null(sp_arena_alloc(&arena, 40 << 20)); /* a block of its own */
    sp_arena_go_back(&arena, mark);
    assert_int_equal(arena.used_bytes, used);
    assert_string_equal(kept, "kept");
    assert_ptr_equal(sp_arena_strdup(&arena, "again"), next);
    sp_arena_deinit(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arena_alloc_gives_zeroed_aligned_memory),
        cmocka_unit_test(arena_reset_zeroes_what_it_hands_out_again),
        cmocka_unit_test(arena_keeps_all_blocks_until_reset),
        cmocka_unit_test(arena_larger_than_a_block_fits),
        cmocka_unit_test(arena_impossible_size_fails_and_says_so_until_reset),
        cmocka_unit_test(arena_text_is_copied),
        cmocka_unit_test(arena_join_takes_all_and_keeps_on),
        cmocka_unit_test(arena_goes_back_to_a_mark),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
