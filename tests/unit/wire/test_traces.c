/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "golden/golden_data.h"
#include "wire/unpack.h"
#include "proto/trace_service.pb-c.h"

typedef Sp__Collector__ExportTraceServiceRequest request_message;

static request_message *encode_and_unpack(sp_span_data *const *spans, size_t count)
{
    sp_buffer out = SP_BUFFER_INIT(1 << 20);
    assert_true(sp_otlp_encode_traces(&out, SP_OTLP_PROTOBUF, &golden_resource, spans, count));
    void *request = sp_otlp_unpack(&sp__collector__export_trace_service_request__descriptor,
                                   out.data, out.length);
    assert_non_null(request);
    sp_buffer_deinit(&out);
    return request;
}

static void release(request_message *request)
{
    protobuf_c_message_free_unpacked(&request->base, NULL);
}

static void check_id(ProtobufCBinaryData got, const uint8_t *wanted, size_t count)
{
    assert_int_equal(got.len, count);
    assert_memory_equal(got.data, wanted, count);
}

static void traces_every_field_of_a_span_comes_back(void **state)
{
    (void)state;
    request_message *request = encode_and_unpack(golden_spans, 3);
    assert_int_equal(request->n_resource_spans, 1);
    const Sp__Trace__Span *span = request->resource_spans[0]->scope_spans[0]->spans[0];
    check_id(span->trace_id, golden_root.trace_id, 16);
    check_id(span->span_id, golden_root.span_id, 8);
    check_id(span->parent_span_id, golden_root.parent_span_id, 8);
    assert_string_equal(span->trace_state, "vendor=1");
    assert_string_equal(span->name, "GET /cart");
    assert_int_equal(span->kind, SP__TRACE__SPAN__SPAN_KIND__SPAN_KIND_SERVER);
    assert_true(span->start_time_unix_nano == golden_root.start_time_ns);
    assert_true(span->end_time_unix_nano == golden_root.end_time_ns);
    assert_int_equal(span->flags, 0x301);
    assert_int_equal(span->dropped_attributes_count, 1);
    assert_int_equal(span->dropped_links_count, 3);
    assert_int_equal(span->status->code, SP__TRACE__STATUS__STATUS_CODE__STATUS_CODE_ERROR);
    assert_string_equal(span->status->message, golden_root.status_message);
    release(request);
}

static void traces_attributes_of_every_type_come_back(void **state)
{
    (void)state;
    request_message *request = encode_and_unpack(golden_spans, 1);
    const Sp__Trace__Span *span = request->resource_spans[0]->scope_spans[0]->spans[0];
    assert_int_equal(span->n_attributes, 11);
    Sp__Common__KeyValue **list = span->attributes;
    assert_string_equal(list[0]->key, "http.route");
    assert_string_equal(list[0]->value->string_value, "/cart");
    assert_int_equal(list[1]->value->int_value, 500);
    assert_true(list[2]->value->double_value == 0.1);
    assert_int_equal(list[3]->value->value_case, SP__COMMON__ANY_VALUE__VALUE_BOOL_VALUE);
    assert_false(list[3]->value->bool_value);
    assert_int_equal(list[4]->value->value_case, SP__COMMON__ANY_VALUE__VALUE_STRING_VALUE);
    assert_string_equal(list[4]->value->string_value, "");
    assert_int_equal(list[5]->value->int_value, -1);
    release(request);
}

static void traces_arrays_of_every_type_come_back(void **state)
{
    (void)state;
    request_message *request = encode_and_unpack(golden_spans, 1);
    const Sp__Trace__Span *span = request->resource_spans[0]->scope_spans[0]->spans[0];
    const Sp__Common__ArrayValue *arrays[5];
    for (int i = 0; i < 5; i++) {
        const Sp__Common__AnyValue *value = span->attributes[6 + i]->value;
        assert_int_equal(value->value_case, SP__COMMON__ANY_VALUE__VALUE_ARRAY_VALUE);
        arrays[i] = value->array_value;
    }
    assert_int_equal(arrays[0]->n_values, 3);
    assert_int_equal(arrays[0]->values[1]->value_case, SP__COMMON__ANY_VALUE__VALUE_STRING_VALUE);
    assert_string_equal(arrays[0]->values[1]->string_value, "");
    assert_string_equal(arrays[0]->values[2]->string_value, "\xc3\xa9");
    assert_int_equal(arrays[1]->n_values, 3);
    assert_int_equal(arrays[1]->values[0]->value_case, SP__COMMON__ANY_VALUE__VALUE_INT_VALUE);
    assert_true(arrays[1]->values[2]->int_value == INT64_MAX);
    assert_int_equal(arrays[2]->n_values, 2);
    assert_true(arrays[2]->values[0]->double_value == 0.1);
    assert_int_equal(arrays[3]->n_values, 2);
    assert_int_equal(arrays[3]->values[1]->value_case, SP__COMMON__ANY_VALUE__VALUE_BOOL_VALUE);
    assert_true(arrays[3]->values[0]->bool_value);
    assert_int_equal(arrays[4]->n_values, 0);
    release(request);
}

