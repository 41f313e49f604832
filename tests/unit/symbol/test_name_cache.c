/* SPDX-License-Identifier: Apache-2.0 */
/* What the cache of names remembers, and what it forgets. A limit of 1 makes each aging begin a
 * generation. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "symbol/name_cache.h"

/* Two frames, "inner" and "outer", with NUMBER in their names. */
static void put(sp_name_cache *cache, uint64_t module, uint64_t address, int number)
{
    const char *const names[] = {"inner", "outer"};
    char text[64];
    sp_frame *frames = sp_name_cache_frames(cache, 2);
    assert_non_null(frames);
    for (int i = 0; i < 2; i++) {
        snprintf(text, sizeof text, "%s%d", names[i], number);
        frames[i] = (sp_frame){.name = sp_name_cache_string(cache, text),
                               .system_name = sp_name_cache_string(cache, ""),
                               .file = sp_name_cache_string(cache, "/src/a.c"),
                               .line = (uint32_t)number,
                               .unresolved = i == 0};
    }
    assert_true(sp_name_cache_put(cache, module, address, (sp_frame_list){frames, 2}));
}

static void assert_found(sp_name_cache *cache, uint64_t module, uint64_t address, int number)
{
    char text[64];
    sp_frame_list list = sp_name_cache_find(cache, module, address);
    assert_int_equal(list.count, 2);
    snprintf(text, sizeof text, "inner%d", number);
    assert_string_equal(list.frames[0].name, text);
    snprintf(text, sizeof text, "outer%d", number);
    assert_string_equal(list.frames[1].name, text);
    assert_string_equal(list.frames[1].system_name, "");
    assert_string_equal(list.frames[1].file, "/src/a.c");
    assert_int_equal(list.frames[1].line, number);
    assert_true(list.frames[0].unresolved && !list.frames[1].unresolved);
}

static void name_cache_key_is_module_and_address(void **state)
{
    (void)state;
    sp_name_cache cache = {0};
    assert_int_equal(sp_name_cache_find(&cache, 1, 10).count, 0);
    put(&cache, 1, 10, 1);
    put(&cache, 2, 10, 2);
    put(&cache, 1, 20, 3);
    assert_found(&cache, 1, 10, 1);
    assert_found(&cache, 2, 10, 2);
    assert_found(&cache, 1, 20, 3);
    assert_int_equal(sp_name_cache_find(&cache, 2, 20).count, 0);
    sp_name_cache_deinit(&cache);
}

static void name_cache_equal_strings_have_one_address(void **state)
{
    (void)state;
    sp_name_cache cache = {0};
    const char *first = sp_name_cache_string(&cache, "qsort");
    char copy[] = "qsort";
    assert_ptr_equal(sp_name_cache_string(&cache, copy), first);
    sp_name_cache_deinit(&cache);
}

static void name_cache_below_its_limit_forgets_nothing(void **state)
{
    (void)state;
    sp_name_cache cache = {0};
    put(&cache, 1, 10, 1);
    sp_frame_list list = sp_name_cache_find(&cache, 1, 10);
    for (int i = 0; i < 10; i++)
        assert_false(sp_name_cache_age(&cache, SP_NAME_CACHE_BYTES));
    assert_ptr_equal(sp_name_cache_find(&cache, 1, 10).frames, list.frames);
    sp_name_cache_deinit(&cache);
}

static void name_cache_forgets_what_is_not_asked_for(void **state)
{
    (void)state;
    sp_name_cache cache = {0};
    put(&cache, 1, 10, 1);
    put(&cache, 1, 20, 2);
    assert_false(sp_name_cache_age(&cache, 1)); /* nothing was old yet */
    assert_found(&cache, 1, 10, 1);
    assert_true(sp_name_cache_age(&cache, 1));
    assert_found(&cache, 1, 10, 1);
    assert_int_equal(sp_name_cache_find(&cache, 1, 20).count, 0);
    for (int i = 0; i < 10; i++) {
        sp_name_cache_age(&cache, 1);
        assert_found(&cache, 1, 10, 1);
    }
    sp_name_cache_deinit(&cache);
}

static void name_cache_bytes_fall_when_it_forgets(void **state)
{
    (void)state;
    sp_name_cache cache = {0};
    assert_int_equal(sp_name_cache_bytes(&cache), 0);
    for (int i = 0; i < 1000; i++)
        put(&cache, 1, (uint64_t)i, i);
    size_t full = sp_name_cache_bytes(&cache);
    assert_true(full > 1000 * 2 * sizeof(sp_frame));
    sp_name_cache_age(&cache, 1);
    assert_int_equal(sp_name_cache_bytes(&cache), full);
    put(&cache, 1, 0, 0);
    assert_true(sp_name_cache_age(&cache, 1));
    assert_true(sp_name_cache_bytes(&cache) < full / 4);
    sp_name_cache_deinit(&cache);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(name_cache_key_is_module_and_address),
        cmocka_unit_test(name_cache_equal_strings_have_one_address),
        cmocka_unit_test(name_cache_below_its_limit_forgets_nothing),
        cmocka_unit_test(name_cache_forgets_what_is_not_asked_for),
        cmocka_unit_test(name_cache_bytes_fall_when_it_forgets),
    };
    return cmocka_run_group_tests_name("name_cache", tests, NULL, NULL);
}
