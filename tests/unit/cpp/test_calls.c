/* SPDX-License-Identifier: Apache-2.0 */
/* spanprof.hpp: what C++ calls export is what the same calls in C export, and neither it nor
 * operator new allocates more. */
#include "unit/trace/support.h"

#include <stdlib.h>

#include <spanprof/spanprof.h>
#include "failing_memory.h"
#include "unit/cpp/calls.h"

const char calls_traceparent[56] = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
char calls_long_text[3001];

/* They are counted; none fails. */
static unsigned allocations;

static bool allocation_fails(void)
{
    allocations++;
    return false;
}

/* --- the calls in C --------------------------------------------------------------------------- */

static spanprof_span start(const char *name)
{
    return spanprof_span_start(NULL, name, NULL);
}

static spanprof_context remote(void)
{
    spanprof_context context;
    assert_true(spanprof_context_extract(&context, calls_traceparent, NULL));
    return context;
}

static spanprof_attribute int_attribute(const char *key, int64_t value)
{
    return (spanprof_attribute){
        .key = key, .type = SPANPROF_ATTRIBUTE_INT, .value = {.int_value = value}};
}

static spanprof_attribute string_attribute(const char *key, const char *value)
{
    return (spanprof_attribute){.key = key, .value = {.string_value = value}};
}

static spanprof_event_options event_options(const spanprof_attribute *attributes, uint32_t count,
                                            uint64_t time_ns)
{
    return (spanprof_event_options){.struct_size = sizeof(spanprof_event_options),
                                    .attributes = attributes,
                                    .attribute_count = count,
                                    .time_ns = time_ns};
}

static void c_start_with_options(void)
{
    spanprof_context parent = remote();
    spanprof_attribute attributes[] = {int_attribute("one", 1), string_attribute("two", "2")};
    spanprof_span_options options = {.struct_size = sizeof options,
                                     .kind = SPANPROF_SPAN_KIND_SERVER,
                                     .parent = &parent,
                                     .start_time_ns = 1000,
                                     .attributes = attributes,
                                     .attribute_count = 2};
    spanprof_span_end_at(spanprof_span_start(NULL, "root", &options), 2000);
}

static void c_attributes(void)
{
    spanprof_span span = start("attributes");
    spanprof_span_set_bool(span, "true", true);
    spanprof_span_set_int(span, "char", -7);
    spanprof_span_set_int(span, "int", 42);
    spanprof_span_set_int(span, "unsigned", 4000000000);
    spanprof_span_set_int(span, "long", INT64_MIN);
    spanprof_span_set_int(span, "too large", INT64_MAX);
    spanprof_span_set_double(span, "float", 0.5);
    spanprof_span_set_double(span, "double", -1e300);
    spanprof_span_set_string(span, "literal", "text");
    spanprof_span_set_string(span, "empty", "");
    spanprof_span_set_int(span, "int", 43);
    spanprof_span_end(span);
}

static void c_views(void)
{
    spanprof_span span = start("GET /car");
    spanprof_span_set_string(span, "http.method", "GET");
    spanprof_span_set_string(span, "empty view", "");
    spanprof_span_set_string(span, "nul within", "one");
    spanprof_span_set_status(span, SPANPROF_SPAN_STATUS_ERROR, "ET");
    spanprof_span_end(span);
}

static void c_long_texts(void)
{
    char cut[1024] = {0};
    memcpy(cut, calls_long_text, 1022);
    spanprof_span span = start("s");
    spanprof_span_set_string(span, "value", calls_long_text);
    spanprof_span_set_string(span, "value from C", calls_long_text);
    spanprof_span_set_int(span, cut, 1);
    spanprof_span_update_name(span, cut);
    spanprof_span_add_event(span, cut, NULL);
    spanprof_span_add_event(span, calls_long_text, NULL);
    spanprof_span_end(span);
}

