/* SPDX-License-Identifier: Apache-2.0 */
/* Events, errors, links, and the options that calls take. */
#include "unit/trace/support.h"

#include <stdlib.h>

static const spanprof_context linked = {
    .trace_id = {0xaa}, .span_id = {0xbb}, .trace_flags = 1, .remote = 1};

static const spanprof_attribute retry[] = {
    {.key = "retry", .type = SPANPROF_ATTRIBUTE_INT, .value = {.int_value = 1}},
    {.key = "", .type = SPANPROF_ATTRIBUTE_INT},
    {.key = NULL, .type = SPANPROF_ATTRIBUTE_INT},
    {.key = "bad type", .type = (spanprof_attribute_type)77},
    {.key = "retry", .type = SPANPROF_ATTRIBUTE_STRING, .value = {.string_value = "again"}},
    {.key = "k\xff", .type = SPANPROF_ATTRIBUTE_BOOL, .value = {.bool_value = true}},
    {.key = "k\xff", .type = SPANPROF_ATTRIBUTE_BOOL, .value = {.bool_value = false}},
};

static spanprof_event_options with_attributes(const spanprof_attribute *attributes, uint32_t count)
{
    spanprof_event_options options = SPANPROF_EVENT_OPTIONS_INIT;
    options.attributes = attributes;
    options.attribute_count = count;
    return options;
}

/* What is left of `retry`. */
static void check_retry(const spanprof_attribute *attributes, uint32_t count, uint32_t dropped)
{
    assert_int_equal(count, 2);
    assert_int_equal(dropped, 1);
    assert_string_equal(attributes[0].key, "retry");
    assert_string_equal(attributes[0].value.string_value, "again");
    assert_string_equal(attributes[1].key, "k\xef\xbf\xbd");
    assert_false(attributes[1].value.bool_value);
}

/* --- events ----------------------------------------------------------------------------------- */

static void event_keeps_name_time_and_attributes(void **state)
{
    (void)state;
    char name[] = "cache miss";
    spanprof_event_options options = with_attributes(retry, SP_ARRAY_LENGTH(retry));
    options.time_ns = 4711;
    spanprof_span span = spanprof_span_start(NULL, "s", NULL);
    spanprof_span_add_event(span, name, &options);
    memset(name, 'x', sizeof name - 1);
    spanprof_span_add_event(span, NULL, NULL);
    spanprof_span_add_event(span, "caf\xe9", NULL);
    spanprof_span_end(span);
    sp_span_data *data = take_one();
    assert_int_equal(data->event_count, 3);
    assert_string_equal(data->events[0].name, "cache miss");
    assert_int_equal(data->events[0].time_ns, 4711);
    check_retry(data->events[0].attributes, data->events[0].attribute_count,
                data->events[0].dropped_attributes_count);
    assert_string_equal(data->events[1].name, "");
    assert_int_equal(data->events[1].attribute_count, 0);
    assert_string_equal(data->events[2].name, "caf\xef\xbf\xbd");
    assert_true(data->dropped_something);
    sp_span_data_release(data);
}

static void events_lie_within_their_span_and_in_order(void **state)
{
    (void)state;
    spanprof_span span = spanprof_span_start(NULL, "s", NULL);
    for (int i = 0; i < 100; i++)
        spanprof_span_add_event(span, "e", NULL);
    spanprof_span_end(span);
    sp_span_data *data = take_one();
    assert_int_equal(data->event_count, 100);
    uint64_t last = data->start_time_ns;
    for (uint32_t i = 0; i < data->event_count; i++) {
        assert_in_range(data->events[i].time_ns, last, data->end_time_ns);
        last = data->events[i].time_ns;
    }
    sp_span_data_release(data);
}

/* Arrays grow under them. */
static void events_links_and_attributes_mixed_stay_whole(void **state)
{
    (void)state;
    enum { COUNT = 100 };
    char text[32];
    spanprof_span span = spanprof_span_start(NULL, "s", NULL);
    for (int i = 0; i < COUNT; i++) {
        snprintf(text, sizeof text, "number %d", i);
        const spanprof_attribute one = {.key = text, .value = {.string_value = text}};
        spanprof_event_options options = with_attributes(&one, 1);
        spanprof_span_add_event(span, text, &options);
        spanprof_span_set_string(span, text, text);
        spanprof_span_add_link(
            span, &(spanprof_link){.context = &linked, .attributes = &one, .attribute_count = 1});
    }
    spanprof_span_end(span);
    sp_span_data *data = take_one();
    assert_int_equal(data->event_count, COUNT);
    assert_int_equal(data->link_count, COUNT);
    assert_int_equal(data->attribute_count, COUNT);
    for (int i = 0; i < COUNT; i++) {
        snprintf(text, sizeof text, "number %d", i);
        assert_string_equal(data->events[i].name, text);
        assert_string_equal(data->events[i].attributes[0].value.string_value, text);
        assert_string_equal(data->links[i].attributes[0].key, text);
        assert_string_equal(data->attributes[i].value.string_value, text);
    }
    sp_span_data_release(data);
}

