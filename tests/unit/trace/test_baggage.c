/* SPDX-License-Identifier: Apache-2.0 */
/* W3C baggage: what a header says, what the calls make of it, limits, and that contexts do not
 * change. */
#include "unit/trace/support.h"

#include "trace/propagators.h"
#include "unit/trace/headers.h"

#define VALID "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

static const spanprof_context nothing;

static spanprof_context extracted(const char *baggage)
{
    header_map map = {0};
    spanprof_context context;
    headers_add(&map, "Baggage", baggage);
    assert_false(spanprof_propagation_extract(&context, headers_get, &map));
    headers_clear(&map);
    assert_memory_equal(&context, zeroes, offsetof(spanprof_context, carrier));
    return context;
}

static void assert_injected(const spanprof_context *context, const char *want)
{
    char *got = injected(context, "baggage");
    if (!got != !want || (got && strcmp(got, want) != 0))
        fail_msg("baggage is \"%s\" and not \"%s\"", got ? got : "none", want ? want : "none");
    free(got);
}

/* NULL: there is none. */
static void assert_value(const spanprof_context *context, const char *key, const char *want)
{
    char value[10000];
    size_t size = sizeof value;
    spanprof_status status = spanprof_baggage_get(context, key, value, &size);
    if (!want) {
        assert_int_equal(status, SPANPROF_ERROR_NOT_FOUND);
        assert_int_equal(size, 0);
        return;
    }
    assert_int_equal(status, SPANPROF_OK);
    assert_string_equal(value, want);
    assert_int_equal(size, strlen(want) + 1);
}

static void headers_are_read_as_the_specification_says(void **state)
{
    (void)state;
    static const struct {
        const char *in, *out; /* NULL: none */
    } cases[] = {
        {"userId=alice,serverNode=DF%2028,isProduction=false",
         "userId=alice,serverNode=DF%2028,isProduction=false"},
        {"key1=value1;property1;property2, key2 = value2, key3=value3; propertyKey=propertyValue",
         "key1=value1;property1;property2,key2=value2,key3=value3;propertyKey=propertyValue"},
        {"userId =   alice", "userId=alice"},
        {"\ta\t=\tb\t;\tc\t", "a=b;c"},
        {"a=b=c", "a=b=c"}, /* values may have equals signs */
        {"a=", "a="},
        {"a=;p", "a=;p"},
        {"a=1;p;q=2 ; r", "a=1;p;q=2 ; r"},
        {"", NULL},
        {",, ,", NULL},
        {"a", NULL},
        {"a;b=c", NULL}, /* the equals sign is the property's */
        {"=b", NULL},
        {"a b=c", NULL},
        {"a=b c", NULL},
        {"a=\"b\"", NULL},
        {"a=b\\c", NULL},
        {"a=\xc3\xa9", NULL},
        {"\xc3\xa9=a", NULL},
        {"a=1;\x01", NULL},
        {"a=1\nb", NULL},
        {"bad,a=1,worse value=2,b=2", "a=1,b=2"}, /* the good ones stay */
        {"a=1,a=2", "a=1,a=2"},                   /* order and duplicates stay */
        {"!#$%&'*+-.^_`|~09azAZ=!#$%&'()*+-./09:<=>?@AZ[]^_`az{|}~",
         "!#$%&'*+-.^_`|~09azAZ=!#$%&'()*+-./09:<=>?@AZ[]^_`az{|}~"},
    };
    for (size_t i = 0; i < SP_ARRAY_LENGTH(cases); i++) {
        spanprof_context context = extracted(cases[i].in);
        assert_injected(&context, cases[i].out);
    }
}

static void values_are_decoded(void **state)
{
    (void)state;
    spanprof_context context =
        extracted("plain=abc,space=DF%2028,name=Am%C3%A9lie,bad=%ff%41,lone=%c3,half=%4,no=%zz,"
                  "low=%2f%2F,nul=a%00b,twice=1,twice=2;p,empty=,sign=%25");
    assert_value(&context, "plain", "abc");
    assert_value(&context, "space", "DF 28");
    assert_value(&context, "name", "Am\xc3\xa9lie");
    assert_value(&context, "bad",
                 "\xef\xbf\xbd"
                 "A");
    assert_value(&context, "lone", "\xef\xbf\xbd");
    assert_value(&context, "half", "%4");
    assert_value(&context, "no", "%zz");
    assert_value(&context, "low", "//");
    assert_value(&context, "nul",
                 "a\xef\xbf\xbd"
                 "b");
    assert_value(&context, "twice", "2");
    assert_value(&context, "empty", "");
    assert_value(&context, "sign", "%");
    assert_value(&context, "Plain", NULL); /* keys have a case */
    assert_value(&context, "plai", NULL);
    assert_value(&context, "", NULL);
    assert_value(&nothing, "plain", NULL);
}

