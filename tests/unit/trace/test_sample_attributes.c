/* SPDX-License-Identifier: Apache-2.0 */
/* Attributes of contexts: what is carried, what the record shows, and what has no room. */
#include "unit/trace/support.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <spanprof/propagation.h>
#include "core/utf8.h"
#include "context/sample_keys.h"
#include "context/thread.h"
#include "trace/carrier.h"
#include "trace/sample_attributes.h"

extern _Thread_local void *otel_thread_ctx_v1;

static sp_sample_attribute_counters attribute_counters(void)
{
    sp_sample_attribute_counters out;
    sp_sample_attribute_counters_get(&out);
    return out;
}

static spanprof_context sampled(uint8_t id)
{
    spanprof_context context = {.trace_flags = SPANPROF_TRACE_FLAG_SAMPLED};
    memset(context.trace_id, id, sizeof context.trace_id);
    memset(context.span_id, id, sizeof context.span_id);
    memset(context.local_root_span_id, id, sizeof context.local_root_span_id);
    return context;
}

/* What an outside reader sees on this thread: "key=value;…", "" for none. */
static const char *shown(void)
{
    static char text[4096];
    const sp_context_record *record = otel_thread_ctx_v1;
    uint8_t bytes[sizeof *record];
    size_t used = 0;
    text[0] = 0;
    if (!record)
        return text;
    memcpy(bytes, record, sizeof bytes);
    uint16_t length;
    memcpy(&length, bytes + 26, sizeof length);
    assert_true(bytes[24] || !length);
    for (size_t at = 28; at < 28u + length; at += 2u + bytes[at + 1])
        used += (size_t)sprintf(text + used, "%s=%.*s;", sp_sample_key(bytes[at]), bytes[at + 1],
                                (const char *)bytes + at + 2);
    return text;
}

/* The same while CONTEXT is active. */
static const char *shown_under(const spanprof_context *context)
{
    spanprof_scope scope = spanprof_context_attach(context);
    const char *text = shown();
    spanprof_scope_detach(&scope);
    assert_int_equal(((const sp_context_record *)otel_thread_ctx_v1)->tail >> 16, 0);
    return text;
}

static void set(spanprof_context *context, const char *key, const char *value)
{
    assert_int_equal(spanprof_context_set_attribute(context, key, value), SPANPROF_OK);
}

static void context_shows_what_was_set_last(void **state)
{
    (void)state;
    spanprof_context context = sampled(1);
    set(&context, "tenant", "acme");
    set(&context, "route", "/cart/{id}");
    assert_string_equal(shown_under(&context), "tenant=acme;route=/cart/{id};");
    set(&context, "tenant", "globex");
    assert_string_equal(shown_under(&context), "tenant=globex;route=/cart/{id};");
    set(&context, "tenant", NULL);
    assert_string_equal(shown_under(&context), "route=/cart/{id};");
    set(&context, "route", NULL);
    assert_true(sp_carrier_is_zero(context.carrier));
    assert_string_equal(shown_under(&context), "");
}

static void order_of_the_calls_does_not_matter(void **state)
{
    (void)state;
    spanprof_context a = sampled(1), b = sampled(1);
    set(&a, "tenant", "acme");
    set(&a, "route", "/");
    set(&b, "route", "/");
    set(&b, "tenant", "acme");
    assert_memory_equal(&a.carrier, &b.carrier, sizeof a.carrier);
}

static void inner_scope_without_attributes_shows_none(void **state)
{
    (void)state;
    spanprof_context with = sampled(1), other = sampled(2), without = sampled(3);
    set(&with, "tenant", "acme");
    set(&other, "tenant", "globex");
    spanprof_scope outer = spanprof_context_attach(&with);
    assert_string_equal(shown(), "tenant=acme;");
    spanprof_scope inner = spanprof_context_attach(&without);
    assert_string_equal(shown(), "");
    spanprof_scope innermost = spanprof_context_attach(&other);
    assert_string_equal(shown(), "tenant=globex;");
    spanprof_scope nothing = spanprof_context_attach(NULL);
    assert_string_equal(shown(), "");
    spanprof_scope_detach(&nothing);
    assert_string_equal(shown(), "tenant=globex;");
    spanprof_scope_detach(&innermost);
    assert_string_equal(shown(), "");
    spanprof_scope_detach(&inner);
    assert_string_equal(shown(), "tenant=acme;");
    spanprof_scope_detach(&outer);
    assert_string_equal(shown(), "");
}

