/* SPDX-License-Identifier: Apache-2.0 */
/* Starting and ending spans, their contexts, attributes, limits, and dead handles. */
#include "unit/trace/support.h"

#include <stdlib.h>

#include "context/thread.h"
#include "trace/record.h"

/* --- contexts --------------------------------------------------------------------------------- */

static void span_without_parent_starts_a_sampled_trace(void **state)
{
    (void)state;
    spanprof_span span = spanprof_span_start(NULL, "root", NULL);
    spanprof_context context = spanprof_span_context(span);
    assert_true(is_valid(&context));
    assert_int_equal(context.trace_flags, SPANPROF_TRACE_FLAG_SAMPLED | SPANPROF_TRACE_FLAG_RANDOM);
    assert_int_equal(context.remote, 0);
    assert_memory_equal(context.span_id, context.local_root_span_id, 8);
    spanprof_span_end(span);
    sp_span_data *data = take_one();
    assert_memory_equal(data->trace_id, context.trace_id, 16);
    assert_memory_equal(data->span_id, context.span_id, 8);
    assert_memory_equal(data->parent_span_id, zeroes, 8);
    assert_string_equal(data->name, "root");
    assert_string_equal(data->trace_state, "");
    assert_string_equal(data->status_message, "");
    assert_int_equal(data->flags, 0x103);
    assert_int_equal(data->kind, SPANPROF_SPAN_KIND_INTERNAL);
    assert_ptr_equal(data->scope, spanprof_tracer_get(NULL, NULL));
    sp_span_data_release(data);
}

static void span_under_active_context_is_its_child(void **state)
{
    (void)state;
    spanprof_span root = spanprof_span_start(NULL, "root", NULL);
    spanprof_scope outer = spanprof_span_attach(root);
    spanprof_span middle = spanprof_span_start(NULL, "middle", NULL);
    spanprof_scope inner = spanprof_span_attach(middle);
    spanprof_span leaf = spanprof_span_start(NULL, "leaf", NULL);
    spanprof_context of_root = spanprof_span_context(root),
                     of_middle = spanprof_span_context(middle),
                     of_leaf = spanprof_span_context(leaf);
    assert_memory_equal(of_leaf.trace_id, of_root.trace_id, 16);
    assert_memory_equal(of_leaf.local_root_span_id, of_root.span_id, 8);
    assert_memory_not_equal(of_leaf.span_id, of_middle.span_id, 8);
    spanprof_span_end(leaf);
    spanprof_scope_detach(&inner);
    spanprof_scope_detach(&outer);
    spanprof_span_end(middle);
    spanprof_span_end(root);
    sp_span_data *data = take_one();
    assert_memory_equal(data->parent_span_id, of_middle.span_id, 8);
    sp_span_data_release(data);
    data = take_one();
    assert_memory_equal(data->parent_span_id, of_root.span_id, 8);
    sp_span_data_release(data);
    sp_span_data_release(take_one());
}

static void span_with_remote_parent_is_a_local_root(void **state)
{
    (void)state;
    spanprof_context remote;
    assert_true(spanprof_context_extract(
        &remote, "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", NULL));
    spanprof_span_options options = SPANPROF_SPAN_OPTIONS_INIT;
    options.parent = &remote;
    spanprof_span span = spanprof_span_start(NULL, "server", &options);
    spanprof_context context = spanprof_span_context(span);
    assert_memory_equal(context.trace_id, remote.trace_id, 16);
    assert_memory_equal(context.local_root_span_id, context.span_id, 8);
    assert_int_equal(context.remote, 0);
    assert_int_equal(context.trace_flags, SPANPROF_TRACE_FLAG_SAMPLED);
    spanprof_span_end(span);
    sp_span_data *data = take_one();
    assert_int_equal(data->flags, 0x301);
    assert_memory_equal(data->parent_span_id, remote.span_id, 8);
    sp_span_data_release(data);
}

static void span_with_parent_that_names_no_local_root_is_one(void **state)
{
    (void)state;
    spanprof_context made = {.trace_id = {1}, .span_id = {2}, .trace_flags = 1};
    spanprof_span_options options = SPANPROF_SPAN_OPTIONS_INIT;
    options.parent = &made;
    spanprof_span span = spanprof_span_start(NULL, "s", &options);
    spanprof_context context = spanprof_span_context(span);
    assert_memory_equal(context.trace_id, made.trace_id, 16);
    assert_memory_equal(context.local_root_span_id, context.span_id, 8);
    spanprof_span_end(span);
    release_all();
}

