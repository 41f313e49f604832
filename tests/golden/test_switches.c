/* SPDX-License-Identifier: Apache-2.0 */
/* The time recorder's file byte by byte: switches.hex is what its writer lays down, and what its
 * reader finds in it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include <cmocka.h>

#include "core/clock.h"
#include "core/compiler.h"
#include "context/switch_recorder.h"
#include "context/thread.h"
#include "tool/read/switches.h"

/* The clock of the test moves on by 100 ns whenever it is read. */
static uint64_t now_ns = UINT64_C(1000000000000);
uint64_t __wrap_sp_clock_monotonic_ns(void);
uint64_t __wrap_sp_clock_monotonic_ns(void)
{
    return now_ns += 100;
}

/* The bytes of GOLDEN_DIR/switches.hex. */
static size_t load_golden(uint8_t out[4096])
{
    FILE *file = fopen(GOLDEN_DIR "/switches.hex", "r");
    char line[1000];
    size_t length = 0;
    assert_non_null(file);
    while (fgets(line, sizeof line, file)) {
        line[strcspn(line, "#\n")] = 0;
        unsigned byte;
        int used;
        for (const char *at = line; sscanf(at, "%2x%n", &byte, &used) == 1; at += used)
            out[length++] = (uint8_t)byte;
    }
    fclose(file);
    return length;
}

static spanprof_context context(uint8_t trace, uint8_t span, uint8_t root)
{
    spanprof_context c = {.trace_flags = SPANPROF_TRACE_FLAG_SAMPLED};
    memset(c.trace_id, trace, sizeof c.trace_id);
    memset(c.span_id, span, sizeof c.span_id);
    memset(c.local_root_span_id, root, sizeof c.local_root_span_id);
    return c;
}

static void switch_about(void)
{
    spanprof_context a = context(0x11, 0xa1, 0xa1), b = context(0x11, 0xb2, 0xa1);
    spanprof_context remote = context(0x22, 0xc3, 0);
    remote.remote = 1;
    remote.trace_flags = 0;
    spanprof_scope outer = spanprof_context_attach(&a), inner = spanprof_context_attach(&b);
    spanprof_scope_detach(&inner);
    spanprof_scope_detach(&outer);
    now_ns += 100 * SP_NS_PER_S;
    outer = spanprof_context_attach(&a);
    inner = spanprof_context_attach(&remote);
    sp_switch_recorder_span_start(&b, &a, UINT64_C(0xa1a1a1a1a1a1a1a1));
    sp_switch_recorder_span_end(&b);
    spanprof_scope_detach(&inner);
    spanprof_scope_detach(&outer);
    sp_switch_recorder_exit(sp_thread_self_create());
}

/* Where the thread's id and its slot's generation stand, which no file can foretell. */
enum { RECORDS_AT = 64 + 16, IDENTITY_AT = RECORDS_AT + 16, IDENTITY_BYTES = 8 };

static void writer_lays_down_the_golden_bytes(void **state)
{
    (void)state;
    uint8_t golden[4096], written[4096];
    size_t length = load_golden(golden), used = 0;
    sp_switch_piece pieces[2];
    uint64_t head;
    sp_thread *thread = sp_thread_self_create();
    prctl(PR_SET_NAME, "golden");
    uint32_t run = sp_switch_recorder_start();
    switch_about();
    sp_switch_recorder_stop();
    size_t count = sp_switch_ring_look(thread, run, pieces, &head, NULL);
    assert_in_range(count, 1, sizeof written / 8);
    for (int i = 0; i < 2; i++) {
        memcpy(written + used, pieces[i].words, pieces[i].count * 8);
        used += pieces[i].count * 8;
    }
    assert_true(RECORDS_AT + used < length);
    memcpy(written + IDENTITY_AT - RECORDS_AT, golden + IDENTITY_AT, IDENTITY_BYTES);
    assert_memory_equal(written, golden + RECORDS_AT, used);
    uint32_t bytes;
    memcpy(&bytes, golden + 64 + 4, sizeof bytes);
    assert_int_equal(bytes, used);
}