/* --- errors ----------------------------------------------------------------------------------- */

static void error_is_an_event_and_leaves_the_status(void **state)
{
    (void)state;
    spanprof_span span = spanprof_span_start(NULL, "s", NULL);
    spanprof_span_record_error(span, "ENOENT", "no such file", "main\nopen", NULL);
    spanprof_span_record_error(span, NULL, "only a message", "", NULL);
    spanprof_span_record_error(span, NULL, NULL, NULL, NULL);
    spanprof_span_end(span);
    sp_span_data *data = take_one();
    assert_int_equal(data->status, SPANPROF_SPAN_STATUS_UNSET);
    assert_int_equal(data->event_count, 3);
    const sp_span_event *event = data->events;
    assert_string_equal(event[0].name, "exception");
    assert_int_equal(event[0].attribute_count, 3);
    assert_string_equal(event[0].attributes[0].key, "exception.type");
    assert_string_equal(event[0].attributes[0].value.string_value, "ENOENT");
    assert_string_equal(event[0].attributes[1].key, "exception.message");
    assert_string_equal(event[0].attributes[1].value.string_value, "no such file");
    assert_string_equal(event[0].attributes[2].key, "exception.stacktrace");
    assert_string_equal(event[0].attributes[2].value.string_value, "main\nopen");
    assert_int_equal(event[1].attribute_count, 1);
    assert_string_equal(event[1].attributes[0].key, "exception.message");
    assert_string_equal(event[2].name, "exception");
    assert_int_equal(event[2].attribute_count, 0);
    sp_span_data_release(data);
}

static void attributes_of_an_error_win_over_its_arguments(void **state)
{
    (void)state;
    const spanprof_attribute given[] = {
        {.key = "exception.message", .value = {.string_value = "better"}},
        {.key = "exception.escaped",
         .type = SPANPROF_ATTRIBUTE_BOOL,
         .value = {.bool_value = true}}};
    spanprof_event_options options = with_attributes(given, 2);
    options.time_ns = 99;
    spanprof_span span = spanprof_span_start(NULL, "s", NULL);
    spanprof_span_record_error(span, "E", "worse", NULL, &options);
    spanprof_span_end(span);
    sp_span_data *data = take_one();
    assert_int_equal(data->events[0].time_ns, 99);
    assert_int_equal(data->events[0].attribute_count, 3);
    assert_string_equal(data->events[0].attributes[1].value.string_value, "better");
    assert_string_equal(data->events[0].attributes[2].key, "exception.escaped");
    assert_int_equal(data->events[0].dropped_attributes_count, 0);
    sp_span_data_release(data);
}

/* --- links ------------------------------------------------------------------------------------ */

static void links_added_follow_those_of_the_start(void **state)
{
    (void)state;
    const spanprof_context other = {.trace_id = {1}, .span_id = {2}};
    spanprof_span_options options = SPANPROF_SPAN_OPTIONS_INIT;
    options.links = &(spanprof_link){.context = &linked};
    options.link_count = 1;
    spanprof_span span = spanprof_span_start(NULL, "s", &options);
    spanprof_span_add_link(span, &(spanprof_link){.context = &other,
                                                  .attributes = retry,
                                                  .attribute_count = SP_ARRAY_LENGTH(retry)});
    spanprof_span_end(span);
    sp_span_data *data = take_one();
    assert_int_equal(data->link_count, 2);
    assert_memory_equal(data->links[0].trace_id, linked.trace_id, 16);
    assert_int_equal(data->links[0].flags, 0x301);
    assert_memory_equal(data->links[1].span_id, other.span_id, 8);
    assert_int_equal(data->links[1].flags, 0x100);
    check_retry(data->links[1].attributes, data->links[1].attribute_count,
                data->links[1].dropped_attributes_count);
    sp_span_data_release(data);
}

