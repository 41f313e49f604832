/* SPDX-License-Identifier: Apache-2.0 */
/* Instrumentation scopes: which are the same, and what they keep. */
#include "unit/trace/support.h"

#include <pthread.h>
#include <stdlib.h>

static const char *const parts[] = {"a", "b"};

static const spanprof_attribute attributes[] = {
    {.key = "team", .value = {.string_value = "cart"}},
    {.key = "level", .type = SPANPROF_ATTRIBUTE_INT, .value = {.int_value = 3}},
    {.key = "parts",
     .type = SPANPROF_ATTRIBUTE_STRING_ARRAY,
     .count = 2,
     .value = {.string_array = parts}},
};

static spanprof_tracer_options make_options(void)
{
    spanprof_tracer_options options = SPANPROF_TRACER_OPTIONS_INIT;
    options.name = "lib";
    options.version = "1";
    options.schema_url = "https://opentelemetry.io/schemas/1.44.0";
    options.attributes = attributes;
    options.attribute_count = SP_ARRAY_LENGTH(attributes);
    return options;
}

static void scope_keeps_what_it_was_given(void **state)
{
    (void)state;
    spanprof_tracer_options options = make_options();
    spanprof_span_end(spanprof_span_start(spanprof_tracer_get_with(&options), "s", NULL));
    sp_span_data *data = take_one();
    const sp_instrumentation_scope *scope = data->scope;
    assert_string_equal(scope->name, "lib");
    assert_string_equal(scope->version, "1");
    assert_string_equal(scope->schema_url, options.schema_url);
    assert_int_equal(scope->attribute_count, 3);
    assert_int_equal(scope->dropped_attributes_count, 0);
    assert_string_equal(scope->attributes[0].key, "level");
    assert_int_equal(scope->attributes[0].value.int_value, 3);
    assert_string_equal(scope->attributes[1].key, "parts");
    assert_string_equal(scope->attributes[1].value.string_array[1], "b");
    assert_string_equal(scope->attributes[2].key, "team");
    assert_string_equal(scope->attributes[2].value.string_value, "cart");
    sp_span_data_release(data);
}

static void scopes_are_the_same_when_all_is(void **state)
{
    (void)state;
    spanprof_tracer_options options = make_options();
    spanprof_tracer *tracer = spanprof_tracer_get_with(&options);
    assert_non_null(tracer);
    assert_ptr_equal(tracer, spanprof_tracer_get_with(&options));
    const spanprof_attribute turned[] = {attributes[2], attributes[0], attributes[1]};
    options.attributes = turned;
    assert_ptr_equal(tracer, spanprof_tracer_get_with(&options));
    options.attribute_count = 2;
    assert_ptr_not_equal(tracer, spanprof_tracer_get_with(&options));
    options = make_options();
    options.schema_url = NULL;
    assert_ptr_not_equal(tracer, spanprof_tracer_get_with(&options));
    options = make_options();
    options.version = "2";
    assert_ptr_not_equal(tracer, spanprof_tracer_get_with(&options));
    assert_ptr_not_equal(tracer, spanprof_tracer_get("lib", "1"));
    options = make_options();
    options.schema_url = NULL;
    options.attribute_count = 0;
    assert_ptr_equal(spanprof_tracer_get_with(&options), spanprof_tracer_get("lib", "1"));
}

/* Every value differs from every other, and equals itself. */
static void scopes_with_other_values_are_others(void **state)
{
    (void)state;
    static const int64_t ints[] = {1, 2};
    static const double doubles[] = {1, 2};
    static const bool bools[] = {true, true};
    const spanprof_attribute values[] = {
        {.key = "v", .value = {.string_value = "1"}},
        {.key = "v", .value = {.string_value = "2"}},
        {.key = "v", .type = SPANPROF_ATTRIBUTE_INT, .value = {.int_value = 1}},
        {.key = "v", .type = SPANPROF_ATTRIBUTE_INT, .value = {.int_value = 2}},
        {.key = "v", .type = SPANPROF_ATTRIBUTE_DOUBLE, .value = {.double_value = 1}},
        {.key = "v", .type = SPANPROF_ATTRIBUTE_DOUBLE, .value = {.double_value = 2}},
        {.key = "v", .type = SPANPROF_ATTRIBUTE_BOOL, .value = {.bool_value = true}},
        {.key = "v", .type = SPANPROF_ATTRIBUTE_BOOL, .value = {.bool_value = false}},
        {.key = "v",
         .type = SPANPROF_ATTRIBUTE_STRING_ARRAY,
         .count = 1,
         .value = {.string_array = parts}},
        {.key = "v",
         .type = SPANPROF_ATTRIBUTE_STRING_ARRAY,
         .count = 1,
         .value = {.string_array = parts + 1}},
        {.key = "v",
         .type = SPANPROF_ATTRIBUTE_INT_ARRAY,
         .count = 1,
         .value = {.int_array = ints}},
        {.key = "v",
         .type = SPANPROF_ATTRIBUTE_INT_ARRAY,
         .count = 2,
         .value = {.int_array = ints}},
        {.key = "v",
         .type = SPANPROF_ATTRIBUTE_DOUBLE_ARRAY,
         .count = 1,
         .value = {.double_array = doubles}},
        {.key = "v",
         .type = SPANPROF_ATTRIBUTE_DOUBLE_ARRAY,
         .count = 1,
         .value = {.double_array = doubles + 1}},
        {.key = "v",
         .type = SPANPROF_ATTRIBUTE_BOOL_ARRAY,
         .count = 1,
         .value = {.bool_array = bools}},
        {.key = "v",
         .type = SPANPROF_ATTRIBUTE_BOOL_ARRAY,
         .count = 2,
         .value = {.bool_array = bools}},
        {.key = "w", .value = {.string_value = "1"}},
    };
    spanprof_tracer *tracers[SP_ARRAY_LENGTH(values)];
    spanprof_tracer_options options = make_options();
    options.attribute_count = 1;
    for (size_t i = 0; i < SP_ARRAY_LENGTH(values); i++) {
        options.attributes = &values[i];
        tracers[i] = spanprof_tracer_get_with(&options);
        assert_non_null(tracers[i]);
        assert_ptr_equal(tracers[i], spanprof_tracer_get_with(&options));
        for (size_t j = 0; j < i; j++)
            assert_ptr_not_equal(tracers[i], tracers[j]);
    }
}