static void span_with_zero_parent_ignores_the_active_context(void **state)
{
    (void)state;
    static const spanprof_context none;
    spanprof_span root = spanprof_span_start(NULL, "root", NULL);
    spanprof_scope scope = spanprof_span_attach(root);
    spanprof_span_options options = SPANPROF_SPAN_OPTIONS_INIT;
    options.parent = &none;
    spanprof_span other = spanprof_span_start(NULL, "other", &options);
    spanprof_context of_root = spanprof_span_context(root), of_other = spanprof_span_context(other);
    assert_memory_not_equal(of_root.trace_id, of_other.trace_id, 16);
    spanprof_scope_detach(&scope);
    spanprof_span_end(other);
    spanprof_span_end(root);
    release_all();
}

static void span_under_unsampled_parent_has_a_context_and_records_nothing(void **state)
{
    (void)state;
    spanprof_context parent;
    assert_true(spanprof_context_extract(
        &parent, "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-02", NULL));
    spanprof_span_options options = SPANPROF_SPAN_OPTIONS_INIT;
    options.parent = &parent;
    sp_tracer_counters before = counters();
    spanprof_span span = spanprof_span_start(NULL, "quiet", &options);
    spanprof_context context = spanprof_span_context(span);
    assert_memory_equal(context.trace_id, parent.trace_id, 16);
    assert_memory_not_equal(context.span_id, parent.span_id, 8);
    assert_int_equal(context.trace_flags, SPANPROF_TRACE_FLAG_RANDOM);
    spanprof_scope scope = spanprof_span_attach(span);
    spanprof_span child = spanprof_span_start(NULL, "quieter", NULL);
    spanprof_context of_child = spanprof_span_context(child);
    assert_int_equal(of_child.trace_flags, SPANPROF_TRACE_FLAG_RANDOM);
    assert_memory_equal(of_child.local_root_span_id, context.span_id, 8);
    spanprof_span_set_string(span, "key", "value");
    spanprof_span_set_status(span, SPANPROF_SPAN_STATUS_ERROR, "ignored");
    spanprof_span_add_event(span, "ignored", NULL);
    spanprof_span_record_error(span, "ignored", NULL, NULL, NULL);
    spanprof_span_update_name(span, "ignored");
    assert_false(spanprof_span_is_recording(span));
    spanprof_scope_detach(&scope);
    spanprof_span_end(child);
    spanprof_span_end(span);
    sp_tracer_counters after = counters();
    assert_int_equal(sp_tracer_queued(), 0);
    assert_int_equal(after.spans_unsampled - before.spans_unsampled, 2);
    assert_int_equal(after.spans_started, before.spans_started);
    assert_int_equal(after.misuse_dead_span, before.misuse_dead_span);
    spanprof_span_end(span);
    assert_int_equal(counters().misuse_dead_span, before.misuse_dead_span + 1);
}

static void span_ids_are_all_different(void **state)
{
    (void)state;
    enum { COUNT = 1000 };
    static uint8_t ids[COUNT][8];
    for (int i = 0; i < COUNT; i++) {
        spanprof_span span = spanprof_span_start(NULL, "s", NULL);
        spanprof_context context = spanprof_span_context(span);
        memcpy(ids[i], context.span_id, 8);
        spanprof_span_end(span);
        release_all();
        for (int j = 0; j < i; j++)
            assert_memory_not_equal(ids[i], ids[j], 8);
    }
}

/* --- what a span records ---------------------------------------------------------------------- */

