/* SPDX-License-Identifier: Apache-2.0 */
/* W3C tracestate: a table of edge cases, limits, several headers, and its way through spans to what
 * is exported. */
#include "unit/trace/support.h"

#include "trace/carrier.h"
#include "trace/propagators.h"
#include "unit/trace/headers.h"

#define VALID "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

/* What comes out for TRACESTATE; NULL for no header. */
static char *through(const char *tracestate)
{
    spanprof_context context;
    assert_true(spanprof_context_extract(&context, VALID, tracestate));
    assert_int_equal(context.remote, 1);
    return injected(&context, "tracestate");
}

static void assert_through(const char *in, const char *out)
{
    char *got = through(in);
    if (!out != !got || (out && strcmp(out, got) != 0))
        fail_msg("\"%s\" gives \"%s\" and not \"%s\"", in, got ? got : "nothing", out);
    free(got);
}

static void trace_state_follows_the_table_of_edge_cases(void **state)
{
    (void)state;
    static const struct {
        const char *in, *out; /* NULL: dropped */
    } cases[] = {
        {"foo=1", "foo=1"},
        {"foo=1,bar=2", "foo=1,bar=2"},
        {"", NULL},
        {" \t ", NULL},
        {",", NULL},
        {",,foo=1,, ,bar=2,", "foo=1,bar=2"}, /* empty members */
        {"foo=1 \t , \t bar=2, \t baz=3", "foo=1,bar=2,baz=3"},
        {"\t foo=1 \t", "foo=1"},
        {"foo=  1", "foo=  1"}, /* leading blanks belong to the value, trailing ones do not */
        {"foo=1 2", "foo=1 2"},
        {"foo=\t1", NULL},
        {"foo= ", NULL},
        {"foo=", NULL},
        {"foo=,bar=3", NULL},
        {"foo", NULL},
        {"=1", NULL},
        {"foo=1,=2", NULL},
        {"foo=bar=baz", NULL},
        {"foo=1,bar", NULL}, /* one bad member drops all */
        {"foo =1", NULL},
        {"foo\t=1", NULL},
        {"FOO=1", NULL},
        {"fOO=1", NULL},
        {"foo.bar=1", NULL},
        {"0foo=1", "0foo=1"},
        {"_foo=1", NULL},
        {"-foo=1", NULL},
        {"@foo=1,bar=2", NULL},
        {"foo@=1,bar=2", "foo@=1,bar=2"}, /* the grammar of 2026 */
        {"foo@@bar=1,bar=2", "foo@@bar=1,bar=2"},
        {"foo@bar@baz=1,bar=2", "foo@bar@baz=1,bar=2"},
        {"a-b_c*d/e@f=1", "a-b_c*d/e@f=1"},
        {"foo=1,foo=1", "foo=1,foo=1"}, /* duplicates are handed on */
        {"foo=1,foo=2", "foo=1,foo=2"},
        {"foo=\x7f", NULL},
        {"foo=\x1f", NULL},
        {"foo=\xc3\xa9", NULL},
        {"foo=!~", "foo=!~"},
        {"foo=a;b\"c\\d", "foo=a;b\"c\\d"},
        {"f\xc3\xa9=1", NULL},
        {"foo=1;bar=2", NULL}, /* a second equals sign */
        {"foo=1\nbar=2", NULL},
    };
    for (size_t i = 0; i < SP_ARRAY_LENGTH(cases); i++)
        assert_through(cases[i].in, cases[i].out);
}

static void every_character_is_taken_where_the_grammar_has_it(void **state)
{
    (void)state;
    for (int c = 1; c < 256; c++) {
        if (c == ',')
            continue;
        char first[] = "x=1", later[] = "ax=1", value[] = "a=x1";
        first[0] = later[1] = value[2] = (char)c;
        bool begin = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
        bool blank = c == ' ' || c == '\t';
        bool in_key = begin || (c < 128 && strchr("_-*/@", c));
        bool in_value = c >= 0x20 && c <= 0x7e && c != '=';
        assert_through(first, begin ? first : NULL);
        if (!blank && c != '=')
            assert_through(later, in_key ? later : NULL);
        assert_through(value, in_value ? value : NULL);
    }
}

static char *member_text(char *at, size_t key, size_t value)
{
    memset(at, 'k', key);
    at[key] = '=';
    memset(at + key + 1, 'v', value);
    at[key + 1 + value] = 0;
    return at + key + 1 + value;
}

static void keys_and_values_have_256_characters_at_most(void **state)
{
    (void)state;
    char text[1024];
    member_text(text, 256, 256);
    assert_through(text, text);
    member_text(text, 257, 1);
    assert_through(text, NULL);
    member_text(text, 1, 257);
    assert_through(text, NULL);
    strcpy(member_text(text, 1, 256), "   "); /* blanks behind are none of the value */
    char *got = through(text);
    assert_int_equal(strlen(got), 258);
    free(got);
}