static void traces_events_come_back(void **state)
{
    (void)state;
    request_message *request = encode_and_unpack(golden_spans, 1);
    const Sp__Trace__Span *span = request->resource_spans[0]->scope_spans[0]->spans[0];
    assert_int_equal(span->dropped_events_count, 6);
    assert_int_equal(span->n_events, 2);
    const Sp__Trace__Span__Event *event = span->events[0];
    assert_true(event->time_unix_nano == golden_events[0].time_ns);
    assert_string_equal(event->name, "exception");
    assert_int_equal(event->dropped_attributes_count, 5);
    assert_int_equal(event->n_attributes, 2);
    assert_string_equal(event->attributes[0]->value->string_value, "ENOENT");
    assert_int_equal(event->attributes[1]->value->array_value->n_values, 1);
    assert_string_equal(span->events[1]->name, "");
    assert_int_equal(span->events[1]->n_attributes, 0);
    release(request);
}

static void traces_scope_has_its_attributes_and_schema(void **state)
{
    (void)state;
    request_message *request = encode_and_unpack(golden_spans, 2);
    const Sp__Trace__ScopeSpans *group = request->resource_spans[0]->scope_spans[0];
    assert_string_equal(group->schema_url, golden_http.schema_url);
    assert_int_equal(group->scope->n_attributes, 1);
    assert_string_equal(group->scope->attributes[0]->key, "team");
    assert_int_equal(group->scope->dropped_attributes_count, 4);
    group = request->resource_spans[0]->scope_spans[1];
    assert_string_equal(group->schema_url, "");
    assert_int_equal(group->scope->n_attributes, 0);
    release(request);
}

static void traces_links_come_back(void **state)
{
    (void)state;
    request_message *request = encode_and_unpack(golden_spans, 1);
    const Sp__Trace__Span *span = request->resource_spans[0]->scope_spans[0]->spans[0];
    assert_int_equal(span->n_links, 1);
    const Sp__Trace__Span__Link *link = span->links[0];
    check_id(link->trace_id, golden_links[0].trace_id, 16);
    check_id(link->span_id, golden_links[0].span_id, 8);
    assert_string_equal(link->trace_state, "queue=2");
    assert_int_equal(link->flags, 0x101);
    assert_int_equal(link->dropped_attributes_count, 2);
    assert_string_equal(link->attributes[0]->key, "why");
    release(request);
}

static void traces_resource_and_schema_are_inline(void **state)
{
    (void)state;
    request_message *request = encode_and_unpack(golden_spans, 1);
    const Sp__Trace__ResourceSpans *only = request->resource_spans[0];
    assert_string_equal(only->schema_url, "https://opentelemetry.io/schemas/1.44.0");
    assert_int_equal(only->resource->n_attributes, 2);
    assert_string_equal(only->resource->attributes[0]->key, "service.name");
    assert_int_equal(only->resource->attributes[0]->key_strindex, 0);
    assert_string_equal(only->resource->attributes[0]->value->string_value, "shop");
    assert_int_equal(only->resource->attributes[1]->value->int_value, 4242);
    release(request);
}

/* What OTLP calls invalid or default is left out: no parent of zeros, no status that says nothing.
 */
static void traces_root_span_without_status_has_neither(void **state)
{
    (void)state;
    sp_span_data span = golden_second_root;
    sp_span_data *list[] = {&span};
    span.status = SPANPROF_SPAN_STATUS_UNSET;
    request_message *request = encode_and_unpack(list, 1);
    const Sp__Trace__Span *got = request->resource_spans[0]->scope_spans[0]->spans[0];
    assert_int_equal(got->parent_span_id.len, 0);
    assert_null(got->status);
    release(request);
}

static void traces_kinds_are_one_more_than_ours(void **state)
{
    (void)state;
    for (int kind = SPANPROF_SPAN_KIND_INTERNAL; kind <= SPANPROF_SPAN_KIND_CONSUMER; kind++) {
        sp_span_data span = golden_child;
        sp_span_data *list[] = {&span};
        span.kind = (spanprof_span_kind)kind;
        request_message *request = encode_and_unpack(list, 1);
        const Sp__Trace__Span *got = request->resource_spans[0]->scope_spans[0]->spans[0];
        assert_int_equal(got->kind, kind + 1);
        release(request);
    }
}

enum { SCOPES = 20, SPANS = 200 };