static void spans_and_their_children_inherit(void **state)
{
    (void)state;
    assert_int_equal(start_tracer(NULL), 0);
    spanprof_context request = {0};
    set(&request, "tenant", "acme");
    spanprof_span_options options = SPANPROF_SPAN_OPTIONS_INIT;
    options.parent = &request;
    spanprof_span root = spanprof_span_start(NULL, "root", &options);
    spanprof_scope outer = spanprof_span_attach(root);
    assert_string_equal(shown(), "tenant=acme;");
    spanprof_span child = spanprof_span_start(NULL, "child", NULL);
    spanprof_scope inner = spanprof_span_attach(child);
    assert_string_equal(shown(), "tenant=acme;");
    spanprof_scope_detach(&inner);
    spanprof_scope_detach(&outer);
    spanprof_span_end(child);
    spanprof_span_end(root);
    release_all();
    sp_tracer_stop();
}

static void refuse_header(void *user, const char *name, const char *value)
{
    (void)user, (void)value;
    assert_string_equal(name, "traceparent");
}

static void attributes_do_not_leave_the_process_and_baggage_stays(void **state)
{
    (void)state;
    spanprof_context context = sampled(1);
    set(&context, "tenant", "acme");
    assert_int_equal(spanprof_propagation_inject(&context, refuse_header, NULL), 1);
    assert_int_equal(spanprof_baggage_set(&context, &context, "k", "v", NULL), SPANPROF_OK);
    assert_string_equal(shown_under(&context), "tenant=acme;");
    set(&context, "tenant", "globex");
    char value[8];
    size_t size = sizeof value;
    assert_int_equal(spanprof_baggage_get(&context, "k", value, &size), SPANPROF_OK);
    assert_string_equal(value, "v");
    assert_int_equal(spanprof_baggage_remove(&context, &context, NULL), SPANPROF_OK);
    assert_string_equal(shown_under(&context), "tenant=globex;");
}

static void long_value_is_cut_between_characters(void **state)
{
    (void)state;
    spanprof_context context = sampled(1);
    char value[400], expected[300] = "tenant=";
    for (int i = 0; i < 100; i++)
        memcpy(value + 3 * i, "\xe2\x82\xac", 3); /* the euro sign */
    value[0] = 'x';                               /* and two bytes that are not UTF-8 now */
    value[300] = 0;
    uint64_t before = attribute_counters().cut;
    set(&context, "tenant", value);
    assert_int_equal(attribute_counters().cut, before + 1);
    const char *text = shown_under(&context);
    assert_true(sp_utf8_valid(text, strlen(text)));
    strcat(expected, "x\xef\xbf\xbd\xef\xbf\xbd");
    assert_memory_equal(text, expected, strlen(expected));
    assert_in_range(strlen(text) - strlen("tenant=;"), 253, 255);

    memset(value, 'a', 255);
    value[255] = 0;
    set(&context, "tenant", value);
    assert_int_equal(attribute_counters().cut, before + 1);
    assert_int_equal(strlen(shown_under(&context)), 255 + strlen("tenant=;"));
}