static void link_has_the_tracestate_of_its_context(void **state)
{
    (void)state;
    spanprof_context carried;
    assert_true(spanprof_context_extract(
        &carried, "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "rojo=abc,congo=t61"));
    spanprof_span_options options = SPANPROF_SPAN_OPTIONS_INIT;
    options.links = &(spanprof_link){.context = &carried};
    options.link_count = 1;
    spanprof_span span = spanprof_span_start(NULL, "s", &options);
    spanprof_span_add_link(span, &(spanprof_link){.context = &linked});
    spanprof_span_add_link(
        span, &(spanprof_link){.context = &carried, .attributes = retry, .attribute_count = 1});
    spanprof_span_end(span);
    sp_span_data *data = take_one();
    assert_int_equal(data->link_count, 3);
    assert_string_equal(data->links[0].trace_state, "rojo=abc,congo=t61");
    assert_string_equal(data->links[1].trace_state, "");
    assert_string_equal(data->links[2].trace_state, "rojo=abc,congo=t61");
    assert_string_equal(data->trace_state, ""); /* it is the link's trace, not the span's */
    sp_span_data_release(data);
}

static void link_to_nothing_is_kept_for_its_attributes_only(void **state)
{
    (void)state;
    static const spanprof_context zero, half = {.trace_id = {1}};
    const spanprof_link nothing[] = {
        {.context = NULL},
        {.context = &zero},
        {.context = &half},
        {.context = &zero, .attributes = NULL, .attribute_count = 3},
        {.context = &zero, .attributes = retry, .attribute_count = 0},
    };
    spanprof_span span = spanprof_span_start(NULL, "s", NULL);
    for (size_t i = 0; i < SP_ARRAY_LENGTH(nothing); i++)
        spanprof_span_add_link(span, &nothing[i]);
    spanprof_span_add_link(span, NULL);
    spanprof_span_add_link(span, &(spanprof_link){.attributes = retry, .attribute_count = 1});
    spanprof_span_end(span);
    sp_span_data *data = take_one();
    assert_int_equal(data->link_count, 1);
    assert_int_equal(data->dropped_links_count, 0);
    assert_memory_equal(data->links[0].trace_id, zeroes, 16);
    assert_int_equal(data->links[0].attribute_count, 1);
    sp_span_data_release(data);
}

/* --- options ---------------------------------------------------------------------------------- */

typedef struct newer_options {
    spanprof_event_options known;
    uint64_t unknown[2];
} newer_options;

static void event_options_of_other_versions_are_read_as_far_as_known(void **state)
{
    (void)state;
    newer_options newer = {.known = {.struct_size = sizeof newer, .time_ns = 7}};
    spanprof_span span = spanprof_span_start(NULL, "s", NULL);
    spanprof_span_add_event(span, "newer", &newer.known);
    newer.unknown[1] = 1;
    spanprof_span_add_event(span, "newer with something", &newer.known);
    spanprof_event_options older = {.struct_size = offsetof(spanprof_event_options, time_ns),
                                    .attributes = retry,
                                    .attribute_count = 1,
                                    .time_ns = 7};
    spanprof_span_add_event(span, "older", &older);
    older.struct_size = 0;
    spanprof_span_add_event(span, "of no size", &older);
    spanprof_event_options counted = with_attributes(NULL, 1000);
    spanprof_span_add_event(span, "a count of nothing", &counted);
    spanprof_span_end(span);
    sp_span_data *data = take_one();
    assert_int_equal(data->event_count, 5);
    assert_int_equal(data->events[0].time_ns, 7);
    assert_int_equal(data->events[1].time_ns, 7);
    assert_in_range(data->events[2].time_ns, data->start_time_ns, data->end_time_ns);
    assert_int_equal(data->events[2].attribute_count, 1);
    assert_in_range(data->events[3].time_ns, data->start_time_ns, data->end_time_ns);
    assert_int_equal(data->events[3].attribute_count, 0);
    assert_int_equal(data->events[4].attribute_count, 0);
    assert_false(data->dropped_something);
    sp_span_data_release(data);
}

static void span_options_of_a_newer_version_are_read_as_far_as_known(void **state)
{
    (void)state;
    struct {
        spanprof_span_options known;
        uint64_t unknown;
    } newer = {.known = {.struct_size = sizeof newer, .kind = SPANPROF_SPAN_KIND_CLIENT},
               .unknown = 1};
    spanprof_span_end(spanprof_span_start(NULL, "s", &newer.known));
    sp_span_data *data = take_one();
    assert_int_equal(data->kind, SPANPROF_SPAN_KIND_CLIENT);
    sp_span_data_release(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        traced(event_keeps_name_time_and_attributes),
        traced(events_lie_within_their_span_and_in_order),
        traced(events_links_and_attributes_mixed_stay_whole),
        traced(error_is_an_event_and_leaves_the_status),
        traced(attributes_of_an_error_win_over_its_arguments),
        traced(links_added_follow_those_of_the_start),
        traced(link_has_the_tracestate_of_its_context),
        traced(link_to_nothing_is_kept_for_its_attributes_only),
        traced(event_options_of_other_versions_are_read_as_far_as_known),
        traced(span_options_of_a_newer_version_are_read_as_far_as_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