static void c_arrays(void)
{
    spanprof_span span = start("arrays");
    spanprof_span_set_int_array(span, "ints", (const int64_t[]){INT64_MIN, 0, INT64_MAX}, 3);
    spanprof_span_set_double_array(span, "doubles", (const double[]){0.5, -1}, 2);
    spanprof_span_set_bool_array(span, "bools", (const bool[]){true, false}, 2);
    spanprof_span_set_string_array(span, "strings", (const char *const[]){"one", "two"}, 2);
    spanprof_span_set_int_array(span, "list", (const int64_t[]){1, 2}, 2);
    spanprof_span_set_double_array(span, "none", NULL, 0);
    spanprof_span_end(span);
}

static void c_events(void)
{
    spanprof_span span = start("events");
    spanprof_attribute attributes[] = {
        {.key = "key", .type = SPANPROF_ATTRIBUTE_BOOL, .value = {.bool_value = true}},
        string_attribute("view", "abc"),
        {.key = "key", .type = SPANPROF_ATTRIBUTE_DOUBLE, .value = {.double_value = 2.5}}};
    spanprof_attribute one = int_attribute("key", 1);
    spanprof_attribute range[] = {string_attribute("a", "x"), string_attribute("b", "y")};
    spanprof_event_options at = event_options(NULL, 0, 12345), of_one = event_options(&one, 1, 0),
                           of_three = event_options(attributes, 3, 54321),
                           of_range = event_options(range, 2, 0);
    spanprof_span_add_event(span, "plain", NULL);
    spanprof_span_add_event(span, "at", &at);
    spanprof_span_add_event(span, "one", &of_one);
    spanprof_span_add_event(span, "three", &of_three);
    spanprof_span_add_event(span, "range", &of_range);
    spanprof_span_end(span);
}

static void c_links(void)
{
    spanprof_context to = remote(), none = {0};
    spanprof_attribute why = string_attribute("why", "because");
    spanprof_link links[] = {{.context = &to},
                             {.context = &to, .attributes = &why, .attribute_count = 1},
                             {.context = &none}};
    spanprof_span_options options = {
        .struct_size = sizeof options, .links = links, .link_count = 1};
    spanprof_span span = spanprof_span_start(NULL, "links", &options);
    for (int i = 0; i < 3; i++)
        spanprof_span_add_link(span, &links[i]);
    spanprof_span_end(span);
}

static void c_status_and_name(void)
{
    spanprof_span span = start("before"), ok = start("ok");
    spanprof_span_set_status(span, SPANPROF_SPAN_STATUS_ERROR, "bad");
    spanprof_span_update_name(span, "after");
    spanprof_span_set_status(ok, SPANPROF_SPAN_STATUS_OK, NULL);
    spanprof_span_end(ok);
    spanprof_span_end(span);
}

static void c_errors(void)
{
    spanprof_span span = start("errors");
    spanprof_attribute key = int_attribute("key", 1);
    spanprof_event_options options = event_options(&key, 1, 0);
    spanprof_span_record_error(span, "std::runtime_error", "standard", NULL, NULL);
    spanprof_span_record_error(span, "app::error", "own", NULL, &options);
    spanprof_span_record_error(span, "(anonymous namespace)::hidden", "not to be named", NULL,
                               NULL);
    spanprof_span_record_error(span, "N3app3oddIiEE", NULL, NULL, NULL); /* as it is mangled */
    spanprof_span_record_error(span, "ENOENT", "no such file", NULL, NULL);
    spanprof_span_end(span);
}

static void c_scopes(void)
{
    spanprof_span root = start("root");
    spanprof_scope of_root = spanprof_span_attach(root);
    spanprof_span_set_int(root, "key", 1);
    spanprof_span child = start("child");
    spanprof_scope of_child = spanprof_span_attach(child);
    spanprof_scope none = spanprof_context_attach(NULL);
    spanprof_span_end(start("orphan"));
    spanprof_scope_detach(&none);
    spanprof_scope_detach(&of_child);
    spanprof_span_end(child);
    spanprof_span_end(start("sibling"));
    spanprof_scope_detach(&of_root);
    spanprof_span_end(root);
}

static void c_contexts(void)
{
    spanprof_span parent = start("parent");
    spanprof_context carried = spanprof_span_context(parent);
    spanprof_scope scope = spanprof_context_attach(&carried);
    spanprof_span child = start("child");
    spanprof_scope_detach(&scope);
    spanprof_span_end(start("other"));
    spanprof_span_end(child);
    spanprof_span_end(parent);
}