static void ninth_attribute_and_too_many_bytes_are_refused(void **state)
{
    (void)state;
    spanprof_context context = sampled(1), big = sampled(2);
    uint64_t before = attribute_counters().refused;
    char key[8], value[256];
    for (int i = 0; i < 8; i++) {
        snprintf(key, sizeof key, "k%d", i);
        set(&context, key, "v");
    }
    spanprof_context full = context;
    assert_int_equal(spanprof_context_set_attribute(&context, "k8", "v"),
                     SPANPROF_ERROR_INVALID_ARGUMENT);
    assert_memory_equal(&context, &full, sizeof full);
    set(&context, "k7", "w"); /* in its place there is room */
    memset(value, 'b', 255);
    value[255] = 0;
    set(&big, "k0", value);
    set(&big, "k1", value);
    assert_int_equal(spanprof_context_set_attribute(&big, "k2", value),
                     SPANPROF_ERROR_INVALID_ARGUMENT);
    value[612 - 2 * 257 - 2] = 0; /* to the last byte of the record */
    set(&big, "k2", value);
    assert_int_equal(strlen(shown_under(&big)), 612 - 6 + 3 * strlen("k0=;"));
    assert_int_equal(attribute_counters().refused, before + 2);
}

static void keys_that_are_none_are_refused(void **state)
{
    (void)state;
    spanprof_context context = sampled(1);
    char long_key[300];
    memset(long_key, 'k', sizeof long_key);
    long_key[256] = 0;
    const char *const bad[] = {NULL,    "", "\xff", "thread.id", "thread.name", "spanprof.wait",
                               long_key};
    uint32_t keys = sp_sample_keys_count();
    for (size_t i = 0; i < SP_ARRAY_LENGTH(bad); i++)
        assert_int_equal(spanprof_context_set_attribute(&context, bad[i], "v"),
                         SPANPROF_ERROR_INVALID_ARGUMENT);
    assert_int_equal(spanprof_context_set_attribute(NULL, "k", "v"),
                     SPANPROF_ERROR_INVALID_ARGUMENT);
    assert_int_equal(sp_sample_keys_count(), keys);
}

/* The context is stored while more others come by than the table holds. Its slot is another's then.
 */
static void stale_context_shows_nothing_and_never_anothers(void **state)
{
    (void)state;
    spanprof_context stored = sampled(1), other = sampled(2), last;
    set(&stored, "tenant", "acme");
    for (int i = 0; i < 2 * SP_CARRIER_SLOTS; i++) {
        char value[16];
        snprintf(value, sizeof value, "t%d", i);
        last = other;
        set(&last, "tenant", value);
    }
    assert_string_equal(shown_under(&stored), "");
    assert_string_equal(shown_under(&last), "tenant=t32767;");
    assert_string_equal(shown_under(&stored), "");
    set(&stored, "route", "/");
    assert_string_equal(shown_under(&stored), "route=/;");
}

static void child_process_keeps_what_contexts_have(void **state)
{
    (void)state;
    spanprof_context context = sampled(1);
    set(&context, "tenant", "acme");
    pid_t child = fork();
    if (child == 0) {
        set(&context, "route", "/child");
        _exit(strcmp(shown_under(&context), "tenant=acme;route=/child;") == 0 ? 0 : 1);
    }
    int status;
    waitpid(child, &status, 0);
    assert_int_equal(status, 0);
    assert_string_equal(shown_under(&context), "tenant=acme;");
}

static _Atomic bool is_over;

/* Both have as many bytes of attributes. */
static spanprof_context taking_turns[2];

static void *take_turns(void *unused)
{
    (void)unused;
    while (!atomic_load(&is_over))
        for (int i = 0; i < 2; i++) {
            spanprof_scope scope = spanprof_context_attach(&taking_turns[i]);
            spanprof_scope_detach(&scope);
        }
    return NULL;
}

static const char *expected_in_turn[2] = {"tenant=aaaaaaaaaaaa;user=aaaaaaaaaaaa;",
                                          "tenant=bbbbbbbbbbbb;user=bbbbbbbbbbbb;"};

/* Each has a slot that a thread of the parent had. */
static void *look_in_child(void *number)
{
    static pthread_mutex_t one_text = PTHREAD_MUTEX_INITIALIZER;
    int i = (int)(intptr_t)number & 1;
    spanprof_scope scope = spanprof_context_attach(&taking_turns[i]);
    pthread_mutex_lock(&one_text);
    if (strcmp(shown(), expected_in_turn[i]) != 0)
        _exit(1);
    pthread_mutex_unlock(&one_text);
    spanprof_scope_detach(&scope);
    return NULL;
}