/* COUNT members "k01=1,k02=1,…". */
static void list_of(char *out, int count)
{
    for (int i = 1; i <= count; i++)
        out += sprintf(out, "%sk%02d=1", i > 1 ? "," : "", i);
}

static void thirty_two_members_are_kept_and_thirty_three_are_none(void **state)
{
    (void)state;
    char text[1024];
    list_of(text, 32);
    assert_through(text, text);
    strcat(text, ",, ,"); /* empty ones do not count */
    char *got = through(text);
    assert_non_null(got);
    free(got);
    list_of(text, 33);
    assert_through(text, NULL);
}

static void a_long_list_loses_whole_members_the_long_ones_first(void **state)
{
    (void)state;
    enum { LIMIT = SP_TRACE_STATE_BYTES };
    char text[4096], want[4096];
    /* Exactly at the limit nothing is lost. */
    char *end = text;
    for (int i = 0; i < 8; i++)
        end = member_text(i ? (*end = ',', end + 1) : end, 10, i < 7 ? 116 : 117);
    assert_int_equal(strlen(text), LIMIT);
    assert_through(text, text);
    /* Among members of up to 128 characters the last ones go. */
    strcpy(want, text);
    strcat(text, ",last=1");
    assert_through(text, want);
    /* Longer ones go first, from the right, and only until it fits. */
    strcpy(text, "first=1,");
    end = member_text(text + strlen(text), 1, 127); /* 129 */
    strcpy(end, ",second=2,");
    end = member_text(end + strlen(end), 10, 256);
    *want = 0;
    strcat(want, text);
    want[strlen(want) - 268] = 0;
    for (int i = 0; i < 6; i++)
        end = member_text((*end = ',', end + 1), 7, 120); /* 128 */
    strcat(want, end - 6 * 129);
    assert_int_equal(strlen(want), 8 + 129 + 1 + 8 + 6 * 129);
    assert_through(text, want);
    /* One that is longer than all may be: at least 512 characters stay. */
    member_text(text, 256, 256);
    assert_true(strlen(text) > 512);
    assert_through(text, text);
}

static void an_endless_header_is_no_tracestate(void **state)
{
    (void)state;
    size_t length = (size_t)10 << 20;
    char *text = malloc(length + 1);
    memset(text, 'a', length);
    text[length] = 0;
    assert_through(text, NULL);
    memset(text, ',', length);
    memcpy(text + length - 3, "a=1", 3);
    assert_through(text, "a=1");
    free(text);
}

/* The headers NAME: VALUE, …, up to a NULL, read; what comes out as tracestate. */
static char *through_headers(bool *valid, const char *const *headers)
{
    header_map map = {0};
    for (; headers[0]; headers += 2)
        headers_add(&map, headers[0], headers[1]);
    spanprof_context context;
    *valid = spanprof_propagation_extract(&context, headers_get, &map);
    headers_clear(&map);
    return injected(&context, "tracestate");
}

static void several_headers_are_one_list(void **state)
{
    (void)state;
    static const struct {
        const char *headers[12];
        bool valid;
        const char *out;
    } cases[] = {
        {{"traceparent", VALID, "tracestate", "foo=1,bar=2"}, true, "foo=1,bar=2"},
        {{"TraceParent", VALID, "TrAcEsTaTe", "foo=1"}, true, "foo=1"},
        {{"TRACEPARENT", VALID, "TRACESTATE", "foo=1"}, true, "foo=1"},
        {{"traceparent", VALID, "trace-state", "foo=1"}, true, NULL},
        {{"trace.parent", VALID, "tracestate", "foo=1"}, false, NULL},
        {{"tracestate", "foo=1"}, false, NULL}, /* without a traceparent it is nothing */
        {{"traceparent", "00-0", "tracestate", "foo=1"}, false, NULL},
        {{"traceparent", VALID, "traceparent", VALID, "tracestate", "foo=1"}, false, NULL},
        {{"traceparent", VALID, "traceparent", ""}, false, NULL},
        {{"tracestate", "foo=1,bar=2", "traceparent", VALID, "tracestate", "rojo=1,congo=2",
          "tracestate", "baz=3"},
         true,
         "foo=1,bar=2,rojo=1,congo=2,baz=3"},
        {{"traceparent", VALID, "tracestate", "foo=1", "tracestate", ""}, true, "foo=1"},
        {{"traceparent", VALID, "tracestate", "", "tracestate", "foo=1"}, true, "foo=1"},
        {{"traceparent", VALID, "tracestate", "foo=1", "tracestate", "foo=2"}, true, "foo=1,foo=2"},
        {{"traceparent", VALID, "tracestate", "foo=1", "tracestate", "BAD=1"}, true, NULL},
        {{"traceparent", VALID, "tracestate", "BAD=1", "tracestate", "foo=1"}, true, NULL},
    };
    for (size_t i = 0; i < SP_ARRAY_LENGTH(cases); i++) {
        bool valid;
        char *out = through_headers(&valid, cases[i].headers);
        if (valid != cases[i].valid || !out != !cases[i].out ||
            (out && strcmp(out, cases[i].out) != 0))
            fail_msg("case %zu: %s, \"%s\"", i, valid ? "valid" : "not valid", out ? out : "none");
        free(out);
    }
}

