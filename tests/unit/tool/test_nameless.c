/* SPDX-License-Identifier: Apache-2.0 */
/* Which samples have no function name, and in which module most of them are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tool/model/nameless.h"

static const sp_model_type cpu = {.name = "cpu", .unit = "nanoseconds", .period_unit = ""};
static const sp_model_type wall = {.name = "wall", .unit = "nanoseconds", .period_unit = ""};

static sp_model model;

/* COUNT samples of TYPE in LEAF, which "main" called. NULL: samples without a stack. */
static void add(const sp_model_type *type, const char *leaf, uint64_t count)
{
    uint32_t number = 0;
    sp_model_sample sample = {.count = count, .value = 1};
    uint32_t frames[2] = {sp_model_string(&model, leaf ? leaf : ""),
                          sp_model_string(&model, "main")};
    assert_true(sp_model_find_type(&model, type, &sample.type));
    sample.stack = sp_intern_put(&model.stacks, frames, leaf ? sizeof frames : 0, NULL);
    assert_int_not_equal(sample.stack, SP_INTERN_FAILED);
    assert_true(sp_model_add_sample(&model, &sample, &number));
}

static sp_nameless find(void)
{
    sp_nameless found;
    uint32_t type = sp_model_type_of_name(&model, "cpu");
    assert_true(sp_model_find_nameless(&found, &model, type));
    return found;
}

static void nameless_counts_samples_of_addresses(void **state)
{
    (void)state;
    add(&cpu, "shop+0x113e", 30);
    add(&cpu, "shop+0x114e", 20);
    add(&cpu, "libz.so.1+0x2f", 40);
    add(&cpu, "render", 10);
    sp_nameless found = find();
    assert_int_equal(found.all, 100);
    assert_int_equal(found.nameless, 90);
    assert_string_equal(found.module, "shop");
}

static void nameless_leaves_out_what_no_symbols_would_name(void **state)
{
    (void)state;
    const char *const names[] = {"[unknown]+0x7f00", "[kernel]+0x10", "operator+", "a+0x", "+0x12",
                                 "add(int)+0x1g",    "f+0x12 [a.c]",  "",          NULL};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        add(&cpu, names[i], 1);
    sp_nameless found = find();
    assert_int_equal(found.all, 9);
    assert_int_equal(found.nameless, 0);
    assert_string_equal(found.module, "");
}

static void nameless_counts_one_type(void **state)
{
    (void)state;
    add(&cpu, "render", 1);
    add(&wall, "shop+0x113e", 100);
    sp_nameless found = find();
    assert_int_equal(found.all, 1);
    assert_int_equal(found.nameless, 0);
}

static void nameless_cuts_a_long_module(void **state)
{
    (void)state;
    char name[400];
    memset(name, 'm', sizeof name);
    strcpy(name + 300, "+0x1");
    add(&cpu, name, 1);
    assert_int_equal(strlen(find().module), SP_NAMELESS_MODULE - 1);
}

static int set_up(void **state)
{
    (void)state;
    model = (sp_model){0};
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    sp_model_deinit(&model);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(nameless_counts_samples_of_addresses, set_up, tear_down),
        cmocka_unit_test_setup_teardown(nameless_leaves_out_what_no_symbols_would_name, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(nameless_counts_one_type, set_up, tear_down),
        cmocka_unit_test_setup_teardown(nameless_cuts_a_long_module, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