static void c_instrumentation(void)
{
    spanprof_attribute attribute = string_attribute("key", "value");
    spanprof_tracer_options options = {.struct_size = sizeof options,
                                       .name = "library",
                                       .version = "1.2",
                                       .schema_url = "https://schema",
                                       .attributes = &attribute,
                                       .attribute_count = 1};
    spanprof_tracer *plain = spanprof_tracer_get_with(&(spanprof_tracer_options){
        .struct_size = sizeof options, .name = "library", .version = "1.2"});
    spanprof_tracer *full = spanprof_tracer_get_with(&options);
    spanprof_span_end(spanprof_span_start(plain, "plain", NULL));
    spanprof_span in_full = spanprof_span_start(full, "full", NULL);
    spanprof_scope scope = spanprof_span_attach(in_full);
    spanprof_span_end(start("default"));
    spanprof_scope_detach(&scope);
    spanprof_span_end(in_full);
}

/* --- what is exported ------------------------------------------------------------------------- */

static void compare_array(const spanprof_attribute *a, const spanprof_attribute *b)
{
    assert_int_equal(a->count, b->count);
    for (uint32_t i = 0; i < a->count; i++)
        switch (a->type) {
        case SPANPROF_ATTRIBUTE_STRING_ARRAY:
            assert_string_equal(a->value.string_array[i], b->value.string_array[i]);
            break;
        case SPANPROF_ATTRIBUTE_BOOL_ARRAY:
            assert_int_equal(a->value.bool_array[i], b->value.bool_array[i]);
            break;
        case SPANPROF_ATTRIBUTE_DOUBLE_ARRAY:
            assert_true(a->value.double_array[i] == b->value.double_array[i]);
            break;
        default:
            assert_true(a->value.int_array[i] == b->value.int_array[i]);
        }
}

static void compare_attributes(const spanprof_attribute *a, uint32_t count,
                               const spanprof_attribute *b, uint32_t count_b)
{
    assert_int_equal(count, count_b);
    for (uint32_t i = 0; i < count; i++) {
        assert_string_equal(a[i].key, b[i].key);
        assert_int_equal(a[i].type, b[i].type);
        if (a[i].type == SPANPROF_ATTRIBUTE_STRING)
            assert_string_equal(a[i].value.string_value, b[i].value.string_value);
        else if (a[i].type == SPANPROF_ATTRIBUTE_BOOL)
            assert_int_equal(a[i].value.bool_value, b[i].value.bool_value);
        else if (a[i].type == SPANPROF_ATTRIBUTE_INT || a[i].type == SPANPROF_ATTRIBUTE_DOUBLE)
            assert_true(a[i].value.int_value == b[i].value.int_value); /* the bits */
        else
            compare_array(&a[i], &b[i]);
    }
}

static bool is_given_time(uint64_t time_ns)
{
    return time_ns < SP_NS_PER_S;
}

static void compare_times(uint64_t a, uint64_t b)
{
    assert_int_equal(is_given_time(a), is_given_time(b));
    if (is_given_time(a))
        assert_int_equal(a, b);
}

/* All but ids and the times of clocks. The scopes of instrumentation are the same ones. */
static void compare_spans(const sp_span_data *a, const sp_span_data *b)
{
    assert_string_equal(a->name, b->name);
    assert_int_equal(a->kind, b->kind);
    assert_int_equal(a->flags, b->flags);
    assert_int_equal(a->status, b->status);
    assert_string_equal(a->status_message, b->status_message);
    assert_ptr_equal(a->scope, b->scope);
    compare_times(a->start_time_ns, b->start_time_ns);
    compare_times(a->end_time_ns, b->end_time_ns);
    compare_attributes(a->attributes, a->attribute_count, b->attributes, b->attribute_count);
    assert_int_equal(a->dropped_something, b->dropped_something);
    assert_int_equal(a->event_count, b->event_count);
    for (uint32_t i = 0; i < a->event_count; i++) {
        assert_string_equal(a->events[i].name, b->events[i].name);
        compare_times(a->events[i].time_ns, b->events[i].time_ns);
        compare_attributes(a->events[i].attributes, a->events[i].attribute_count,
                           b->events[i].attributes, b->events[i].attribute_count);
    }
    assert_int_equal(a->link_count, b->link_count);
    for (uint32_t i = 0; i < a->link_count; i++) {
        assert_memory_equal(a->links[i].span_id, b->links[i].span_id, 8);
        assert_int_equal(a->links[i].flags, b->links[i].flags);
        compare_attributes(a->links[i].attributes, a->links[i].attribute_count,
                           b->links[i].attributes, b->links[i].attribute_count);
    }
}

