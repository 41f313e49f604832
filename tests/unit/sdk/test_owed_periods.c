/* SPDX-License-Identifier: Apache-2.0 */
/* For how many periods a tick stands that brings several (handler_sig.c: certain_periods), with
 * ticks that the thread takes itself. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include <spanprof/spanprof.h>
#include "cpu/cpu_engine.h"
#include "sdk/synthetic.h"
#include "context/thread.h"

static spanprof_scope scope;

static int start(void **state)
{
    (void)state;
    spanprof_options options = SPANPROF_OPTIONS_INIT;
    options.exporter = "none";
    options.cpu_hz = 1000;
    sp_sdk_use_synthetic_ticks();
    scope = spanprof_context_attach(NULL);
    return spanprof_start(&options, NULL) == SPANPROF_OK ? 0 : 1;
}

static int stop(void **state)
{
    (void)state;
    spanprof_scope_detach(&scope);
    return spanprof_stop(UINT64_MAX) == SPANPROF_OK ? 0 : 1;
}

static void change_context(void)
{
    spanprof_scope_detach(&scope);
    scope = spanprof_context_attach(NULL);
}

/* What a tick that brings PERIODS stood for. */
static uint32_t tick(uint32_t periods)
{
    const sp_thread *thread = sp_thread_self_create();
    uint64_t before = sp_load_relaxed(&thread->tick.weights);
    sp_engine_tick_here(periods);
    return (uint32_t)(sp_load_relaxed(&thread->tick.weights) - before);
}

static void periods_of_one_context_are_all_its(void **state)
{
    (void)state;
    change_context();
    assert_int_equal(tick(1), 1);
    assert_int_equal(tick(100000), 100000);
    assert_int_equal(tick(1), 1);
}

/* Two looks' worth at once, the rest later, in whatever context; and no period twice, and none
 * lost. */
static void what_looks_missed_is_owed(void **state)
{
    (void)state;
    uint32_t most = sp_handler.max_periods, missed = sp_handler.blocked_periods;
    assert_true(most > 1 && missed > 3 * most);
    change_context();
    assert_int_equal(tick(most), most);
    change_context();
    assert_int_equal(tick(missed), most);
    uint32_t owed = missed - most;
    for (; owed >= most; owed -= most - 1) {
        if (owed % 2)
            change_context();
        assert_int_equal(tick(1), most);
    }
    assert_int_equal(tick(1), 1 + owed);
    assert_int_equal(tick(1), 1);
}

/* A tick beyond two looks, all under one context, pays nothing of what is owed: it stands for
 * itself. */
static void what_is_owed_waits_behind_long_ticks(void **state)
{
    (void)state;
    uint32_t most = sp_handler.max_periods;
    change_context();
    assert_int_equal(tick(most + 1), most);
    assert_int_equal(tick(10 * most), 10 * most);
    assert_int_equal(tick(1), 2);
    assert_int_equal(tick(1), 1);
}

static void what_a_blocked_signal_missed_is_unattributed(void **state)
{
    (void)state;
    uint32_t most = sp_handler.max_periods;
    change_context();
    assert_int_equal(tick(sp_handler.blocked_periods + 1), most);
    assert_int_equal(tick(1), 1);
    change_context();
    assert_int_equal(tick(most + 3), most);
    change_context();
    assert_int_equal(tick(1000000), most); /* and what was owed before still is */
    assert_int_equal(tick(1), 1 + 3);
    assert_int_equal(tick(1), 1);
}

/* However often it happens, not more is owed than looks ever miss. */
static void what_is_owed_is_bounded(void **state)
{
    (void)state;
    uint32_t most = sp_handler.max_periods, missed = sp_handler.blocked_periods, paid = 0, got;
    for (int i = 0; i < 100; i++) {
        change_context();
        assert_int_equal(tick(missed), most);
    }
    while ((got = tick(1)) > 1)
        paid += got - 1;
    assert_int_equal(paid, missed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(periods_of_one_context_are_all_its, start, stop),
        cmocka_unit_test_setup_teardown(what_looks_missed_is_owed, start, stop),
        cmocka_unit_test_setup_teardown(what_is_owed_waits_behind_long_ticks, start, stop),
        cmocka_unit_test_setup_teardown(what_a_blocked_signal_missed_is_unattributed, start, stop),
        cmocka_unit_test_setup_teardown(what_is_owed_is_bounded, start, stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
