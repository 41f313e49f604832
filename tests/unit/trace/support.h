/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the tests of the tracer: a tracer that runs for one test, and its finished spans. */
#ifndef TESTS_UNIT_TRACER_SUPPORT_H
#define TESTS_UNIT_TRACER_SUPPORT_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <spanprof/tracer.h>
#include "core/clock.h"
#include "core/compiler.h"
#include "trace/provider.h"

enum { ATTRIBUTE_LIMIT = 128, QUEUE = 2048 };

static const uint8_t zeroes[64];

static inline sp_tracer_counters counters(void)
{
    sp_tracer_counters c;
    sp_tracer_counters_get(&c);
    return c;
}

static inline bool is_valid(const spanprof_context *context)
{
    return memcmp(context->trace_id, zeroes, 16) != 0 && memcmp(context->span_id, zeroes, 8) != 0;
}

static inline sp_span_data *take_one(void)
{
    sp_span_data *data = NULL;
    assert_int_equal(sp_tracer_take(&data, 1), 1);
    assert_non_null(data);
    return data;
}

static inline size_t release_all(void)
{
    sp_span_data *data;
    size_t count = 0;
    for (; sp_tracer_take(&data, 1) == 1; count++)
        sp_span_data_release(data);
    return count;
}

static inline int start_tracer(void **state)
{
    (void)state;
    sp_tracer_config config = {.queue_spans = QUEUE, .limits = SP_SPAN_LIMITS_INIT, .record = true};
    return sp_tracer_start(&config);
}

/* Restart the tracer with LIMITS for the rest of the test. */
static inline void use_limits(sp_span_limits limits)
{
    sp_tracer_config config = {.queue_spans = QUEUE, .limits = limits, .record = true};
    sp_tracer_stop();
    assert_int_equal(sp_tracer_start(&config), SPANPROF_OK);
}

/* Stop the tracer. The test fails if it has left something: a span in the queue, a span that did
 * not end, or an active context of this thread. */
static inline int stop_tracer(void **state)
{
    (void)state;
    spanprof_context current = spanprof_context_current();
    sp_tracer_counters c = counters();
    bool clean = !is_valid(&current) && sp_tracer_queued() == 0 && c.spans_started == c.spans_ended;
    release_all();
    sp_tracer_stop();
    return clean ? 0 : -1;
}

#define traced(test) cmocka_unit_test_setup_teardown(test, start_tracer, stop_tracer)

#endif
