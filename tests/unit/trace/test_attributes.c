/* SPDX-License-Identifier: Apache-2.0 */
/* Attributes: arrays, the limits of their number and length, and what is no good attribute. */
#include "unit/trace/support.h"

#include <stdlib.h>

#include "core/log.h"
#include "trace/record.h"

/* The attribute of a span that has one. */
static const spanprof_attribute *only_attribute(const sp_span_data *data)
{
    assert_int_equal(data->attribute_count, 1);
    return &data->attributes[0];
}

/* --- strings with a size ---------------------------------------------------------------------- */

static void sized_strings_are_strings_up_to_their_size_or_a_nul(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint32_t count;
        const char *wanted;
    } cases[] = {
        {"one, two", 3, "one"},
        {"one\0two", 7, "one"},
        {"one", 0, ""},
        {NULL, 5, ""},
        {"caf\xc3\xa9", 4, "caf\xef\xbf\xbd"},
    };
    for (size_t i = 0; i < SP_ARRAY_LENGTH(cases); i++) {
        spanprof_attribute attribute = {.key = "key",
                                        .type = SPANPROF_ATTRIBUTE_SIZED_STRING,
                                        .count = cases[i].count,
                                        .value = {.string_value = cases[i].text}};
        spanprof_span span = spanprof_span_start(NULL, "s", NULL);
        spanprof_span_set_string(span, "key", "before");
        spanprof_span_set_attribute(span, &attribute);
        spanprof_span_set_attribute(span, NULL);
        spanprof_span_end(span);
        sp_span_data *data = take_one();
        assert_int_equal(only_attribute(data)->type, SPANPROF_ATTRIBUTE_STRING);
        assert_string_equal(only_attribute(data)->value.string_value, cases[i].wanted);
        sp_span_data_release(data);
    }
}

/* --- arrays ----------------------------------------------------------------------------------- */

static void arrays_of_every_type_are_copied(void **state)
{
    (void)state;
    char text[] = "two";
    const char *strings[] = {"one", text, NULL, "caf\xe9"};
    int64_t ints[] = {INT64_MIN, 0, INT64_MAX};
    double doubles[] = {0.5, -1e300};
    bool bools[] = {true, false, true};
    spanprof_span span = spanprof_span_start(NULL, "s", NULL);
    spanprof_span_set_string_array(span, "strings", strings, 4);
    spanprof_span_set_int_array(span, "ints", ints, 3);
    spanprof_span_set_double_array(span, "doubles", doubles, 2);
    spanprof_span_set_bool_array(span, "bools", bools, 3);
    memset(text, 'x', 3);
    memset(ints, 0, sizeof ints);
    memset(doubles, 0, sizeof doubles);
    memset(bools, 0, sizeof bools);
    spanprof_span_end(span);
    sp_span_data *data = take_one();
    const spanprof_attribute *a = data->attributes;
    assert_int_equal(data->attribute_count, 4);
    assert_int_equal(a[0].type, SPANPROF_ATTRIBUTE_STRING_ARRAY);
    assert_int_equal(a[0].count, 4);
    assert_string_equal(a[0].value.string_array[0], "one");
    assert_string_equal(a[0].value.string_array[1], "two");
    assert_string_equal(a[0].value.string_array[2], "");
    assert_string_equal(a[0].value.string_array[3], "caf\xef\xbf\xbd");
    assert_int_equal(a[1].type, SPANPROF_ATTRIBUTE_INT_ARRAY);
    assert_int_equal(a[1].count, 3);
    assert_true(a[1].value.int_array[0] == INT64_MIN && a[1].value.int_array[2] == INT64_MAX);
    assert_int_equal(a[2].type, SPANPROF_ATTRIBUTE_DOUBLE_ARRAY);
    assert_int_equal(a[2].count, 2);
    assert_true(a[2].value.double_array[0] == 0.5 && a[2].value.double_array[1] == -1e300);
    assert_int_equal(a[3].type, SPANPROF_ATTRIBUTE_BOOL_ARRAY);
    assert_int_equal(a[3].count, 3);
    assert_true(a[3].value.bool_array[0] && !a[3].value.bool_array[1] && a[3].value.bool_array[2]);
    sp_span_data_release(data);
}