/* Which of SPANS is the parent of SPANS[I]; -1: none of them. */
static int parent_of(sp_span_data *const *spans, size_t count, size_t i)
{
    for (size_t j = 0; j < count; j++)
        if (memcmp(spans[j]->span_id, spans[i]->parent_span_id, 8) == 0)
            return (int)j;
    return -1;
}

enum { SPANS_MAX = 16 };

static size_t run(void (*calls)(void), sp_span_data **spans, unsigned *allocated)
{
    unsigned before = allocations, news_before = cpp_news();
    calls();
    *allocated = allocations - before;
    assert_int_equal(cpp_news(), news_before);
    return sp_tracer_take(spans, SPANS_MAX);
}

static void compare_calls(const char *name, void (*c)(void), void (*cpp)(void))
{
    sp_span_data *of_c[SPANS_MAX], *of_cpp[SPANS_MAX];
    unsigned c_allocated, cpp_allocated;
    print_message("%s\n", name);
    c(); /* tracers, caches, and the exceptions that are recorded are made once */
    cpp();
    release_all();
    size_t count = run(c, of_c, &c_allocated);
    assert_int_equal(run(cpp, of_cpp, &cpp_allocated), count);
    assert_true(count > 0);
    for (size_t i = 0; i < count; i++) {
        compare_spans(of_c[i], of_cpp[i]);
        assert_int_equal(parent_of(of_c, count, i), parent_of(of_cpp, count, i));
    }
    assert_int_equal(c_allocated, cpp_allocated);
    for (size_t i = 0; i < count; i++) {
        sp_span_data_release(of_c[i]);
        sp_span_data_release(of_cpp[i]);
    }
}

static void calls_export_what_they_export_in_c(void **state)
{
    (void)state;
    memset(calls_long_text, 'x', 2);
    for (size_t i = 2; i + 1 < sizeof calls_long_text; i++)
        calls_long_text[i] = i % 2 ? '\xa9' : '\xc3';
#define COMPARE(name) compare_calls(#name, c_##name, cpp_##name);
    CALLS(COMPARE)
#undef COMPARE
}

/* --- what C has no double for ----------------------------------------------------------------- */

static void assert_right(const char *problem)
{
    if (problem)
        fail_msg("%s", problem);
    release_all();
}

static void moved_spans_end_once(void **state)
{
    (void)state;
    assert_right(cpp_moved_spans_end_once());
}

static void spans_end_when_something_is_thrown(void **state)
{
    (void)state;
    assert_right(cpp_spans_end_when_something_is_thrown());
}

static void scopes_end_in_any_order(void **state)
{
    (void)state;
    assert_right(cpp_scopes_end_in_any_order());
}

static void headers_and_baggage_travel(void **state)
{
    (void)state;
    assert_right(cpp_headers_and_baggage_travel());
}

static void function_carries_the_context_where_it_was_made(void **state)
{
    (void)state;
    assert_right(cpp_functions_carry_the_context_where_they_were_made());
}

static void fiber_has_scopes_of_its_own(void **state)
{
    (void)state;
    assert_right(cpp_fibers_have_scopes_of_their_own());
}

static void nothing_is_misused(void **state)
{
    (void)state;
    assert_right(cpp_nothing_is_misused());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        traced(calls_export_what_they_export_in_c),
        traced(moved_spans_end_once),
        traced(spans_end_when_something_is_thrown),
        traced(scopes_end_in_any_order),
        traced(headers_and_baggage_travel),
        traced(function_carries_the_context_where_it_was_made),
        traced(fiber_has_scopes_of_its_own),
        traced(nothing_is_misused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