static void get_tells_the_size_that_it_needs(void **state)
{
    (void)state;
    spanprof_context context = extracted("a=four");
    char value[8] = "before";
    size_t size = 4;
    assert_int_equal(spanprof_baggage_get(&context, "a", value, &size),
                     SPANPROF_ERROR_INVALID_ARGUMENT);
    assert_int_equal(size, 5);
    assert_string_equal(value, "before");
    assert_int_equal(spanprof_baggage_get(&context, "a", value, &size), SPANPROF_OK);
    assert_string_equal(value, "four");
    size = 0;
    assert_int_equal(spanprof_baggage_get(&context, "a", NULL, &size), SPANPROF_OK);
    assert_int_equal(size, 5);
    assert_int_equal(spanprof_baggage_get(&context, NULL, value, &size),
                     SPANPROF_ERROR_INVALID_ARGUMENT);
    assert_int_equal(spanprof_baggage_get(&context, "a", value, NULL),
                     SPANPROF_ERROR_INVALID_ARGUMENT);
}

static void set_makes_a_new_context_and_leaves_the_old_one(void **state)
{
    (void)state;
    spanprof_context first, second, third;
    assert_true(spanprof_context_extract(&first, VALID, "foo=1"));
    spanprof_context kept = first;
    assert_int_equal(spanprof_baggage_set(&second, &first, "user", "Am\xc3\xa9lie, \"42%\"", NULL),
                     SPANPROF_OK);
    assert_memory_equal(&first, &kept, sizeof first);
    assert_injected(&first, NULL);
    assert_injected(&second, "user=Am%C3%A9lie%2C%20%2242%25%22");
    assert_value(&second, "user", "Am\xc3\xa9lie, \"42%\"");
    assert_int_equal(spanprof_baggage_set(&third, &second, "tenant", "t", " ttl=1;x "),
                     SPANPROF_OK);
    assert_injected(&third, "user=Am%C3%A9lie%2C%20%2242%25%22,tenant=t;ttl=1;x");
    assert_int_equal(spanprof_baggage_set(&third, &third, "user", NULL, NULL), SPANPROF_OK);
    assert_injected(&third, "tenant=t;ttl=1;x,user=");
    assert_injected(&second, "user=Am%C3%A9lie%2C%20%2242%25%22");
    assert_memory_equal(third.trace_id, first.trace_id, 16);
    char *trace_state = injected(&third, "tracestate");
    assert_string_equal(trace_state, "foo=1");
    free(trace_state);
}

static void remove_takes_one_key_or_all(void **state)
{
    (void)state;
    spanprof_context context = extracted("a=1,b=2,a=3,c=4"), without;
    assert_int_equal(spanprof_baggage_remove(&without, &context, "a"), SPANPROF_OK);
    assert_injected(&without, "b=2,c=4");
    assert_int_equal(spanprof_baggage_remove(&without, &without, "x"), SPANPROF_OK);
    assert_injected(&without, "b=2,c=4");
    assert_int_equal(spanprof_baggage_remove(&without, &without, NULL), SPANPROF_OK);
    assert_memory_equal(&without, &nothing, sizeof without);
    assert_int_equal(spanprof_baggage_remove(&without, &nothing, "a"), SPANPROF_OK);
    assert_injected(&context, "a=1,b=2,a=3,c=4");
}

