/* SPDX-License-Identifier: Apache-2.0 */
/* W3C traceparent: a table of edge cases, the round trip, and every single-byte mutation of a valid
 * header. */
#include "unit/trace/support.h"
#include "trace/random_id.h"

#include <stdlib.h>

#include "core/hex.h"

#define TRACE "4bf92f3577b34da6a3ce929d0e0e4736"
#define SPAN  "00f067aa0ba902b7"
#define VALID "00-" TRACE "-" SPAN "-01"

static void extract_follows_the_table_of_edge_cases(void **state)
{
    (void)state;
    static const struct {
        const char *header;
        int flags; /* -1: not valid */
    } cases[] = {
        {VALID, 1},
        {"00-" TRACE "-" SPAN "-00", 0},
        {"00-" TRACE "-" SPAN "-02", 2},
        {"00-" TRACE "-" SPAN "-03", 3},
        {"00-" TRACE "-" SPAN "-ff", 3}, /* unknown flags are zeroed */
        {"00-" TRACE "-" SPAN "-fc", 0},
        {" \t" VALID "\t ", 1}, /* blanks around */
        {"  ", -1},
        {"", -1},
        {NULL, -1},
        {VALID "\n", -1},
        {"ff-" TRACE "-" SPAN "-01", -1},
        {"01-" TRACE "-" SPAN "-01", 1}, /* higher versions */
        {"fe-" TRACE "-" SPAN "-01", 1},
        {"cc-" TRACE "-" SPAN "-01-what-the-future-will-be-like", 1},
        {"cc-" TRACE "-" SPAN "-01-", 1},
        {"cc-" TRACE "-" SPAN "-01.what", -1},
        {"cc-" TRACE "-" SPAN "-011", -1},
        {"00-" TRACE "-" SPAN "-01-", -1}, /* version 00 is exactly as long as it is */
        {"00-" TRACE "-" SPAN "-01-what", -1},
        {"00-" TRACE "-" SPAN "-0", -1},
        {"00-" TRACE "-" SPAN, -1},
        {"00-" TRACE, -1},
        {"0", -1},
        {"0-" TRACE "-" SPAN "-01", -1},
        {"000-" TRACE "-" SPAN "-01", -1},
        {"0A-" TRACE "-" SPAN "-01", -1}, /* upper case */
        {"00-4BF92F3577B34DA6A3CE929D0E0E4736-" SPAN "-01", -1},
        {"00-" TRACE "-00F067AA0BA902B7-01", -1},
        {"00-" TRACE "-" SPAN "-0A", -1},
        {"00-00000000000000000000000000000000-" SPAN "-01", -1}, /* zero ids */
        {"00-" TRACE "-0000000000000000-01", -1},
        {"00-00000000000000000000000000000001-0000000000000001-01", 1},
        {"00-" TRACE "-" SPAN "-.0", -1},
        {"00-" TRACE "-" SPAN "-0.", -1},
        {"00-" TRACE "." SPAN "-01", -1},
        {"00-" TRACE "-" SPAN ".01", -1},
        {"00." TRACE "-" SPAN "-01", -1},
        {"00-4bf92f3577b34da6a3ce929d0e0e473-" SPAN "-01-", -1}, /* right length, wrong fields */
        {"00-" TRACE "--" SPAN "-1", -1},
        {"00- " TRACE "-" SPAN "-1", -1},
    };
    for (size_t i = 0; i < SP_ARRAY_LENGTH(cases); i++) {
        spanprof_context context;
        memset(&context, 0xee, sizeof context);
        bool valid = spanprof_context_extract(&context, cases[i].header, NULL);
        if (valid != (cases[i].flags >= 0))
            fail_msg("case %zu: %s", i, cases[i].header);
        if (!valid) {
            assert_memory_equal(&context, zeroes, sizeof context);
            continue;
        }
        assert_int_equal(context.trace_flags, cases[i].flags);
        assert_int_equal(context.remote, 1);
        assert_memory_equal(context.local_root_span_id, zeroes, 8);
    }
    assert_false(spanprof_context_extract(NULL, VALID, NULL));
}

