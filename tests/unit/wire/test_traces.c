/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "golden/golden_data.h"
#include "wire/traces.h"
#include "wire/unpack.h"

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

/* ---- bytes, compared with those of protobuf-c ---- */

enum { ANY_SPANS = 40, ANY_LIST = 5 };

typedef struct any_spans {
    uint64_t state;
    spanprof_attribute attributes[64];
    sp_span_event events[ANY_LIST];
    sp_span_link links[ANY_LIST];
    sp_instrumentation_scope scopes[3];
    sp_span_data data[ANY_SPANS];
    sp_span_data *spans[ANY_SPANS];
} any_spans;

static const char *const any_texts[] = {"", "GET /cart", "a longer text than the others are"};
static const char *const any_strings[] = {"", "x", "longer"};
static const int64_t any_ints[] = {0, -1, INT64_MAX};
static const double any_doubles[] = {0, -0.5, 1e300};
static const bool any_bools[] = {false, true, true};

/* xorshift64 */
static uint64_t any_bits(any_spans *any)
{
    any->state ^= any->state << 13;
    any->state ^= any->state >> 7;
    any->state ^= any->state << 17;
    return any->state;
}

static uint32_t any_below(any_spans *any, uint32_t limit)
{
    return (uint32_t)(any_bits(any) % limit);
}

/* Of any length in bits, 0 among them. */
static uint64_t any_number(any_spans *any)
{
    unsigned bits = any_below(any, 65);
    return bits ? any_bits(any) >> (64 - bits) : 0;
}

static const char *any_text(any_spans *any)
{
    return any_texts[any_below(any, 3)];
}

static spanprof_attribute any_attribute(any_spans *any)
{
    spanprof_attribute made = {.key = any_text(any), .type = any_below(any, 8)};
    made.count = any_below(any, 4);
    switch (made.type) {
    case SPANPROF_ATTRIBUTE_STRING:
        made.value.string_value = any_text(any);
        break;
    case SPANPROF_ATTRIBUTE_INT:
        made.value.int_value = (int64_t)any_number(any);
        break;
    case SPANPROF_ATTRIBUTE_DOUBLE:
        made.value.double_value = any_doubles[any_below(any, 3)];
        break;
    case SPANPROF_ATTRIBUTE_BOOL:
        made.value.bool_value = any_below(any, 2);
        break;
    case SPANPROF_ATTRIBUTE_STRING_ARRAY:
        made.value.string_array = any_strings;
        break;
    case SPANPROF_ATTRIBUTE_INT_ARRAY:
        made.value.int_array = any_ints;
        break;
    case SPANPROF_ATTRIBUTE_DOUBLE_ARRAY:
        made.value.double_array = any_doubles;
        break;
    default:
        made.type = SPANPROF_ATTRIBUTE_BOOL_ARRAY;
        made.value.bool_array = any_bools;
    }
    if (made.count > 3)
        made.count = 3;
    return made;
}

static void any_id(any_spans *any, uint8_t *id, size_t count)
{
    memset(id, any_below(any, 3) ? (int)any_below(any, 256) : 0, count);
}

static const spanprof_attribute *any_attributes(any_spans *any, uint32_t *count)
{
    *count = any_below(any, 9);
    return any->attributes + any_below(any, 50);
}

static void make_any_span(any_spans *any, sp_span_data *span)
{
    *span = (sp_span_data){.flags = (uint32_t)any_number(any),
                           .kind = (uint8_t)any_below(any, 5),
                           .status = (uint8_t)any_below(any, 3),
                           .link_count = any_below(any, ANY_LIST),
                           .event_count = any_below(any, ANY_LIST),
                           .dropped_attributes_count = (uint32_t)any_number(any),
                           .dropped_links_count = (uint32_t)any_number(any),
                           .dropped_events_count = (uint32_t)any_number(any),
                           .start_time_ns = any_number(any),
                           .end_time_ns = any_number(any),
                           .name = any_text(any),
                           .trace_state = any_text(any),
                           .status_message = any_text(any),
                           .links = any->links,
                           .events = any->events};
    span->scope = any_below(any, 4) ? &any->scopes[any_below(any, 3)] : NULL;
    span->attributes = any_attributes(any, &span->attribute_count);
    any_id(any, span->trace_id, sizeof span->trace_id);
    any_id(any, span->span_id, sizeof span->span_id);
    any_id(any, span->parent_span_id, sizeof span->parent_span_id);
}

static void make_any_list_entry(any_spans *any, uint32_t i)
{
    sp_span_event *event = &any->events[i];
    sp_span_link *link = &any->links[i];
    *event = (sp_span_event){.time_ns = any_number(any),
                             .name = any_text(any),
                             .dropped_attributes_count = (uint32_t)any_number(any)};
    event->attributes = any_attributes(any, &event->attribute_count);
    *link = (sp_span_link){.flags = (uint32_t)any_number(any),
                           .trace_state = any_text(any),
                           .dropped_attributes_count = (uint32_t)any_number(any)};
    link->attributes = any_attributes(any, &link->attribute_count);
    any_id(any, link->trace_id, sizeof link->trace_id);
    any_id(any, link->span_id, sizeof link->span_id);
}

static void make_any_spans(any_spans *any, uint64_t seed)
{
    any->state = seed;
    for (uint32_t i = 0; i < 64; i++)
        any->attributes[i] = any_attribute(any);
    for (uint32_t i = 0; i < ANY_LIST; i++)
        make_any_list_entry(any, i);
    for (uint32_t i = 0; i < 3; i++) {
        sp_instrumentation_scope *scope = &any->scopes[i];
        *scope = (sp_instrumentation_scope){
            .name = any_text(any), .version = any_text(any), .schema_url = any_text(any)};
        scope->attributes = any_attributes(any, &scope->attribute_count);
    }
    for (uint32_t i = 0; i < ANY_SPANS; i++) {
        make_any_span(any, &any->data[i]);
        any->spans[i] = &any->data[i];
    }
}

static void assert_as_protobuf_c_writes_it(sp_span_data *const *spans, size_t count)
{
    sp_arena arena = {0};
    request_message request = SP__COLLECTOR__EXPORT_TRACE_SERVICE_REQUEST__INIT;
    sp_buffer wanted = SP_BUFFER_INIT(1 << 22), got = SP_BUFFER_INIT(1 << 22);
    assert_true(sp_otlp_traces_tree(&arena, &request, &golden_resource, spans, count));
    assert_true(sp_otlp_append(&wanted, SP_OTLP_PROTOBUF, &request.base));
    assert_true(sp_otlp_encode_traces(&got, SP_OTLP_PROTOBUF, &golden_resource, spans, count));
    assert_int_equal(got.length, wanted.length);
    if (got.length)
        assert_memory_equal(got.data, wanted.data, wanted.length);
    sp_buffer_deinit(&wanted);
    sp_buffer_deinit(&got);
    sp_arena_deinit(&arena);
}

static void traces_bytes_are_those_of_protobuf_c(void **state)
{
    (void)state;
    any_spans *any = calloc(1, sizeof *any);
    assert_non_null(any);
    assert_as_protobuf_c_writes_it(golden_spans, 3);
    for (uint64_t seed = 1; seed <= 500; seed++) {
        make_any_spans(any, seed);
        assert_as_protobuf_c_writes_it(any->spans, any_below(any, ANY_SPANS + 1));
    }
    free(any);
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
        cmocka_unit_test(traces_bytes_are_those_of_protobuf_c),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