static void what_cannot_stand_in_a_header_is_refused(void **state)
{
    (void)state;
    spanprof_context out, context = extracted("a=1");
    static const char *const keys[] = {NULL, "", "a b", "a=b", "a,b", "a;b", "\xc3\xa9", "a\n"};
    for (size_t i = 0; i < SP_ARRAY_LENGTH(keys); i++) {
        memset(&out, 0xee, sizeof out);
        assert_int_equal(spanprof_baggage_set(&out, &context, keys[i], "v", NULL),
                         SPANPROF_ERROR_INVALID_ARGUMENT);
        assert_memory_equal(&out, &context, sizeof out);
    }
    assert_int_equal(spanprof_baggage_set(&out, &context, "k", "v", "a,b=c"),
                     SPANPROF_ERROR_INVALID_ARGUMENT);
    assert_int_equal(spanprof_baggage_set(&out, &context, "k", "v", "a\r\nEvil: 1"),
                     SPANPROF_ERROR_INVALID_ARGUMENT);
    assert_int_equal(spanprof_baggage_set(NULL, &context, "k", "v", NULL),
                     SPANPROF_ERROR_INVALID_ARGUMENT);
    assert_int_equal(spanprof_baggage_remove(NULL, &context, "k"), SPANPROF_ERROR_INVALID_ARGUMENT);
    assert_int_equal(spanprof_baggage_set(&out, &context, "k", "\r\nEvil: 1", NULL), SPANPROF_OK);
    assert_injected(&out, "a=1,k=%0D%0AEvil:%201");
}

static void a_hundred_and_eighty_members_are_kept(void **state)
{
    (void)state;
    spanprof_context context = nothing;
    char key[16];
    for (int i = 0; i < SP_BAGGAGE_MEMBERS; i++) {
        snprintf(key, sizeof key, "k%d", i);
        assert_int_equal(spanprof_baggage_set(&context, &context, key, "v", NULL), SPANPROF_OK);
    }
    spanprof_context more;
    assert_int_equal(spanprof_baggage_set(&more, &context, "more", "v", NULL),
                     SPANPROF_ERROR_INVALID_ARGUMENT);
    assert_memory_equal(&more, &context, sizeof more);
    assert_int_equal(spanprof_baggage_set(&more, &context, "k7", "new", NULL), SPANPROF_OK);
    assert_value(&more, "k7", "new");
    header_map map = {0}; /* of 360 in several headers, the first 180 are kept */
    for (int i = 0; i < SP_BAGGAGE_MEMBERS; i++) {
        snprintf(key, sizeof key, "m%d=1,n%d=2", i, i);
        headers_add(&map, "baggage", key);
    }
    spanprof_propagation_extract(&context, headers_get, &map);
    headers_clear(&map);
    assert_value(&context, "n89", "2");
    assert_value(&context, "m90", NULL);
}

static void eight_thousand_bytes_are_kept(void **state)
{
    (void)state;
    char *big = malloc(SP_BAGGAGE_BYTES + 1);
    memset(big, 'x', SP_BAGGAGE_BYTES);
    big[SP_BAGGAGE_BYTES - 2] = 0;
    spanprof_context context;
    assert_int_equal(spanprof_baggage_set(&context, &nothing, "k", big, NULL), SPANPROF_OK);
    assert_value(&context, "k", big);
    spanprof_context more;
    assert_int_equal(spanprof_baggage_set(&more, &context, "l", "", NULL),
                     SPANPROF_ERROR_INVALID_ARGUMENT);
    assert_int_equal(spanprof_baggage_set(&more, &nothing, "kk", big, NULL),
                     SPANPROF_ERROR_INVALID_ARGUMENT);
    big[SP_BAGGAGE_BYTES - 2] = 'x';
    big[SP_BAGGAGE_BYTES] = 0;
    assert_int_equal(spanprof_baggage_set(&more, &nothing, "k", big, NULL),
                     SPANPROF_ERROR_INVALID_ARGUMENT);
    memset(big, ' ', 3000); /* three bytes each once encoded */
    assert_int_equal(spanprof_baggage_set(&more, &nothing, "k", big, NULL),
                     SPANPROF_ERROR_INVALID_ARGUMENT);
    /* Of a header, what does not fit is left out as a whole; what fits behind it is kept. */
    memset(big, 'x', SP_BAGGAGE_BYTES);
    char *header = malloc(SP_BAGGAGE_BYTES * 2);
    sprintf(header, "a=%.4000s,big=%.5000s,b=2", big, big);
    context = extracted(header);
    assert_value(&context, "big", NULL);
    assert_value(&context, "b", "2");
    free(header);
    free(big);
}

typedef struct seen {
    char text[200];
    int left;
} seen;

static bool see(void *user, const char *key, const char *value, const char *metadata)
{
    seen *s = user;
    size_t length = strlen(s->text);
    snprintf(s->text + length, sizeof s->text - length, "[%s|%s|%s]", key, value, metadata);
    return --s->left > 0;
}