static void array_that_is_null_or_empty_is_an_empty_one(void **state)
{
    (void)state;
    const int64_t one = 1;
    spanprof_span span = spanprof_span_start(NULL, "s", NULL);
    spanprof_span_set_string_array(span, "a", NULL, 5);
    spanprof_span_set_int_array(span, "b", NULL, SIZE_MAX);
    spanprof_span_set_double_array(span, "c", NULL, 0);
    spanprof_span_set_bool_array(span, "d", NULL, 1);
    spanprof_span_set_int_array(span, "e", &one, 0);
    spanprof_span_set_int_array(span, NULL, &one, 1);
    spanprof_span_set_int_array(span, "", &one, 1);
    spanprof_span_end(span);
    sp_span_data *data = take_one();
    assert_int_equal(data->attribute_count, 5);
    assert_int_equal(data->dropped_attributes_count, 0);
    for (uint32_t i = 0; i < 5; i++)
        assert_int_equal(data->attributes[i].count, 0);
    sp_span_data_release(data);
}

static void array_above_16_mib_is_dropped_whole(void **state)
{
    (void)state;
    const size_t count = (16u << 20) / sizeof(int64_t);
    int64_t *numbers = calloc(count + 1, sizeof *numbers);
    char *text = malloc((9u << 20) + 1);
    assert_true(numbers && text);
    memset(text, 'x', 9u << 20);
    text[9u << 20] = 0;
    spanprof_span span = spanprof_span_start(NULL, "s", NULL);
    spanprof_span_set_int_array(span, "fits", numbers, count);
    spanprof_span_set_int_array(span, "too long", numbers, count + 1);
    spanprof_span_set_int_array(span, "far too long", numbers, SIZE_MAX);
    spanprof_span_set_bool_array(span, "far too long", (const bool *)numbers, SIZE_MAX);
    spanprof_span_set_string_array(span, "far too long", (const char *const[]){text}, SIZE_MAX);
    spanprof_span_set_string_array(span, "two long ones", (const char *const[]){text, text}, 2);
    spanprof_span_end(span);
    sp_span_data *data = take_one();
    assert_int_equal(only_attribute(data)->count, count);
    assert_int_equal(data->dropped_attributes_count, 5);
    sp_span_data_release(data);
    free(text);
    free(numbers);
}

/* One attribute takes a string, arrays of strings and of numbers in turn; the last value counts,
 * and memory is bounded. */
static void arrays_and_strings_replace_each_other_in_place(void **state)
{
    (void)state;
    spanprof_span span = spanprof_span_start(NULL, "s", NULL);
    sp_span_record *record = sp_record_of_slot(sp_pool_at(&sp_record_pool, span.slot >> 1));
    const char *const strings[] = {"a", "bc", "def"};
    const int64_t ints[] = {1, 2, 3, 4, 5};
    const uint8_t *cursor = NULL;
    for (int i = 0; i < 1000; i++) {
        spanprof_span_set_string(span, "k", "the text");
        spanprof_span_set_string_array(span, "k", strings, (size_t)(i % 4));
        spanprof_span_set_int_array(span, "k", ints, (size_t)(i % 6));
        spanprof_span_set_string_array(span, "k", strings, 3);
        if (i == 10)
            cursor = record->memory.cursor;
    }
    assert_ptr_equal(record->memory.cursor, cursor);
    spanprof_span_end(span);
    sp_span_data *data = take_one();
    assert_int_equal(only_attribute(data)->type, SPANPROF_ATTRIBUTE_STRING_ARRAY);
    assert_int_equal(data->attributes[0].count, 3);
    for (int i = 0; i < 3; i++)
        assert_string_equal(data->attributes[0].value.string_array[i], strings[i]);
    assert_int_equal(data->dropped_attributes_count, 0);
    sp_span_data_release(data);
}

/* --- limits ----------------------------------------------------------------------------------- */

