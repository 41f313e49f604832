/* SPDX-License-Identifier: Apache-2.0 */
/* A file of switches that does not take what is written to it: a FIFO whose reader sleeps. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include <spanprof/spanprof.h>
#include "core/clock.h"
#include "sdk/switch_file.h"

static char directory[64], path[96];
static int fifo; /* both of its ends */

static int setup(void **state)
{
    (void)state;
    strcpy(directory, "/tmp/spanprof-test-XXXXXX");
    assert_non_null(mkdtemp(directory));
    snprintf(path, sizeof path, "%s/switches", directory);
    assert_int_equal(mkfifo(path, 0600), 0);
    fifo = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
    return fifo < 0;
}

static int teardown(void **state)
{
    (void)state;
    close(fifo);
    unlink(path);
    return rmdir(directory);
}

static void fill(void)
{
    static const char page[4096];
    while (write(fifo, page, sizeof page) > 0)
        continue;
}

static void expect_less_than_5_s(uint64_t before_ns)
{
    assert_true(sp_clock_monotonic_ns() - before_ns < 100 * SP_NS_PER_S);
}

static void fifo_is_full_start_goes_on_without_it(void **state)
{
    (void)state;
    fill();
    uint64_t before_ns = sp_clock_monotonic_ns();
    assert_false(sp_switch_file_start(path));
    expect_less_than_5_s(before_ns);
}

static void fifo_fills_up_stop_returns_in_time(void **state)
{
    (void)state;
    assert_true(sp_switch_file_start(path));
    fill();
    spanprof_context context = {.trace_flags = SPANPROF_TRACE_FLAG_SAMPLED};
    memset(context.trace_id, 1, sizeof context.trace_id);
    memset(context.span_id, 1, sizeof context.span_id);
    spanprof_scope scope = spanprof_context_attach(&context);
    spanprof_scope_detach(&scope);
    uint64_t before_ns = sp_clock_monotonic_ns();
    assert_int_equal(sp_switch_file_flush(before_ns + SP_NS_PER_S / 10), SPANPROF_ERROR_TIMEOUT);
    assert_int_equal(sp_switch_file_stop(before_ns + SP_NS_PER_S / 5), SPANPROF_ERROR_TIMEOUT);
    expect_less_than_5_s(before_ns);
}

#define CASE(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
    alarm(300);
    const struct CMUnitTest tests[] = {
        CASE(fifo_is_full_start_goes_on_without_it),
        CASE(fifo_fills_up_stop_returns_in_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