static void reader_finds_what_the_bytes_say(void **state)
{
    (void)state;
    static const struct {
        uint64_t start_ns, end_ns;
        uint8_t span; /* 0: none, 1: unknown */
    } expected[] = {
        {1000000000100, 1000000000200, 1},    {1000000000200, 1000000000300, 0xa1},
        {1000000000300, 1000000000400, 0xb2}, {1000000000400, 1000000000500, 0xa1},
        {1000000000500, 1100000000600, 0},    {1100000000600, 1100000000700, 0xa1},
        {1100000000700, 1100000001000, 0xc3}, {1100000001000, 1100000001100, 0xa1},
        {1100000001100, 1100000001200, 0},
    };
    uint8_t golden[4096];
    size_t length = load_golden(golden);
    sp_switches switches;
    assert_null(sp_switches_read(&switches, golden, length));
    assert_false(switches.is_cut);
    assert_int_equal(switches.pid, 4242);
    assert_int_equal(switches.lost, 0);
    assert_int_equal(switches.epoch_offset_ns, 1700000000000000000);
    assert_int_equal(switches.last_epoch_offset_ns, 1700000000000000007);
    assert_int_equal(switches.thread_count, 1);
    const sp_switch_thread *thread = switches.threads;
    assert_int_equal(thread->tid, 4243);
    assert_string_equal(thread->name, "golden");
    assert_true(thread->has_exited);
    assert_int_equal(thread->interval_count, SP_ARRAY_LENGTH(expected));
    for (size_t i = 0; i < SP_ARRAY_LENGTH(expected); i++) {
        const sp_switch_interval *interval = &thread->intervals[i];
        const sp_switch_context *c;
        assert_int_equal(interval->start_ns, expected[i].start_ns);
        assert_int_equal(interval->end_ns, expected[i].end_ns);
        sp_switch_state found = sp_switches_find(&switches, 4243, interval->start_ns, &c);
        assert_int_equal(found, expected[i].span == 1   ? SP_SWITCH_STATE_UNKNOWN
                                : expected[i].span == 0 ? SP_SWITCH_STATE_NONE
                                                        : SP_SWITCH_STATE_CONTEXT);
        if (found != SP_SWITCH_STATE_CONTEXT)
            continue;
        assert_int_equal(c->span_id[7], expected[i].span);
        assert_int_equal(c->trace_id[0], expected[i].span == 0xc3 ? 0x22 : 0x11);
        assert_int_equal(c->remote, expected[i].span == 0xc3);
        assert_int_equal(c->trace_flags, expected[i].span != 0xc3);
    }
    assert_int_equal(thread->event_count, 2);
    assert_int_equal(thread->events[0].parent_span_id[0], 0xa1);
    assert_int_equal(thread->events[1].time_ns, 1100000000900);
    assert_true(thread->events[1].is_end);
    sp_switches_deinit(&switches);
}

/* A record of a kind that only later versions know is passed over, by the length that the header
 * gives, and its time counts. */
static void reader_passes_over_kinds_that_it_does_not_know(void **state)
{
    (void)state;
    uint8_t golden[4096], later[4096];
    size_t length = load_golden(golden);
    enum { BEGIN_BYTES = 40, NEW_BYTES = 16 };
    memcpy(later, golden, RECORDS_AT + BEGIN_BYTES);
    later[48 + 12] = NEW_BYTES / 8;
    uint64_t record[2] = {12 | UINT64_C(50) << SP_SWITCH_DELTA_SHIFT, 1};
    memcpy(later + RECORDS_AT + BEGIN_BYTES, record, NEW_BYTES);
    memcpy(later + RECORDS_AT + BEGIN_BYTES + NEW_BYTES, golden + RECORDS_AT + BEGIN_BYTES,
           length - RECORDS_AT - BEGIN_BYTES);
    uint32_t bytes;
    memcpy(&bytes, later + 64 + 4, sizeof bytes);
    bytes += NEW_BYTES;
    memcpy(later + 64 + 4, &bytes, sizeof bytes);
    sp_switches switches;
    assert_null(sp_switches_read(&switches, later, length + NEW_BYTES));
    assert_int_equal(switches.threads[0].intervals[1].start_ns, UINT64_C(1000000000250));
    sp_switches_deinit(&switches);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(writer_lays_down_the_golden_bytes),
        cmocka_unit_test(reader_finds_what_the_bytes_say),
        cmocka_unit_test(reader_passes_over_kinds_that_it_does_not_know),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