static void values_are_cut_to_the_limit_in_characters(void **state)
{
    (void)state;
    static const struct {
        const char *value, *kept;
    } cases[] = {
        {"abc", "abc"},
        {"abcd", "abc"},
        {"", ""},
        {"\xc3\xa9\xc3\xa9\xc3\xa9", "\xc3\xa9\xc3\xa9\xc3\xa9"},
        {"\xf0\x9f\x94\xa5\xf0\x9f\x94\xa5\xe2\x82\xac+",
         "\xf0\x9f\x94\xa5\xf0\x9f\x94\xa5\xe2\x82\xac"},
        {"\xff\xff\xff\xff", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
        {"a\xc3", "a\xef\xbf\xbd"},
    };
    use_limits((sp_span_limits){.attributes = 128,
                                .value_length = 3,
                                .events = 1,
                                .links = 1,
                                .event_attributes = 1,
                                .link_attributes = 1});
    const spanprof_context linked = {.trace_id = {1}, .span_id = {1}};
    for (size_t i = 0; i < SP_ARRAY_LENGTH(cases); i++) {
        const spanprof_attribute given = {.key = "longer than three",
                                          .value = {.string_value = cases[i].value}};
        spanprof_event_options event = SPANPROF_EVENT_OPTIONS_INIT;
        event.attributes = &given;
        event.attribute_count = 1;
        spanprof_span span = spanprof_span_start(NULL, "name", NULL);
        spanprof_span_set_string(span, "longer than three", cases[i].value);
        spanprof_span_set_string_array(span, "array", (const char *const[]){"x", cases[i].value},
                                       2);
        spanprof_span_add_event(span, "event", &event);
        spanprof_span_add_link(
            span, &(spanprof_link){.context = &linked, .attributes = &given, .attribute_count = 1});
        spanprof_span_set_status(span, SPANPROF_SPAN_STATUS_ERROR, "no value");
        spanprof_span_end(span);
        sp_span_data *data = take_one();
        assert_string_equal(data->name, "name");
        assert_string_equal(data->status_message, "no value");
        assert_string_equal(data->attributes[0].key, "longer than three");
        assert_string_equal(data->attributes[0].value.string_value, cases[i].kept);
        assert_string_equal(data->attributes[1].value.string_array[0], "x");
        assert_string_equal(data->attributes[1].value.string_array[1], cases[i].kept);
        assert_string_equal(data->events[0].attributes[0].value.string_value, cases[i].kept);
        assert_string_equal(data->links[0].attributes[0].value.string_value, cases[i].kept);
        assert_false(data->dropped_something); /* what is cut is not dropped */
        sp_span_data_release(data);
    }
}

static void limit_of_zero_keeps_nothing(void **state)
{
    (void)state;
    use_limits((sp_span_limits){0});
    const spanprof_context linked = {.trace_id = {1}, .span_id = {1}};
    spanprof_span span = spanprof_span_start(NULL, "s", NULL);
    spanprof_span_set_int(span, "k", 1);
    spanprof_span_add_event(span, "e", NULL);
    spanprof_span_add_link(span, &(spanprof_link){.context = &linked});
    spanprof_span_end(span);
    sp_span_data *data = take_one();
    assert_int_equal(data->attribute_count + data->event_count + data->link_count, 0);
    assert_int_equal(data->dropped_attributes_count, 1);
    assert_int_equal(data->dropped_events_count, 1);
    assert_int_equal(data->dropped_links_count, 1);
    sp_span_data_release(data);
}

enum { MANY = 100000 };

/* 10^5 attributes, events and links; of one event, of one link, and of a start. */
static void many_of_everything_are_counted(void **state)
{
    (void)state;
    static char keys[MANY][12];
    spanprof_attribute *attributes = calloc(MANY, sizeof *attributes);
    spanprof_link *links = calloc(MANY, sizeof *links);
    assert_true(attributes && links);
    const spanprof_context linked = {.trace_id = {1}, .span_id = {1}};
    for (int i = 0; i < MANY; i++) {
        snprintf(keys[i], sizeof keys[i], "k%d", i);
        attributes[i] = (spanprof_attribute){
            .key = keys[i], .type = SPANPROF_ATTRIBUTE_INT, .value = {.int_value = i}};
        links[i].context = &linked;
    }
    links[0].attributes = attributes;
    links[0].attribute_count = MANY;
    spanprof_event_options event = SPANPROF_EVENT_OPTIONS_INIT;
    event.attributes = attributes;
    event.attribute_count = MANY;
    spanprof_span_options options = SPANPROF_SPAN_OPTIONS_INIT;
    options.attributes = attributes;
    options.attribute_count = MANY;
    options.links = links;
    options.link_count = MANY;
    spanprof_span span = spanprof_span_start(NULL, "s", &options);
    spanprof_span_add_event(span, "first", &event);
    for (int i = 1; i < MANY; i++)
        spanprof_span_add_event(span, "event", NULL);
    spanprof_span_end(span);
    sp_span_data *data = take_one();
    assert_int_equal(data->attribute_count, 128);
    assert_int_equal(data->dropped_attributes_count, MANY - 128);
    assert_int_equal(data->event_count, 128);
    assert_int_equal(data->dropped_events_count, MANY - 128);
    assert_string_equal(data->events[0].name, "first");
    assert_int_equal(data->events[0].attribute_count, 128);
    assert_int_equal(data->events[0].dropped_attributes_count, MANY - 128);
    assert_int_equal(data->link_count, 128);
    assert_int_equal(data->dropped_links_count, MANY - 128);
    assert_int_equal(data->links[0].attribute_count, 128);
    assert_int_equal(data->links[0].dropped_attributes_count, MANY - 128);
    for (int i = 0; i < 128; i++) {
        assert_string_equal(data->attributes[i].key, keys[i]);
        assert_string_equal(data->events[0].attributes[i].key, keys[i]);
        assert_int_equal(data->links[0].attributes[i].value.int_value, i);
    }
    sp_span_data_release(data);
    free(attributes);
    free(links);
}

/* What is refused takes no memory, however often. */
static void refused_attributes_take_no_memory(void **state)
{
    (void)state;
    char *huge = malloc((20u << 20) + 1);
    assert_non_null(huge);
    memset(huge, 'x', 20u << 20);
    huge[20u << 20] = 0;
    spanprof_span span = spanprof_span_start(NULL, "s", NULL);
    for (int i = 0; i < 4; i++) /* the array is full: the next one would grow it */
        spanprof_span_set_int(span, (const char *const[]){"a", "b", "c", "d"}[i], i);
    sp_span_record *record = sp_record_of_slot(sp_pool_at(&sp_record_pool, span.slot >> 1));
    sp_span_memory before = record->memory;
    for (int i = 0; i < 3; i++) {
        spanprof_span_set_string(span, "key", huge);
        spanprof_span_set_string(span, "a", huge);
        spanprof_span_set_int(span, huge, 1);
        spanprof_span_add_event(span, huge, NULL);
    }
    assert_memory_equal(&record->memory, &before, sizeof before);
    assert_int_equal(record->data.attributes[0].value.int_value, 0);
    spanprof_span_end(span);
    sp_span_data *data = take_one();
    assert_int_equal(data->attribute_count, 4);
    assert_int_equal(data->dropped_attributes_count, 9);
    assert_int_equal(data->dropped_events_count, 3);
    sp_span_data_release(data);
    free(huge);
}

/* --- the warning ------------------------------------------------------------------------------ */

static unsigned warnings;

static void count_warning(spanprof_log_level level, const char *line, void *user)
{
    (void)user;
    assert_int_equal(level, SPANPROF_LOG_WARN);
    assert_non_null(strstr(line, "had more than it may keep"));
    warnings++;
}

/* Runs first: the process says it once a minute. */
static void warning_of_drops_comes_once(void **state)
{
    (void)state;
    use_limits((sp_span_limits){.attributes = 1});
    sp_log_configure(SPANPROF_LOG_WARN, count_warning, NULL);
    spanprof_span span = spanprof_span_start(NULL, "within", NULL);
    spanprof_span_set_int(span, "a", 1);
    spanprof_span_end(span);
    assert_int_equal(warnings, 0);
    for (int i = 0; i < 10; i++) {
        span = spanprof_span_start(NULL, "beyond", NULL);
        spanprof_span_set_int(span, "a", 1);
        spanprof_span_set_int(span, "b", 1);
        spanprof_span_set_int(span, "c", 1);
        spanprof_span_end(span);
    }
    sp_log_configure(SPANPROF_LOG_DEFAULT, NULL, NULL);
    assert_int_equal(warnings, 1);
    release_all();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        traced(warning_of_drops_comes_once),
        traced(sized_strings_are_strings_up_to_their_size_or_a_nul),
        traced(arrays_of_every_type_are_copied),
        traced(array_that_is_null_or_empty_is_an_empty_one),
        traced(array_above_16_mib_is_dropped_whole),
        traced(arrays_and_strings_replace_each_other_in_place),
        traced(values_are_cut_to_the_limit_in_characters),
        traced(limit_of_zero_keeps_nothing),
        traced(many_of_everything_are_counted),
        traced(refused_attributes_take_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
