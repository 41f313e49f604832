/* SPDX-License-Identifier: Apache-2.0 */
/* What `run --attach` says at its end of the stops of threads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "attach/attach.h"
#include "tool/command/run.h"

#define MS UINT64_C(1000000)

static char text[SP_RUN_STOPS_LENGTH];

static const char *text_of(sp_attach_outcome outcome, uint64_t hz)
{
    outcome.sampled_ns = 10000 * MS;
    return sp_run_stops_text(text, &outcome, hz);
}

static void without_stops_nothing_is_said(void **state)
{
    (void)state;
    assert_string_equal(text_of((sp_attach_outcome){.stops = 0}, 99), "");
}

static void short_stops_are_figures_only(void **state)
{
    (void)state;
    const sp_attach_outcome outcome = {.stops = 100, .stop_ns = 10 * MS, .longest_stop_ns = MS};
    assert_string_equal(
        text_of(outcome, 99),
        "a thread stood still 100 times, for 100 us on average and 1.00 ms at most, "
        "together 0.1 % of 10.0 s");
}

static void one_long_stop_is_a_warning(void **state)
{
    (void)state;
    const sp_attach_outcome outcome = {
        .stops = 1, .stop_ns = 2 * MS, .longest_stop_ns = 2 * MS, .needs_stops = true};
    assert_string_equal(
        text_of(outcome, 99),
        "a thread stood still 1 time, for 2.00 ms on average and 2.00 ms at most, "
        "together 0.0 % of 10.0 s: the process may have been slower for it; --hz 49 "
        "stops it half as often, a free core makes the stops shorter");
}

static void many_short_stops_are_a_warning(void **state)
{
    (void)state;
    const sp_attach_outcome outcome = {
        .stops = 2000, .stop_ns = 101 * MS, .longest_stop_ns = MS / 2};
    assert_non_null(strstr(text_of(outcome, 1), "together 1.0 % of 10.0 s: the process may"));
    assert_null(strstr(text, "--hz"));
    assert_non_null(strstr(text, ", and perf events need no stop (kernel.perf_event_paranoid"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_stops_nothing_is_said),
        cmocka_unit_test(short_stops_are_figures_only),
        cmocka_unit_test(one_long_stop_is_a_warning),
        cmocka_unit_test(many_short_stops_are_a_warning),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
