/* SPDX-License-Identifier: Apache-2.0 */
/* Propagation while memory is short: for every N the Nth allocation of a call fails. The trace goes
 * on all the same, what could not be carried is counted, and a context carries all of a text or
 * none of it. */
#include "unit/trace/support.h"

#include <stdlib.h>

#include "trace/carrier.h"
#include "unit/trace/headers.h"

#define VALID "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

/* The linker sends the allocations of what is linked into this program here (tests/CMakeLists.txt).
 */
void *__real_malloc(size_t bytes);
void *__real_realloc(void *memory, size_t bytes);
char *__real_strndup(const char *text, size_t length);
void *__wrap_malloc(size_t bytes);
void *__wrap_realloc(void *memory, size_t bytes);
char *__wrap_strndup(const char *text, size_t length);

static int until_failure = -1; /* < 0: none fails */

static bool fails(void)
{
    return until_failure >= 0 && until_failure-- == 0;
}

void *__wrap_malloc(size_t bytes)
{
    return fails() ? NULL : __real_malloc(bytes);
}

void *__wrap_realloc(void *memory, size_t bytes)
{
    return fails() ? NULL : __real_realloc(memory, bytes);
}

char *__wrap_strndup(const char *text, size_t length)
{
    return fails() ? NULL : __real_strndup(text, length);
}

static uint64_t dropped(void)
{
    sp_carrier_counters counters;
    sp_carrier_counters_get(&counters);
    return counters.dropped;
}

/* "" for none. */
static void assert_header(const spanprof_context *context, const char *name, const char *want,
                          const char *or_this)
{
    char *got = injected(context, name);
    const char *text = got ? got : "";
    if (strcmp(text, want) != 0 && strcmp(text, or_this) != 0)
        fail_msg("%s is \"%s\"", name, text);
    free(got);
}

enum { MOST = 100 };

/* Texts that no other round has put, and long enough that their buffers grow. */
static void make_texts(char trace_state[700], char baggage[700], int round)
{
    snprintf(trace_state, 700, "n%d=%0200d,b=%0200d", round, 1, 2);
    snprintf(baggage, 700, "n%d=%0600d", round, 1);
}

static void extract_goes_on_without_what_found_no_memory(void **state)
{
    (void)state;
    int n = 0;
    for (bool failed = true; failed; n++) {
        char trace_state[700], baggage[700];
        make_texts(trace_state, baggage, n);
        header_map map = {0};
        headers_add(&map, "traceparent", VALID);
        headers_add(&map, "tracestate", trace_state);
        headers_add(&map, "baggage", baggage);
        spanprof_context context;
        uint64_t before = dropped();
        until_failure = n;
        bool valid = spanprof_propagation_extract(&context, headers_get, &map);
        failed = until_failure < 0;
        until_failure = -1;
        assert_true(valid);
        assert_int_equal(dropped() > before, failed);
        assert_header(&context, "traceparent", VALID, VALID);
        assert_header(&context, "tracestate", trace_state, failed ? "" : trace_state);
        assert_header(&context, "baggage", baggage, failed ? "" : baggage);
        headers_clear(&map);
        assert_in_range(n, 0, MOST);
    }
    assert_in_range(n, 4, MOST); /* so many allocations there were */
}

static void set_and_remove_change_all_or_nothing(void **state)
{
    (void)state;
    int n = 0;
    for (bool failed = true; failed; n++) {
        char trace_state[700], baggage[700], value[700];
        make_texts(trace_state, baggage, MOST + n);
        spanprof_context context, out;
        assert_true(spanprof_context_extract(&context, VALID, trace_state));
        snprintf(value, sizeof value, "%0600d", n);
        assert_int_equal(spanprof_baggage_set(&context, &context, "a", value, NULL), SPANPROF_OK);
        until_failure = n;
        spanprof_status set = spanprof_baggage_set(&out, &context, "b", value, "p");
        failed = until_failure < 0;
        until_failure = -1;
        assert_int_equal(set, failed ? SPANPROF_ERROR_NO_MEMORY : SPANPROF_OK);
        if (failed)
            assert_memory_equal(&out, &context, sizeof out);
        assert_header(&out, "tracestate", trace_state, trace_state);
        until_failure = n;
        spanprof_status removed = spanprof_baggage_remove(&out, &context, "a");
        bool could = until_failure >= 0 || removed == SPANPROF_OK;
        until_failure = -1;
        assert_true(could || removed == SPANPROF_ERROR_NO_MEMORY);
        assert_header(&out, "tracestate", trace_state, trace_state);
        assert_in_range(n, 0, MOST);
    }
    assert_in_range(n, 3, MOST);
}

static void a_span_without_memory_for_its_tracestate_ends_without_it(void **state)
{
    (void)state;
    char trace_state[700], baggage[700];
    make_texts(trace_state, baggage, 2 * MOST);
    spanprof_span_options options = SPANPROF_SPAN_OPTIONS_INIT;
    spanprof_context context;
    assert_true(spanprof_context_extract(&context, VALID, trace_state));
    options.parent = &context;
    for (int failing = 0; failing < 2; failing++) {
        spanprof_span span = spanprof_span_start(NULL, "s", &options);
        uint64_t before = dropped();
        until_failure = failing - 1;
        spanprof_span_end(span);
        until_failure = -1;
        assert_int_equal(dropped() - before, failing);
        sp_span_data *data = take_one();
        assert_string_equal(data->trace_state, failing ? "" : trace_state);
        sp_span_data_release(data);
    }
}

static bool count(void *user, const char *key, const char *value, const char *metadata)
{
    (void)key, (void)value, (void)metadata;
    ++*(int *)user;
    return true;
}

static void reading_tells_that_memory_was_short(void **state)
{
    (void)state;
    spanprof_context context = {0};
    assert_int_equal(spanprof_baggage_set(&context, &context, "a", "1", "p"), SPANPROF_OK);
    assert_int_equal(spanprof_baggage_set(&context, &context, "b", "2", NULL), SPANPROF_OK);
    char value[8];
    size_t size = sizeof value;
    until_failure = 0;
    assert_int_equal(spanprof_baggage_get(&context, "a", value, &size), SPANPROF_ERROR_NO_MEMORY);
    int shown = 0, n = 0;
    spanprof_status status;
    do {
        shown = 0;
        until_failure = n++;
        status = spanprof_baggage_each(&context, count, &shown);
        assert_true(status == SPANPROF_OK ? shown == 2 : shown < 2);
    } while (status == SPANPROF_ERROR_NO_MEMORY && n < MOST);
    until_failure = -1;
    assert_int_equal(n, 2 * 3 + 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(extract_goes_on_without_what_found_no_memory),
        cmocka_unit_test(set_and_remove_change_all_or_nothing),
        traced(a_span_without_memory_for_its_tracestate_ends_without_it),
        cmocka_unit_test(reading_tells_that_memory_was_short),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