/* Span i has scope i * 7 mod 20 (each scope ten times, never twice in a row) and start time i. */
static void traces_interleaved_scopes_are_grouped_in_order(void **state)
{
    (void)state;
    sp_instrumentation_scope scopes[SCOPES];
    sp_span_data spans[SPANS], *list[SPANS];
    for (int i = 0; i < SCOPES; i++)
        scopes[i] = (sp_instrumentation_scope){.name = "s", .version = "1", .schema_url = ""};
    for (int i = 0; i < SPANS; i++) {
        spans[i] = golden_child;
        spans[i].scope = &scopes[i * 7 % SCOPES];
        spans[i].start_time_ns = (uint64_t)i;
        list[i] = &spans[i];
    }
    request_message *request = encode_and_unpack(list, SPANS);
    const Sp__Trace__ResourceSpans *only = request->resource_spans[0];
    assert_int_equal(only->n_scope_spans, SCOPES);
    for (size_t g = 0; g < SCOPES; g++) {
        const Sp__Trace__ScopeSpans *group = only->scope_spans[g];
        assert_int_equal(group->n_spans, SPANS / SCOPES);
        for (size_t i = 0; i < group->n_spans; i++)
            assert_int_equal(group->spans[i]->start_time_unix_nano, g + i * SCOPES);
    }
    release(request);
}

static void traces_span_without_scope_gets_a_group_without_scope(void **state)
{
    (void)state;
    sp_span_data span = golden_child;
    sp_span_data *list[] = {&span, &golden_root};
    span.scope = NULL;
    request_message *request = encode_and_unpack(list, 2);
    const Sp__Trace__ResourceSpans *only = request->resource_spans[0];
    assert_int_equal(only->n_scope_spans, 2);
    assert_null(only->scope_spans[0]->scope);
    assert_string_equal(only->scope_spans[0]->spans[0]->name, "select");
    assert_string_equal(only->scope_spans[1]->scope->name, "http");
    release(request);
}

static void traces_no_spans_give_the_empty_request(void **state)
{
    (void)state;
    sp_buffer out = SP_BUFFER_INIT(100);
    assert_true(sp_otlp_encode_traces(&out, SP_OTLP_PROTOBUF, &golden_resource, NULL, 0));
    assert_int_equal(out.length, 0);
    assert_true(sp_otlp_encode_traces(&out, SP_OTLP_JSON, &golden_resource, NULL, 0));
    assert_string_equal((const char *)out.data, "{}");
    sp_buffer_deinit(&out);
}

static void check_too_small(sp_otlp_format format)
{
    sp_buffer whole = SP_BUFFER_INIT(1 << 20);
    assert_true(sp_otlp_encode_traces(&whole, format, &golden_resource, golden_spans, 3));
    for (size_t maximum = 1; maximum <= whole.length; maximum++) {
        sp_buffer out = SP_BUFFER_INIT(maximum);
        sp_buffer_add_char(&out, '>');
        assert_false(sp_otlp_encode_traces(&out, format, &golden_resource, golden_spans, 3));
        assert_true(out.failed);
        assert_int_equal(out.length, 1);
        assert_string_equal((const char *)out.data, ">");
        sp_buffer_deinit(&out);
    }
    sp_buffer_deinit(&whole);
}

static void traces_buffer_too_small_appends_nothing(void **state)
{
    (void)state;
    check_too_small(SP_OTLP_PROTOBUF);
    check_too_small(SP_OTLP_JSON);
}

static void traces_request_is_appended_behind_what_was_there(void **state)
{
    (void)state;
    sp_buffer out = SP_BUFFER_INIT(1 << 20), alone = SP_BUFFER_INIT(1 << 20);
    sp_buffer_add_string(&out, "before");
    assert_true(sp_otlp_encode_traces(&out, SP_OTLP_PROTOBUF, &golden_resource, golden_spans, 3));
    assert_true(sp_otlp_encode_traces(&alone, SP_OTLP_PROTOBUF, &golden_resource, golden_spans, 3));
    assert_int_equal(out.length, 6 + alone.length);
    assert_memory_equal(out.data, "before", 6);
    assert_memory_equal(out.data + 6, alone.data, alone.length);
    sp_buffer_deinit(&out);
    sp_buffer_deinit(&alone);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(traces_every_field_of_a_span_comes_back),
        cmocka_unit_test(traces_attributes_of_every_type_come_back),
        cmocka_unit_test(traces_arrays_of_every_type_come_back),
        cmocka_unit_test(traces_events_come_back),
        cmocka_unit_test(traces_scope_has_its_attributes_and_schema),
        cmocka_unit_test(traces_links_come_back),
        cmocka_unit_test(traces_resource_and_schema_are_inline),
        cmocka_unit_test(traces_root_span_without_status_has_neither),
        cmocka_unit_test(traces_kinds_are_one_more_than_ours),
        cmocka_unit_test(traces_interleaved_scopes_are_grouped_in_order),
        cmocka_unit_test(traces_span_without_scope_gets_a_group_without_scope),
        cmocka_unit_test(traces_no_spans_give_the_empty_request),
        cmocka_unit_test(traces_buffer_too_small_appends_nothing),
        cmocka_unit_test(traces_request_is_appended_behind_what_was_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