static void members_of_all_headers_count_together(void **state)
{
    (void)state;
    header_map map = {0};
    headers_add(&map, "traceparent", VALID);
    for (int i = 0; i < 32; i++)
        headers_add(&map, "tracestate", "k=1");
    spanprof_context context;
    assert_true(spanprof_propagation_extract(&context, headers_get, &map));
    char *got = injected(&context, "tracestate");
    assert_int_equal(strlen(got), 32 * 4 - 1);
    free(got);
    headers_add(&map, "tracestate", "k=1");
    assert_true(spanprof_propagation_extract(&context, headers_get, &map));
    assert_null(injected(&context, "tracestate"));
    headers_clear(&map);
}

/* --- spans ------------------------------------------------------------------------------------ */

static spanprof_span start_under(const spanprof_context *parent)
{
    spanprof_span_options options = SPANPROF_SPAN_OPTIONS_INIT;
    options.parent = parent;
    return spanprof_span_start(NULL, "child", &options);
}

static void children_inherit_the_tracestate_and_spans_export_it(void **state)
{
    (void)state;
    spanprof_context remote;
    assert_true(spanprof_context_extract(&remote, VALID, "foo=1, bar=2"));
    spanprof_span span = start_under(&remote);
    spanprof_scope scope = spanprof_span_attach(span);
    spanprof_span child = spanprof_span_start(NULL, "grandchild", NULL);
    spanprof_context context = spanprof_span_context(child);
    char *got = injected(&context, "tracestate");
    assert_string_equal(got, "foo=1,bar=2");
    free(got);
    got = injected(NULL, "tracestate"); /* of the active one */
    assert_string_equal(got, "foo=1,bar=2");
    free(got);
    spanprof_span_end(child);
    spanprof_scope_detach(&scope);
    spanprof_span_end(span);
    for (int i = 0; i < 2; i++) {
        sp_span_data *data = take_one();
        assert_string_equal(data->trace_state, "foo=1,bar=2");
        sp_span_data_release(data);
    }
}

static void a_new_trace_has_no_tracestate(void **state)
{
    (void)state;
    spanprof_context remote;
    assert_true(spanprof_context_extract(&remote, VALID, "foo=1"));
    assert_int_equal(spanprof_baggage_set(&remote, &remote, "user", "alice", NULL), SPANPROF_OK);
    memset(remote.span_id, 0, sizeof remote.span_id); /* by hand: this is no trace any more */
    spanprof_span span = start_under(&remote);
    spanprof_context context = spanprof_span_context(span);
    assert_null(injected(&context, "tracestate"));
    char *baggage = injected(&context, "baggage");
    assert_string_equal(baggage, "user=alice");
    free(baggage);
    spanprof_span_end(span);
    sp_span_data *data = take_one();
    assert_string_equal(data->trace_state, "");
    sp_span_data_release(data);
}

static void unsampled_spans_hand_it_on(void **state)
{
    (void)state;
    spanprof_context remote;
    assert_true(spanprof_context_extract(
        &remote, "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00", "foo=1"));
    spanprof_span span = start_under(&remote);
    spanprof_context context = spanprof_span_context(span);
    char *got = injected(&context, "tracestate");
    assert_string_equal(got, "foo=1");
    free(got);
    spanprof_span_end(span);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(trace_state_follows_the_table_of_edge_cases),
        cmocka_unit_test(every_character_is_taken_where_the_grammar_has_it),
        cmocka_unit_test(keys_and_values_have_256_characters_at_most),
        cmocka_unit_test(thirty_two_members_are_kept_and_thirty_three_are_none),
        cmocka_unit_test(a_long_list_loses_whole_members_the_long_ones_first),
        cmocka_unit_test(an_endless_header_is_no_tracestate),
        cmocka_unit_test(several_headers_are_one_list),
        cmocka_unit_test(members_of_all_headers_count_together),
        traced(children_inherit_the_tracestate_and_spans_export_it),
        traced(a_new_trace_has_no_tracestate),
        traced(unsampled_spans_hand_it_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