static void each_shows_every_key_once(void **state)
{
    (void)state;
    spanprof_context context = extracted("a=1,b=x%20y;p=1;q,a=3,c=");
    seen s = {.left = 10};
    assert_int_equal(spanprof_baggage_each(&context, see, &s), SPANPROF_OK);
    assert_string_equal(s.text, "[b|x y|p=1;q][a|3|][c||]");
    s = (seen){.left = 2};
    assert_int_equal(spanprof_baggage_each(&context, see, &s), SPANPROF_OK);
    assert_string_equal(s.text, "[b|x y|p=1;q][a|3|]");
    s = (seen){.left = 2};
    assert_int_equal(spanprof_baggage_each(&nothing, see, &s), SPANPROF_OK);
    assert_string_equal(s.text, "");
    assert_int_equal(spanprof_baggage_each(&context, NULL, &s), SPANPROF_ERROR_INVALID_ARGUMENT);
}

static void baggage_is_active_without_a_span_and_children_have_it(void **state)
{
    (void)state;
    spanprof_context context;
    assert_int_equal(spanprof_baggage_set(&context, NULL, "user", "bob", NULL), SPANPROF_OK);
    assert_false(is_valid(&context));
    spanprof_scope outer = spanprof_context_attach(&context);
    assert_value(NULL, "user", "bob");
    spanprof_context active = spanprof_context_current();
    assert_false(is_valid(&active));
    spanprof_span root = spanprof_span_start(NULL, "root", NULL);
    spanprof_scope scope = spanprof_span_attach(root);
    spanprof_span child = spanprof_span_start(NULL, "child", NULL);
    spanprof_context of_child = spanprof_span_context(child);
    assert_value(&of_child, "user", "bob");
    assert_value(NULL, "user", "bob");
    spanprof_span_end(child);
    spanprof_scope_detach(&scope);
    spanprof_span_end(root);
    spanprof_scope_detach(&outer);
    assert_value(NULL, "user", NULL);
    assert_int_equal(release_all(), 2);
}

static void propagators_say_which_headers_there_are(void **state)
{
    (void)state;
    header_map in = {0};
    headers_add(&in, "traceparent", VALID);
    headers_add(&in, "tracestate", "foo=1");
    headers_add(&in, "baggage", "a=1");
    for (uint32_t set = 0; set < 4; set++) {
        bool trace = set & SP_PROPAGATE_TRACE_CONTEXT, baggage = set & SP_PROPAGATE_BAGGAGE;
        spanprof_context context;
        sp_propagation_configure(set);
        assert_int_equal(spanprof_propagation_extract(&context, headers_get, &in), trace);
        assert_value(&context, "a", baggage ? "1" : NULL);
        sp_propagation_configure(SP_PROPAGATE_TRACE_CONTEXT | SP_PROPAGATE_BAGGAGE);
        spanprof_propagation_extract(&context, headers_get, &in);
        sp_propagation_configure(set);
        header_map out = {0};
        assert_int_equal(spanprof_propagation_inject(&context, headers_set, &out),
                         2 * trace + baggage);
        assert_int_equal(out.count, 2 * trace + baggage);
        headers_clear(&out);
    }
    sp_propagation_configure(SP_PROPAGATE_TRACE_CONTEXT | SP_PROPAGATE_BAGGAGE);
    headers_clear(&in);
    spanprof_context context;
    assert_false(spanprof_propagation_extract(NULL, headers_get, &in));
    assert_false(spanprof_propagation_extract(&context, NULL, NULL));
    assert_int_equal(spanprof_propagation_inject(&context, NULL, NULL), 0);
    assert_int_equal(spanprof_propagation_inject(&nothing, headers_set, &in), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(headers_are_read_as_the_specification_says),
        cmocka_unit_test(values_are_decoded),
        cmocka_unit_test(get_tells_the_size_that_it_needs),
        cmocka_unit_test(set_makes_a_new_context_and_leaves_the_old_one),
        cmocka_unit_test(remove_takes_one_key_or_all),
        cmocka_unit_test(what_cannot_stand_in_a_header_is_refused),
        cmocka_unit_test(a_hundred_and_eighty_members_are_kept),
        cmocka_unit_test(eight_thousand_bytes_are_kept),
        cmocka_unit_test(each_shows_every_key_once),
        traced(baggage_is_active_without_a_span_and_children_have_it),
        cmocka_unit_test(propagators_say_which_headers_there_are),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