static void span_options_are_recorded(void **state)
{
    (void)state;
    spanprof_attribute attributes[] = {
        {.key = "text", .type = SPANPROF_ATTRIBUTE_STRING, .value = {.string_value = "value"}},
        {.key = "number", .type = SPANPROF_ATTRIBUTE_INT, .value = {.int_value = -7}},
        {.key = "real", .type = SPANPROF_ATTRIBUTE_DOUBLE, .value = {.double_value = 0.25}},
        {.key = "truth", .type = SPANPROF_ATTRIBUTE_BOOL, .value = {.bool_value = true}},
        {.key = "bad", .type = (spanprof_attribute_type)77},
    };
    spanprof_context linked;
    assert_true(spanprof_context_extract(
        &linked, "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", NULL));
    spanprof_attribute of_link[] = {{.key = "why", .value = {.string_value = "first"}},
                                    {.key = "why", .value = {.string_value = "batch"}}};
    spanprof_link links[] = {{.context = &linked, .attributes = of_link, .attribute_count = 2},
                             {.context = NULL}};
    spanprof_span_options options = SPANPROF_SPAN_OPTIONS_INIT;
    options.kind = SPANPROF_SPAN_KIND_CONSUMER;
    options.start_time_ns = 1000;
    options.attributes = attributes;
    options.attribute_count = 5;
    options.links = links;
    options.link_count = 2;
    spanprof_tracer *tracer = spanprof_tracer_get("shop", "1.2");
    spanprof_span_end(spanprof_span_start(tracer, "all", &options));
    sp_span_data *data = take_one();
    assert_int_equal(data->kind, SPANPROF_SPAN_KIND_CONSUMER);
    assert_int_equal(data->start_time_ns, 1000);
    assert_true(data->end_time_ns > UINT64_C(1600000000) * 1000000000);
    assert_int_equal(data->attribute_count, 4);
    assert_int_equal(data->dropped_attributes_count, 1);
    assert_string_equal(data->attributes[0].key, "text");
    assert_string_equal(data->attributes[0].value.string_value, "value");
    assert_int_equal(data->attributes[1].value.int_value, -7);
    assert_true(data->attributes[2].value.double_value == 0.25);
    assert_true(data->attributes[3].value.bool_value);
    assert_int_equal(data->link_count, 1);
    assert_int_equal(data->dropped_links_count, 0); /* one without context or attributes is none */
    assert_memory_equal(data->links[0].trace_id, linked.trace_id, 16);
    assert_memory_equal(data->links[0].span_id, linked.span_id, 8);
    assert_int_equal(data->links[0].flags, 0x301);
    assert_int_equal(data->links[0].attribute_count, 1);
    assert_string_equal(data->links[0].attributes[0].value.string_value, "batch");
    assert_string_equal(data->scope->name, "shop");
    assert_string_equal(data->scope->version, "1.2");
    sp_span_data_release(data);
}

static void span_options_of_an_older_version_read_as_zero_behind(void **state)
{
    (void)state;
    spanprof_span_options options = SPANPROF_SPAN_OPTIONS_INIT;
    options.struct_size = offsetof(spanprof_span_options, parent);
    options.kind = SPANPROF_SPAN_KIND_CLIENT;
    options.parent = (const spanprof_context *)(uintptr_t)8; /* unknown to that version */
    options.start_time_ns = 5;
    spanprof_span_end(spanprof_span_start(NULL, "old", &options));
    sp_span_data *data = take_one();
    assert_int_equal(data->kind, SPANPROF_SPAN_KIND_CLIENT);
    assert_true(data->start_time_ns > 5);
    sp_span_data_release(data);
    options.struct_size = 0;
    spanprof_span_end(spanprof_span_start(NULL, "none", &options));
    data = take_one();
    assert_int_equal(data->kind, SPANPROF_SPAN_KIND_INTERNAL);
    sp_span_data_release(data);
}

static void span_times_are_of_the_day_and_in_order(void **state)
{
    (void)state;
    uint64_t before = sp_clock_realtime_ns();
    spanprof_span span = spanprof_span_start(NULL, "timed", NULL);
    spanprof_span_end(span);
    uint64_t after = sp_clock_realtime_ns();
    sp_span_data *data = take_one();
    const uint64_t slack = 50 * SP_NS_PER_MS; /* somebody may be slewing the clock */
    assert_in_range(data->start_time_ns, before - slack, after + slack);
    assert_in_range(data->end_time_ns, data->start_time_ns, after + slack);
    sp_span_data_release(data);
    spanprof_span_options options = SPANPROF_SPAN_OPTIONS_INIT;
    options.start_time_ns = UINT64_MAX - 1; /* in the future: the end is not before it */
    spanprof_span_end(spanprof_span_start(NULL, "future", &options));
    data = take_one();
    assert_int_equal(data->end_time_ns, UINT64_MAX - 1);
    sp_span_data_release(data);
}

static void attribute_set_again_replaces_the_value(void **state)
{
    (void)state;
    spanprof_span span = spanprof_span_start(NULL, "s", NULL);
    spanprof_span_set_string(span, "a", "short");
    spanprof_span_set_int(span, "b", 1);
    spanprof_span_set_string(span, "a", "a good deal longer than it was before");
    spanprof_span_set_double(span, "b", 2.5);
    spanprof_span_set_bool(span, "c", true);
    spanprof_span_set_int(span, "c", 3);
    spanprof_span_set_string(span, "c", "text");
    spanprof_span_set_string(span, "a", "tiny");
    spanprof_span_end(span);
    sp_span_data *data = take_one();
    assert_int_equal(data->attribute_count, 3);
    assert_int_equal(data->dropped_attributes_count, 0);
    assert_string_equal(data->attributes[0].value.string_value, "tiny");
    assert_int_equal(data->attributes[1].type, SPANPROF_ATTRIBUTE_DOUBLE);
    assert_true(data->attributes[1].value.double_value == 2.5);
    assert_string_equal(data->attributes[2].value.string_value, "text");
    sp_span_data_release(data);
}

