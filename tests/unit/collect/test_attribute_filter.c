/* SPDX-License-Identifier: Apache-2.0 */
/* Which attributes samples are exported with, and how many sets of them a window has. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "collect/aggregate.h"
#include "collect/attribute_filter.h"

/* One entry: KEY's number, the length, the bytes. */
static uint32_t entry(uint8_t *out, const char *key, const char *value)
{
    out[0] = (uint8_t)sp_sample_key_put(key);
    out[1] = (uint8_t)strlen(value);
    memcpy(out + 2, value, out[1]);
    return 2u + out[1];
}

/* The values that LIST takes of tenant=a, route=bb, user=ccc. */
static const char *taken(const char *list)
{
    static char text[100];
    uint8_t data[64], out[64];
    char copy[100];
    snprintf(copy, sizeof copy, "%s", list ? list : "");
    sp_attribute_filter filter = {.list = list ? copy : NULL};
    uint32_t length = entry(data, "tenant", "a");
    length += entry(data + length, "route", "bb");
    length += entry(data + length, "user", "ccc");
    uint32_t used = sp_attribute_filter_copy(&filter, out, data, length);
    text[0] = 0;
    for (uint32_t at = 0; at < used; at += 2u + out[at + 1])
        sprintf(text + strlen(text), "%.*s ", out[at + 1], (const char *)out + at + 2);
    return text;
}

static void list_takes_the_keys_that_it_names(void **state)
{
    (void)state;
    assert_string_equal(taken(NULL), "");
    assert_string_equal(taken("none"), "");
    assert_string_equal(taken(" , "), "");
    assert_string_equal(taken("tenant"), "a ");
    assert_string_equal(taken(" user , tenant "), "a ccc ");
    assert_string_equal(taken("ten,tenants,TENANT"), "");
    assert_string_equal(taken("all"), "a bb ccc ");
    assert_true(sp_attribute_list_takes_some("tenant"));
    assert_false(sp_attribute_list_takes_some("none"));
}

static void key_that_comes_later_is_looked_at(void **state)
{
    (void)state;
    char list[] = "late";
    sp_attribute_filter filter = {.list = list};
    uint8_t data[16], out[16];
    uint32_t length = entry(data, "early", "x");
    assert_int_equal(sp_attribute_filter_copy(&filter, out, data, length), 0);
    length = entry(data, "late", "y");
    assert_int_equal(sp_attribute_filter_copy(&filter, out, data, length), length);
}

static void entry_that_is_cut_ends_the_data(void **state)
{
    (void)state;
    char list[] = "all";
    sp_attribute_filter filter = {.list = list};
    uint8_t data[32], out[32];
    uint32_t first = entry(data, "tenant", "a"), both = first + entry(data + first, "route", "bb");
    for (uint32_t length = first; length < both; length++)
        assert_int_equal(sp_attribute_filter_copy(&filter, out, data, length), first);
}

static void window_has_a_bound_of_sets_and_counts_what_is_beyond(void **state)
{
    (void)state;
    sp_window window = {0};
    sp_sample_record record = {.end = SP_WALK_COMPLETE};
    sp_window_thread thread = {.tid = 1};
    for (uint32_t i = 0; i < SP_WINDOW_SETS_MAX + 5; i++) {
        char value[16];
        uint8_t data[32];
        snprintf(value, sizeof value, "%u", i);
        sp_aggregate_sample sample = {.record = &record,
                                      .thread = &thread,
                                      .result = SP_JOIN_NONE,
                                      .attributes = data,
                                      .attribute_bytes = entry(data, "tenant", value),
                                      .weight = 3,
                                      .count = 1,
                                      .counted = 3};
        assert_true(sp_aggregate_add(&window, &window.cpu, &sample, UINT32_MAX));
        assert_true(sp_aggregate_add(&window, &window.cpu, &sample, UINT32_MAX));
    }
    assert_int_equal(window.attribute_sets.count, SP_WINDOW_SETS_MAX);
    assert_int_equal(window.cpu.keys.count, SP_WINDOW_SETS_MAX + 1); /* and one without */
    assert_int_equal(window.dropped_attributes, 2 * 3 * 5);
    assert_int_equal(window.cpu.none, 2 * 3 * (SP_WINDOW_SETS_MAX + 5)); /* no sample is lost */
    sp_window_clear(&window);
    assert_int_equal(window.attribute_sets.count + window.dropped_attributes, 0);
    sp_window_deinit(&window);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(list_takes_the_keys_that_it_names),
        cmocka_unit_test(key_that_comes_later_is_looked_at),
        cmocka_unit_test(entry_that_is_cut_ends_the_data),
        cmocka_unit_test(window_has_a_bound_of_sets_and_counts_what_is_beyond),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