enum { TURNS = 3, CHILDREN = 150 };

/* _exit: the child's sanitizer need not know. */
static void look_and_exit(void)
{
    pthread_t threads[TURNS];
    for (intptr_t i = 0; i < TURNS; i++)
        if (pthread_create(&threads[i], NULL, look_in_child, (void *)(i + 1)) != 0) // NOLINT
            _exit(2);
    for (int i = 0; i < TURNS; i++)
        pthread_join(threads[i], NULL);
    _exit(0);
}

static void child_process_never_shows_half_of_anothers(void **state)
{
    (void)state;
    pthread_t threads[TURNS];
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(EMULATED)
    skip(); /* their own locks may be held at the fork */
#endif
    for (int i = 0; i < 2; i++) {
        char value[] = "aaaaaaaaaaaa";
        memset(value, 'a' + i, sizeof value - 1);
        taking_turns[i] = sampled((uint8_t)(i + 1));
        set(&taking_turns[i], "tenant", value);
        set(&taking_turns[i], "user", value);
    }
    for (int i = 0; i < TURNS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, take_turns, NULL), 0);
    for (int n = 0; n < CHILDREN; n++) {
        pid_t child = fork();
        if (child == 0)
            look_and_exit();
        int status;
        waitpid(child, &status, 0);
        assert_int_equal(status, 0);
    }
    atomic_store(&is_over, true);
    for (int i = 0; i < TURNS; i++)
        pthread_join(threads[i], NULL);
}

static uint32_t hook_calls;

static void count_call(void)
{
    hook_calls++;
}

/* The last test, for it fills the table for good. */
static void key_number_257_is_refused_and_counted(void **state)
{
    (void)state;
    spanprof_context context = sampled(1);
    uint32_t had = sp_sample_keys_count();
    uint64_t before = attribute_counters().refused;
    char key[16];
    sp_sample_keys_set_hook(count_call);
    for (uint32_t i = had; i < SP_SAMPLE_KEYS_MAX; i++) {
        snprintf(key, sizeof key, "fill%u", i);
        assert_int_equal(sp_sample_key_put(key), i);
        assert_string_equal(sp_sample_key(i), key);
    }
    assert_int_equal(hook_calls, SP_SAMPLE_KEYS_MAX - had);
    assert_int_equal(spanprof_context_set_attribute(&context, "one too many", "v"),
                     SPANPROF_ERROR_NO_MEMORY);
    assert_int_equal(attribute_counters().refused, before + 1);
    set(&context, key, "last");
    snprintf(key, sizeof key, "fill%u=last;", SP_SAMPLE_KEYS_MAX - 1);
    assert_string_equal(shown_under(&context), key);
    assert_null(sp_sample_key(SP_SAMPLE_KEYS_MAX));
    assert_int_equal(hook_calls, SP_SAMPLE_KEYS_MAX - had);
    sp_sample_keys_set_hook(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(context_shows_what_was_set_last),
        cmocka_unit_test(order_of_the_calls_does_not_matter),
        cmocka_unit_test(inner_scope_without_attributes_shows_none),
        cmocka_unit_test(spans_and_their_children_inherit),
        cmocka_unit_test(attributes_do_not_leave_the_process_and_baggage_stays),
        cmocka_unit_test(long_value_is_cut_between_characters),
        cmocka_unit_test(ninth_attribute_and_too_many_bytes_are_refused),
        cmocka_unit_test(keys_that_are_none_are_refused),
        cmocka_unit_test(stale_context_shows_nothing_and_never_anothers),
        cmocka_unit_test(child_process_keeps_what_contexts_have),
        cmocka_unit_test(child_process_never_shows_half_of_anothers),
        cmocka_unit_test(key_number_257_is_refused_and_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