static void attributes_beyond_the_limit_are_counted(void **state)
{
    (void)state;
    spanprof_span span = spanprof_span_start(NULL, "s", NULL);
    char key[32];
    for (int i = 0; i < 1000; i++) {
        snprintf(key, sizeof key, "key.%d", i);
        spanprof_span_set_int(span, key, i);
    }
    spanprof_span_set_int(span, "key.5", -5); /* replacing needs no room */
    spanprof_span_end(span);
    sp_span_data *data = take_one();
    assert_int_equal(data->attribute_count, ATTRIBUTE_LIMIT);
    assert_int_equal(data->dropped_attributes_count, 1000 - ATTRIBUTE_LIMIT);
    for (int i = 0; i < ATTRIBUTE_LIMIT; i++) {
        snprintf(key, sizeof key, "key.%d", i);
        assert_string_equal(data->attributes[i].key, key);
        assert_int_equal(data->attributes[i].value.int_value, i == 5 ? -5 : i);
    }
    sp_span_data_release(data);
}

static void null_and_empty_strings_are_taken_as_the_header_says(void **state)
{
    (void)state;
    spanprof_span span = spanprof_span_start(NULL, NULL, NULL);
    spanprof_span_set_string(span, NULL, "no key");
    spanprof_span_set_string(span, "", "no key");
    spanprof_span_set_int(span, NULL, 1);
    spanprof_span_set_string(span, "null", NULL);
    spanprof_span_set_status(span, SPANPROF_SPAN_STATUS_ERROR, NULL);
    spanprof_span_end(span);
    sp_span_data *data = take_one();
    assert_string_equal(data->name, "");
    assert_int_equal(data->attribute_count, 1);
    assert_int_equal(data->dropped_attributes_count, 0);
    assert_string_equal(data->attributes[0].value.string_value, "");
    assert_int_equal(data->status, SPANPROF_SPAN_STATUS_ERROR);
    assert_string_equal(data->status_message, "");
    sp_span_data_release(data);
}