static void scope_of_bad_options_is_what_can_be_read(void **state)
{
    (void)state;
    spanprof_tracer *standard = spanprof_tracer_get(NULL, NULL);
    assert_ptr_equal(spanprof_tracer_get_with(NULL), standard);
    spanprof_tracer_options options = SPANPROF_TRACER_OPTIONS_INIT;
    assert_ptr_equal(spanprof_tracer_get_with(&options), standard);
    options.attribute_count = 1000; /* of NULL */
    assert_ptr_equal(spanprof_tracer_get_with(&options), standard);
    options = make_options();
    options.struct_size = 0;
    assert_ptr_equal(spanprof_tracer_get_with(&options), standard);
    options.struct_size = offsetof(spanprof_tracer_options, version);
    options.attribute_count = 0;
    assert_ptr_equal(spanprof_tracer_get_with(&options), spanprof_tracer_get("lib", NULL));
    struct {
        spanprof_tracer_options known;
        uint64_t unknown;
    } newer = {.known = {.struct_size = sizeof newer, .name = "lib", .version = "1"}, .unknown = 1};
    assert_ptr_equal(spanprof_tracer_get_with(&newer.known), spanprof_tracer_get("lib", "1"));
    options = make_options();
    options.name = options.version = "\xff";
    spanprof_tracer *repaired = spanprof_tracer_get_with(&options);
    options.name = options.version = "\xef\xbf\xbd";
    assert_ptr_equal(spanprof_tracer_get_with(&options), repaired);
}

static void scope_with_many_attributes_counts_what_it_drops(void **state)
{
    (void)state;
    enum { COUNT = 1000 };
    static char keys[COUNT][12];
    static spanprof_attribute many[COUNT];
    for (int i = 0; i < COUNT; i++) {
        snprintf(keys[i], sizeof keys[i], "k%03d", i);
        many[i] = (spanprof_attribute){.key = keys[i], .type = SPANPROF_ATTRIBUTE_INT};
    }
    spanprof_tracer_options options = make_options();
    options.attributes = many;
    options.attribute_count = COUNT;
    spanprof_span_end(spanprof_span_start(spanprof_tracer_get_with(&options), "s", NULL));
    sp_span_data *data = take_one();
    assert_int_equal(data->scope->attribute_count, 128);
    assert_int_equal(data->scope->dropped_attributes_count, COUNT - 128);
    sp_span_data_release(data);
}

enum { THREADS = 4, NAMES = 50 };

static void *get_all(void *out)
{
    spanprof_tracer **tracers = out;
    char name[16];
    for (int i = 0; i < NAMES; i++) {
        snprintf(name, sizeof name, "shared %d", i);
        spanprof_tracer_options options = make_options();
        options.name = name;
        tracers[i] = spanprof_tracer_get_with(&options);
    }
    return NULL;
}

static void threads_get_the_same_tracers(void **state)
{
    (void)state;
    static spanprof_tracer *tracers[THREADS][NAMES];
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, get_all, tracers[i]), 0);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_non_null(tracers[0][0]);
    for (int i = 1; i < THREADS; i++)
        assert_memory_equal(tracers[i], tracers[0], sizeof tracers[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        traced(scope_keeps_what_it_was_given),
        traced(scopes_are_the_same_when_all_is),
        traced(scopes_with_other_values_are_others),
        traced(scope_of_bad_options_is_what_can_be_read),
        traced(scope_with_many_attributes_counts_what_it_drops),
        traced(threads_get_the_same_tracers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
