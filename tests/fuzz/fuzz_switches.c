/* SPDX-License-Identifier: Apache-2.0 */
/* The time recorder's file: what is read keeps the promises of tool/read/switches.h, whatever the
 * bytes are, and a part of a file never says what the whole does not. */
#include "fuzz/fuzz.h"

#include "tool/read/switches.h"

static void check_thread(const sp_switches *switches, const sp_switch_thread *thread)
{
    for (size_t i = 0; i < thread->interval_count; i++) {
        const sp_switch_interval *interval = &thread->intervals[i];
        FUZZ_CHECK(interval->start_ns < interval->end_ns);
        FUZZ_CHECK(interval->start_ns == (i ? interval[-1].end_ns : thread->begin_ns));
        FUZZ_CHECK(interval->state != SP_SWITCH_STATE_CONTEXT ||
                   interval->context < switches->contexts.count);
        FUZZ_CHECK(i == 0 || interval->state != interval[-1].state ||
                   interval->context != interval[-1].context);
    }
    FUZZ_CHECK(thread->name[16] == 0);
}

static void check_order(const sp_switches *switches)
{
    for (size_t i = 1; i < switches->thread_count; i++) {
        const sp_switch_thread *a = &switches->threads[i - 1], *b = &switches->threads[i];
        FUZZ_CHECK(a->tid < b->tid || (a->tid == b->tid && a->begin_ns <= b->begin_ns));
    }
}

/* Looking up gives what the intervals say, where one thread has the id alone. */
static void check_find(const sp_switches *switches, size_t number)
{
    const sp_switch_thread *thread = &switches->threads[number];
    const sp_switch_context *context;
    for (size_t i = 0; i < switches->thread_count; i++)
        if (i != number && switches->threads[i].tid == thread->tid)
            return;
    for (size_t i = 0; i < thread->interval_count; i++) {
        const sp_switch_interval *interval = &thread->intervals[i];
        FUZZ_CHECK(sp_switches_find(switches, thread->tid, interval->start_ns, &context) ==
                   interval->state);
        FUZZ_CHECK((context != NULL) == (interval->state == SP_SWITCH_STATE_CONTEXT));
        if (i + 1 == thread->interval_count)
            FUZZ_CHECK(sp_switches_find(switches, thread->tid, interval->end_ns, &context) ==
                       SP_SWITCH_STATE_UNKNOWN);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length)
{
    sp_switches switches;
    const char *wrong = sp_switches_read(&switches, data, length);
    FUZZ_CHECK(switches.read_bytes <= length);
    FUZZ_CHECK(wrong || switches.is_cut || switches.read_bytes == length);
    for (size_t i = 0; i < switches.thread_count; i++) {
        check_thread(&switches, &switches.threads[i]);
        check_find(&switches, i);
    }
    check_order(&switches);
    sp_switches_deinit(&switches);
    return 0;
}