static void strings_that_are_not_utf8_are_repaired(void **state)
{
    (void)state;
    spanprof_span span = spanprof_span_start(NULL, "caf\xe9", NULL);
    spanprof_span_set_string(span, "k\xff", "\xc3(");
    spanprof_span_set_string(span, "k\xff",
                             "again \xf0\x9f\x94\xa5"); /* the same key, a valid value */
    spanprof_span_set_status(span, SPANPROF_SPAN_STATUS_ERROR, "\xed\xa0\x80");
    spanprof_span_end(span);
    sp_span_data *data = take_one();
    assert_string_equal(data->name, "caf\xef\xbf\xbd");
    assert_int_equal(data->attribute_count, 1);
    assert_string_equal(data->attributes[0].key, "k\xef\xbf\xbd");
    assert_string_equal(data->attributes[0].value.string_value, "again \xf0\x9f\x94\xa5");
    assert_string_equal(data->status_message, "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
    sp_span_data_release(data);
}

static void huge_keys_and_values_are_kept_or_dropped_whole(void **state)
{
    (void)state;
    const size_t big = 10u << 20, too_big = 20u << 20;
    char *text = malloc(too_big + 1);
    assert_non_null(text);
    memset(text, 'x', too_big);
    text[too_big] = 0;
    spanprof_span span = spanprof_span_start(NULL, text, NULL); /* a name of 20 MiB: none */
    spanprof_span_set_string(span, "too big", text);
    spanprof_span_set_string(span, text, "too big");
    text[big] = 0;
    spanprof_span_set_string(span, "big", text);
    spanprof_span_set_string(span, text, "big");
    spanprof_span_end(span);
    sp_span_data *data = take_one();
    assert_string_equal(data->name, "");
    assert_int_equal(data->attribute_count, 2);
    assert_int_equal(data->dropped_attributes_count, 2);
    assert_int_equal(strlen(data->attributes[0].value.string_value), big);
    assert_int_equal(strlen(data->attributes[1].key), big);
    sp_span_data_release(data);
    free(text);
}

static void name_is_replaced(void **state)
{
    (void)state;
    spanprof_span span = spanprof_span_start(NULL, "GET", NULL);
    spanprof_span_update_name(span, "GET /cart/{id}");
    sp_span_record *record = sp_record_of_slot(sp_pool_at(&sp_record_pool, span.slot >> 1));
    const char *place = record->data.name;
    spanprof_span_update_name(span, NULL);
    assert_string_equal(record->data.name, "");
    spanprof_span_update_name(span, "caf\xe9");
    assert_ptr_equal(record->data.name, place); /* what fits takes no more memory */
    spanprof_span_end(span);
    sp_span_data *data = take_one();
    assert_string_equal(data->name, "caf\xef\xbf\xbd");
    sp_span_data_release(data);
}

static void end_given_is_kept_but_not_before_the_start(void **state)
{
    (void)state;
    static const struct {
        uint64_t start, end, wanted;
    } cases[] = {
        {1000, 2000, 2000}, {1000, 1000, 1000}, {1000, 999, 1000}, {1000, UINT64_MAX, UINT64_MAX}};
    for (size_t i = 0; i < SP_ARRAY_LENGTH(cases); i++) {
        spanprof_span_options options = SPANPROF_SPAN_OPTIONS_INIT;
        options.start_time_ns = cases[i].start;
        spanprof_span_end_at(spanprof_span_start(NULL, "s", &options), cases[i].end);
        sp_span_data *data = take_one();
        assert_true(data->start_time_ns == cases[i].start && data->end_time_ns == cases[i].wanted);
        sp_span_data_release(data);
    }
    spanprof_span_end_at(spanprof_span_start(NULL, "now", NULL), 0);
    sp_span_data *data = take_one();
    assert_in_range(data->end_time_ns - data->start_time_ns, 0, 600 * SP_NS_PER_S);
    sp_span_data_release(data);
    spanprof_span_end_at(spanprof_span_start(NULL, "past", NULL), 5);
    data = take_one();
    assert_true(data->end_time_ns == data->start_time_ns && data->start_time_ns > 5);
    sp_span_data_release(data);
}

static void span_is_recording_until_it_ends(void **state)
{
    (void)state;
    uint64_t misuse = counters().misuse_dead_span;
    spanprof_span span = spanprof_span_start(NULL, "s", NULL);
    assert_true(spanprof_span_is_recording(span));
    spanprof_span_end(span);
    assert_false(spanprof_span_is_recording(span));
    assert_false(spanprof_span_is_recording((spanprof_span){0, 0}));
    assert_int_equal(counters().misuse_dead_span, misuse);
    release_all();
}

/* As instrumented programs have them. */
static void live_span_with_four_attributes_fits_its_slot(void **state)
{
    (void)state;
    spanprof_span span = spanprof_span_start(NULL, "GET /cart/{id}", NULL);
    spanprof_span_set_string(span, "http.request.method", "GET");
    spanprof_span_set_string(span, "http.route", "/cart/{id}");
    spanprof_span_set_int(span, "http.response.status_code", 200);
    spanprof_span_set_string(span, "server.address", "10.0.0.7");
    sp_span_record *record = sp_record_of_slot(sp_pool_at(&sp_record_pool, span.slot >> 1));
    assert_int_equal(record->data.attribute_count, 4);
    assert_null(record->memory.chunks);
    assert_int_equal(sizeof *record, 512);
    spanprof_span_end(span);
    release_all();
}

static void live_span_with_two_attributes_and_an_event_fits_its_slot(void **state)
{
    (void)state;
    spanprof_span span = spanprof_span_start(NULL, "GET /cart/{id}", NULL);
    spanprof_span_set_string(span, "http.request.method", "GET");
    spanprof_span_set_int(span, "http.response.status_code", 200);
    spanprof_span_add_event(span, "cache miss", NULL);
    sp_span_record *record = sp_record_of_slot(sp_pool_at(&sp_record_pool, span.slot >> 1));
    assert_int_equal(record->data.event_count, 1);
    assert_null(record->memory.chunks);
    spanprof_span_end(span);
    release_all();
}

static void nested_scopes_by_the_ten_thousand_unwind(void **state)
{
    (void)state;
    enum { DEPTH = 10000 };
    static spanprof_scope scopes[DEPTH];
    static spanprof_span spans[DEPTH];
    for (int i = 0; i < DEPTH; i++) {
        spans[i] = spanprof_span_start(NULL, "deep", NULL);
        scopes[i] = spanprof_span_attach(spans[i]);
    }
    for (int i = DEPTH; i-- > 0;) {
        spanprof_context current = spanprof_context_current(),
                         own = spanprof_span_context(spans[i]);
        assert_memory_equal(&current, &own, sizeof own);
        assert_int_equal(spanprof_scope_detach(&scopes[i]), SPANPROF_OK);
        spanprof_span_end(spans[i]);
        release_all();
    }
}

static void status_ok_is_final_and_unset_ignored(void **state)
{
    (void)state;
    static const struct {
        spanprof_span_status calls[3];
        spanprof_span_status status;
        const char *message;
    } cases[] = {
        {{SPANPROF_SPAN_STATUS_ERROR, SPANPROF_SPAN_STATUS_UNSET, SPANPROF_SPAN_STATUS_UNSET},
         SPANPROF_SPAN_STATUS_ERROR,
         "0"},
        {{SPANPROF_SPAN_STATUS_ERROR, SPANPROF_SPAN_STATUS_ERROR, SPANPROF_SPAN_STATUS_UNSET},
         SPANPROF_SPAN_STATUS_ERROR,
         "1"},
        {{SPANPROF_SPAN_STATUS_ERROR, SPANPROF_SPAN_STATUS_OK, SPANPROF_SPAN_STATUS_ERROR},
         SPANPROF_SPAN_STATUS_OK,
         ""},
        {{SPANPROF_SPAN_STATUS_OK, SPANPROF_SPAN_STATUS_ERROR, SPANPROF_SPAN_STATUS_UNSET},
         SPANPROF_SPAN_STATUS_OK,
         ""},
        {{SPANPROF_SPAN_STATUS_UNSET, (spanprof_span_status)9, (spanprof_span_status)-1},
         SPANPROF_SPAN_STATUS_UNSET,
         ""},
    };
    for (size_t i = 0; i < SP_ARRAY_LENGTH(cases); i++) {
        spanprof_span span = spanprof_span_start(NULL, "s", NULL);
        spanprof_span_set_status(span, cases[i].calls[0], "0");
        spanprof_span_set_status(span, cases[i].calls[1], "1");
        spanprof_span_set_status(span, cases[i].calls[2], "2");
        spanprof_span_end(span);
        sp_span_data *data = take_one();
        assert_int_equal(data->status, cases[i].status);
        assert_string_equal(data->status_message, cases[i].message);
        sp_span_data_release(data);
    }
}

/* --- dead handles ----------------------------------------------------------------------------- */

static void use_everywhere(spanprof_span span)
{
    spanprof_span_set_string(span, "k", "v");
    spanprof_span_set_int(span, "k", 1);
    spanprof_span_set_double(span, "k", 1.0);
    spanprof_span_set_bool(span, "k", true);
    spanprof_span_set_string_array(span, "k", (const char *const[]){"v"}, 1);
    spanprof_span_set_int_array(span, "k", (const int64_t[]){1}, 1);
    spanprof_span_set_double_array(span, "k", (const double[]){1}, 1);
    spanprof_span_set_bool_array(span, "k", (const bool[]){true}, 1);
    spanprof_span_set_status(span, SPANPROF_SPAN_STATUS_ERROR, "dead");
    spanprof_span_add_event(span, "dead", NULL);
    spanprof_span_add_link(span, &(spanprof_link){.attribute_count = 0});
    spanprof_span_record_error(span, "E", "dead", NULL, NULL);
    spanprof_span_update_name(span, "dead");
    assert_false(spanprof_span_is_recording(span)); /* a question is no misuse */
    spanprof_context context = spanprof_span_context(span);
    assert_memory_equal(&context, zeroes, sizeof context);
    spanprof_scope scope = spanprof_span_attach(span);
    spanprof_context current = spanprof_context_current();
    assert_memory_equal(&current, zeroes, sizeof current);
    spanprof_scope_detach(&scope);
    spanprof_span_end_at(span, 1);
    spanprof_span_end(span);
}

enum { CALLS = 17 };

static void every_call_with_a_dead_handle_is_a_counted_no_op(void **state)
{
    (void)state;
    spanprof_span ended = spanprof_span_start(NULL, "ended", NULL);
    spanprof_span_end(ended);
    spanprof_span live =
        spanprof_span_start(NULL, "live", NULL); /* in another slot: that one is queued */
    const spanprof_span dead[] = {
        {0, 0},
        ended,
        {ended.slot, ended.generation + 1}, /* the lock bit set */
        {ended.slot,
         ended.generation + 2}, /* what its slot holds while it is free, or being filled */
        {ended.slot, ended.generation + 4},     /* its slot's next */
        {ended.slot + 2, ended.generation + 4}, /* that of a neighbour, in case they count alike */
        {ended.slot - 2, ended.generation + 4},
        {live.slot, live.generation + 2}, /* generations to come */
        {live.slot, live.generation + 4},
        {live.slot + 2, live.generation}, /* another slot */
        {live.slot - 2, live.generation},
        {live.slot, 0},
        {live.slot + 1, live.generation}, /* another kind of slot */
        {UINT64_MAX, UINT64_MAX},
        {UINT64_MAX - 1, live.generation},
        {UINT64_C(2) * 1000000, live.generation}, /* far behind the last slot */
        {2 * 1020, 0},                            /* of the first chunk, never carved */
    };
    for (size_t i = 0; i < SP_ARRAY_LENGTH(dead); i++) {
        uint64_t before = counters().misuse_dead_span;
        use_everywhere(dead[i]);
        assert_int_equal(counters().misuse_dead_span - before, CALLS);
    }
    spanprof_span_end(live);
    sp_span_data *data = take_one();
    assert_int_equal(data->attribute_count, 0);
    sp_span_data_release(data);
    data = take_one();
    assert_string_equal(data->name, "live");
    assert_int_equal(data->attribute_count, 0);
    assert_int_equal(data->event_count + data->link_count, 0);
    assert_int_equal(data->status, SPANPROF_SPAN_STATUS_UNSET);
    sp_span_data_release(data);
}

/* Also of slots that are all at their first span, which most of so many are. */
static void generation_of_one_live_span_does_not_fit_another(void **state)
{
    (void)state;
    enum { SPANS = 500 };
    spanprof_span spans[SPANS];
    for (int i = 0; i < SPANS; i++)
        spans[i] = spanprof_span_start(NULL, "s", NULL);
    for (int i = 0; i < SPANS; i++)
        for (int j = 0; j < SPANS; j++) {
            spanprof_span mixed = {spans[i].slot, spans[j].generation};
            assert_int_equal(spanprof_span_is_recording(mixed), i == j);
        }
    for (int i = 0; i < SPANS; i++)
        spanprof_span_end(spans[i]);
    assert_int_equal(release_all(), SPANS);
}

static void handle_of_an_ended_span_does_not_reach_the_next_in_its_slot(void **state)
{
    (void)state;
    spanprof_span first = spanprof_span_start(NULL, "first", NULL);
    spanprof_span_end(first);
    release_all();
    spanprof_span second = spanprof_span_start(NULL, "second", NULL);
    assert_int_equal(second.slot, first.slot); /* else this test tests nothing */
    spanprof_span_set_string(first, "key", "late");
    spanprof_span_end(first);
    assert_int_equal(sp_tracer_queued(), 0);
    spanprof_span_end(second);
    sp_span_data *data = take_one();
    assert_int_equal(data->attribute_count, 0);
    sp_span_data_release(data);
}

static void starting_and_ending_spans_keeps_errno(void **state)
{
    (void)state;
    errno = 4711;
    for (int i = 0; i < 200; i++)
        spanprof_span_end(spanprof_span_start(NULL, "s", NULL));
    assert_int_equal(errno, 4711);
    release_all();
}

/* --- tracers and the block -------------------------------------------------------------------- */

static void tracer_with_the_same_name_and_version_is_the_same(void **state)
{
    (void)state;
    spanprof_tracer *tracer = spanprof_tracer_get("lib", "1");
    assert_non_null(tracer);
    assert_ptr_equal(tracer, spanprof_tracer_get("lib", "1"));
    assert_ptr_not_equal(tracer, spanprof_tracer_get("lib", "2"));
    assert_ptr_not_equal(tracer, spanprof_tracer_get("lib", NULL));
    assert_ptr_equal(spanprof_tracer_get("lib", ""), spanprof_tracer_get("lib", NULL));
    assert_ptr_equal(spanprof_tracer_get("\xff", NULL), spanprof_tracer_get("\xef\xbf\xbd", NULL));
}

static int leave_by_return(void)
{
    SPANPROF_SPAN("return") {
        return 1;
    }
    return 0;
}

static void block_ends_its_span_on_every_way_out(void **state)
{
    (void)state;
    int entered = 0;
    SPANPROF_SPAN("end") {
        spanprof_context current = spanprof_context_current();
        assert_true(is_valid(&current));
        SPANPROF_SPAN("inner")
            entered++;
        entered++;
    }
    for (int i = 0; i < 2; i++)
        SPANPROF_SPAN("break") {
            entered++;
            break;
        }
    for (int i = 0; i < 2; i++)
        SPANPROF_SPAN("continue") {
            entered++;
            continue;
        }
    SPANPROF_SPAN("goto") {
        entered++;
        goto out;
    }
out:
    assert_int_equal(leave_by_return(), 1);
    assert_int_equal(entered, 7);
    spanprof_context current = spanprof_context_current();
    assert_false(is_valid(&current));
    static const char *const names[] = {"inner",    "end",      "break", "break",
                                        "continue", "continue", "goto",  "return"};
    for (size_t i = 0; i < SP_ARRAY_LENGTH(names); i++) {
        sp_span_data *data = take_one();
        assert_string_equal(data->name, names[i]);
        sp_span_data_release(data);
    }
    assert_int_equal(sp_tracer_queued(), 0);
}

/* As stats tell. */
static uint64_t ended_parents(void)
{
    return sp_load_relaxed(&sp_thread_counts.misuse_ended_parent);
}

static void loop_without_detach_is_counted_and_said_once(void **state)
{
    (void)state;
    uint64_t before = ended_parents();
    spanprof_scope forgotten[3];
    for (int i = 0; i < 3; i++) {
        spanprof_span span = spanprof_span_start(NULL, "GET /forgotten", NULL);
        forgotten[i] = spanprof_span_attach(span);
        spanprof_span_end(span);
        sp_span_data_release(take_one());
    }
    assert_int_equal(ended_parents() - before, 2); /* the first has no parent */
    spanprof_scope scope = spanprof_context_attach(NULL);
    spanprof_span_end(spanprof_span_start(NULL, "under no span", NULL));
    sp_span_data_release(take_one());
    assert_int_equal(ended_parents() - before, 2);
    spanprof_scope_detach(&scope);
    for (int i = 3; i-- > 0;)
        spanprof_scope_detach(&forgotten[i]);
}

/* A worker that gets its jobs by context: no span has a parent that the thread knows of. */
static void worker_that_forgets_to_detach_is_counted(void **state)
{
    (void)state;
    uint64_t before = ended_parents();
    spanprof_context none = {0};
    spanprof_span_options root = SPANPROF_SPAN_OPTIONS_INIT;
    root.parent = &none;
    spanprof_scope forgotten[3];
    for (int i = 0; i < 3; i++) {
        spanprof_span span = spanprof_span_start(NULL, "job", &root);
        spanprof_context context = spanprof_span_context(span);
        forgotten[i] = spanprof_context_attach(&context);
        spanprof_span_end(span);
        sp_span_data_release(take_one());
    }
    assert_int_equal(ended_parents() - before, 2);
    for (int i = 3; i-- > 0;)
        spanprof_scope_detach(&forgotten[i]);
}

static void end_before_detach_is_no_misuse(void **state)
{
    (void)state;
    uint64_t before = ended_parents();
    for (int i = 0; i < 3; i++) {
        spanprof_span span = spanprof_span_start(NULL, "fine", NULL);
        spanprof_scope scope = spanprof_context_attach(NULL);
        spanprof_scope inner = spanprof_span_attach(span);
        spanprof_span child = spanprof_span_start(NULL, "child", NULL);
        spanprof_span_end(child);
        spanprof_span_end(span);
        spanprof_scope_detach(&inner);
        spanprof_span_end(spanprof_span_start(NULL, "next", NULL));
        spanprof_scope_detach(&scope);
        for (int n = 0; n < 3; n++)
            sp_span_data_release(take_one());
    }
    assert_int_equal(ended_parents(), before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        traced(span_without_parent_starts_a_sampled_trace),
        traced(span_under_active_context_is_its_child),
        traced(span_with_remote_parent_is_a_local_root),
        traced(span_with_parent_that_names_no_local_root_is_one),
        traced(span_with_zero_parent_ignores_the_active_context),
        traced(span_under_unsampled_parent_has_a_context_and_records_nothing),
        traced(span_ids_are_all_different),
        traced(span_options_are_recorded),
        traced(span_options_of_an_older_version_read_as_zero_behind),
        traced(span_times_are_of_the_day_and_in_order),
        traced(attribute_set_again_replaces_the_value),
        traced(attributes_beyond_the_limit_are_counted),
        traced(null_and_empty_strings_are_taken_as_the_header_says),
        traced(strings_that_are_not_utf8_are_repaired),
        traced(huge_keys_and_values_are_kept_or_dropped_whole),
        traced(name_is_replaced),
        traced(end_given_is_kept_but_not_before_the_start),
        traced(span_is_recording_until_it_ends),
        traced(live_span_with_four_attributes_fits_its_slot),
        traced(live_span_with_two_attributes_and_an_event_fits_its_slot),
        traced(nested_scopes_by_the_ten_thousand_unwind),
        traced(status_ok_is_final_and_unset_ignored),
        traced(every_call_with_a_dead_handle_is_a_counted_no_op),
        traced(generation_of_one_live_span_does_not_fit_another),
        traced(handle_of_an_ended_span_does_not_reach_the_next_in_its_slot),
        traced(starting_and_ending_spans_keeps_errno),
        traced(tracer_with_the_same_name_and_version_is_the_same),
        traced(block_ends_its_span_on_every_way_out),
        traced(end_before_detach_is_no_misuse),
        traced(loop_without_detach_is_counted_and_said_once),
        traced(worker_that_forgets_to_detach_is_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
