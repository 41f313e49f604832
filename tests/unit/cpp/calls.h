/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of the API in C++ (calls.cpp). For each there is the same call in C (test_calls.c). */
#ifndef TESTS_UNIT_CPP_CALLS_H
#define TESTS_UNIT_CPP_CALLS_H

#include <spanprof/spanprof.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CALLS(XX)                                                                                  \
    XX(start_with_options)                                                                         \
    XX(attributes)                                                                                 \
    XX(views)                                                                                      \
    XX(long_texts)                                                                                 \
    XX(arrays)                                                                                     \
    XX(events)                                                                                     \
    XX(links)                                                                                      \
    XX(status_and_name)                                                                            \
    XX(errors)                                                                                     \
    XX(scopes)                                                                                     \
    XX(contexts)                                                                                   \
    XX(instrumentation)

#define DECLARE(name) void cpp_##name(void);
CALLS(DECLARE)
#undef DECLARE

/* The traceparent of a remote context: 55 characters and a NUL. */
extern const char calls_traceparent[56];
/* 3,000 bytes and a NUL. From the third byte on there are two-byte characters, so that a cut after
 * 1,023 bytes would split a character. */
extern char calls_long_text[3001];

/* How often operator new was called. */
unsigned cpp_news(void);
/* Cases that have no counterpart in C. Each returns NULL, or a text that says what was wrong. */
const char *cpp_moved_spans_end_once(void);
const char *cpp_spans_end_when_something_is_thrown(void);
const char *cpp_scopes_end_in_any_order(void);
const char *cpp_headers_and_baggage_travel(void);
const char *cpp_functions_carry_the_context_where_they_were_made(void);
const char *cpp_fibers_have_scopes_of_their_own(void);
const char *cpp_nothing_is_misused(void);

#ifdef __cplusplus
}
#endif

#endif
