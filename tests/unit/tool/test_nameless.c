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

/* COUNT samples of TYPE with the stack NAMES, which ends with NULL. The leaf is first. */
static void add_stack(const sp_model_type *type, const char *const *names, uint64_t count)
{
    uint32_t number = 0, frames[8], length = 0;
    sp_model_sample sample = {.count = count, .value = 1};
    for (; names[length]; length++)
        frames[length] = sp_model_string(&model, names[length]);
    assert_true(sp_model_find_type(&model, type, &sample.type));
    sample.stack = sp_intern_put(&model.stacks, frames, length * sizeof *frames, NULL);
    assert_int_not_equal(sample.stack, SP_INTERN_FAILED);
    assert_true(sp_model_add_sample(&model, &sample, &number));
}

/* COUNT samples of TYPE in LEAF, which "main" called. NULL: samples without a stack. */
static void add(const sp_model_type *type, const char *leaf, uint64_t count)
{
    add_stack(type, (const char *const[]){leaf, leaf ? "main" : NULL, NULL}, count);
}

static sp_nameless find(void)
{
    sp_nameless found;
    const sp_selection selection = {.model = &model, .type = sp_model_type_of_name(&model, "cpu")};
    assert_true(sp_selection_find_nameless(&found, &selection));
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

/* A wait ends in a system call, and a stripped program calls functions of the C library. Both have
 * names, but they do not say what the program did. */
static void nameless_counts_a_stack_that_has_few_names(void **state)
{
    (void)state;
    const char *const waits[] = {"recvfrom", "__recv", "libz.so.1+0x9", "shop+0x1", "shop+0x2",
                                 "_start",   NULL};
    const char *const named[] = {"append", "shop+0x1", "main", "_start", NULL};
    add_stack(&cpu, waits, 3);
    assert_int_equal(find().nameless, 0); /* three of six */
    add_stack(&cpu, waits + 1, 5);        /* three of five */
    add_stack(&cpu, named, 7);
    sp_nameless found = find();
    assert_int_equal(found.all, 15);
    assert_int_equal(found.nameless, 5);
    assert_string_equal(found.module, "libz.so.1");
}

static void nameless_leaves_out_frames_of_threads_and_spans(void **state)
{
    (void)state;
    const char *const names[] = {"__recv", "shop+0x1", "shop+0x2", "main", "thread worker", NULL};
    add_stack(&cpu, names, 1);
    assert_int_equal(find().nameless, 0); /* two of five, or of four */
    model.root_frames = 2;
    assert_int_equal(find().nameless, 1); /* two of three */
    model.root_frames = 9;
    assert_int_equal(find().nameless, 0);
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
        cmocka_unit_test_setup_teardown(nameless_counts_a_stack_that_has_few_names, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(nameless_leaves_out_frames_of_threads_and_spans, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(nameless_cuts_a_long_module, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