static void tracestate_never_makes_a_traceparent_invalid(void **state)
{
    (void)state;
    static const char *const states[] = {"", "a=1", "a=1,b=2", "=,,=", "\xff", "no equals"};
    for (size_t i = 0; i < SP_ARRAY_LENGTH(states); i++) {
        spanprof_context context;
        assert_true(spanprof_context_extract(&context, VALID, states[i]));
        assert_false(spanprof_context_extract(&context, "00", states[i]));
    }
}

static void inject_writes_what_extract_reads(void **state)
{
    (void)state;
    for (int i = 0; i < 1000; i++) {
        spanprof_context context = {.trace_flags = (uint8_t)(i & 3)}, read;
        sp_random_id(context.trace_id, 16);
        sp_random_id(context.span_id, 8);
        char text[56];
        memset(text, 'x', sizeof text);
        assert_int_equal(spanprof_context_inject(&context, text), 55);
        assert_int_equal(strlen(text), 55);
        assert_true(spanprof_context_extract(&read, text, NULL));
        assert_memory_equal(read.trace_id, context.trace_id, 16);
        assert_memory_equal(read.span_id, context.span_id, 8);
        assert_int_equal(read.trace_flags, context.trace_flags);
    }
}

static void inject_of_an_invalid_context_writes_nothing(void **state)
{
    (void)state;
    char text[56] = "before";
    spanprof_context no_span = {.trace_id = {1}}, no_trace = {.span_id = {1}},
                     odd = {.trace_id = {1}, .span_id = {2}, .trace_flags = 0xfc};
    assert_int_equal(spanprof_context_inject(NULL, text), 0);
    assert_string_equal(text, "");
    text[0] = 'x';
    assert_int_equal(spanprof_context_inject(&no_span, text), 0);
    assert_string_equal(text, "");
    assert_int_equal(spanprof_context_inject(&no_trace, text), 0);
    assert_int_equal(spanprof_context_inject(&odd, NULL), 0);
    assert_int_equal(spanprof_context_inject(&odd, text), 55);
    assert_string_equal(text, "00-01000000000000000000000000000000-0200000000000000-00");
}

/* What the header says, computed apart from the code under test: ids as hex, by the grammar's
 * character classes. */
static bool expected_valid(const char *text)
{
    if (strlen(text) != 55 || strspn(text, "0123456789abcdef-") != 55 || memcmp(text, "ff", 2) == 0)
        return false;
    for (int i = 0; i < 55; i++)
        if ((text[i] == '-') != (i == 2 || i == 35 || i == 52))
            return false;
    return strspn(text + 3, "0") < 32 && strspn(text + 36, "0") < 16;
}

static void every_mutation_of_one_byte_gives_the_right_ids_or_none(void **state)
{
    (void)state;
    int valid = 0;
    for (int at = 0; at < 55; at++)
        for (int byte = 1; byte < 256; byte++) {
            if (byte == ' ' || byte == '\t')
                continue; /* at the ends these are blanks; the table has them */
            char *text = strdup(
                VALID); /* its own allocation: a read beyond it shows under AddressSanitizer */
            text[at] = (char)byte;
            spanprof_context context;
            bool got = spanprof_context_extract(&context, text, NULL);
            if (got != expected_valid(text))
                fail_msg("byte %d at %d", byte, at);
            if (got) {
                char trace[33], span[17];
                sp_hex_encode(trace, context.trace_id, 16);
                sp_hex_encode(span, context.span_id, 8);
                assert_memory_equal(trace, text + 3, 32);
                assert_memory_equal(span, text + 36, 16);
                valid++;
            }
            free(text);
        }
    /* Every digit may be any of sixteen, for none of these makes ff or a zero id; a dash may be a
     * dash. */
    assert_int_equal(valid, 52 * 16 + 3);
}

static void every_prefix_is_refused(void **state)
{
    (void)state;
    for (size_t length = 0; length < 55; length++) {
        char *text = strndup(VALID, length);
        spanprof_context context;
        assert_false(spanprof_context_extract(&context, text, "a=1"));
        free(text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(extract_follows_the_table_of_edge_cases),
        cmocka_unit_test(tracestate_never_makes_a_traceparent_invalid),
        cmocka_unit_test(inject_writes_what_extract_reads),
        cmocka_unit_test(inject_of_an_invalid_context_writes_nothing),
        cmocka_unit_test(every_mutation_of_one_byte_gives_the_right_ids_or_none),
        cmocka_unit_test(every_prefix_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
