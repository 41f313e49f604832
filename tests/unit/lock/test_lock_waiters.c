/* SPDX-License-Identifier: Apache-2.0 */
/* What a thread that gives a lock back leaves for those that wait: with each of them whose wait is
 * due, of that lock and no other, and never torn. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include <spanprof/context.h>
#include "core/clock.h"
#include "lock/lock_waiters.h"

enum { LOCKS = 4, ROUNDS = 20000, LEFT_LEAST = 100, PERIOD_NS = 1000 };

static sp_lock_waiters table;
static char locks[LOCKS]; /* addresses only */

static spanprof_context context_of(uint8_t byte)
{
    spanprof_context context = {.trace_flags = SPANPROF_TRACE_FLAG_SAMPLED};
    memset(context.trace_id, byte, sizeof context.trace_id);
    memset(context.span_id, byte, sizeof context.span_id);
    return context;
}

static uint32_t enter(const void *lock, uint64_t due_ns)
{
    return sp_lock_waiters_enter(&table, lock, due_ns, PERIOD_NS);
}

/* Every byte of what a giver under context_of left is the same. */
static uint8_t byte_of(const sp_lock_giver *giver)
{
    uint8_t bytes[sizeof giver->span];
    memcpy(bytes, &giver->span, sizeof bytes);
    for (size_t i = 0; i < sizeof bytes; i++)
        assert_int_equal(bytes[i], bytes[0]);
    assert_int_equal(sp_lock_giver_stack(giver)->header.size, sizeof(sp_sample_record));
    return bytes[0];
}

static void give_under(uint8_t byte, const void *lock)
{
    spanprof_context context = context_of(byte);
    spanprof_scope scope = spanprof_context_attach(&context);
    sp_lock_waiters_give(&table, lock, __builtin_return_address(0));
    spanprof_scope_detach(&scope);
}

/* What was left in PLACE; 0: nothing. */
static uint8_t close_place(uint32_t place)
{
    const sp_lock_giver *giver = sp_lock_waiters_close(&table, place);
    uint8_t byte = giver ? byte_of(giver) : 0;
    if (giver)
        sp_lock_waiters_leave(&table, place);
    return byte;
}

static void all_that_wait_are_told(void **state)
{
    (void)state;
    uint32_t first = enter(&locks[0], 0);
    uint32_t second = enter(&locks[0], 0);
    assert_int_not_equal(first, 0);
    assert_int_not_equal(first, second);
    give_under(0x11, &locks[0]);
    assert_int_equal(close_place(first), 0x11);
    assert_int_equal(close_place(second), 0x11);
}

/* Of the clock of the next give; 0: it goes by itself. */
static uint64_t held_ns;

uint64_t __real_sp_clock_monotonic_ns(void);
uint64_t __wrap_sp_clock_monotonic_ns(void);

uint64_t __wrap_sp_clock_monotonic_ns(void)
{
    return held_ns ? held_ns : __real_sp_clock_monotonic_ns();
}

/* Three threads hold the lock one after the other while one waits: for 100, 300 and 600 us. */
static void each_holder_is_named_for_its_share(void **state)
{
    (void)state;
    uint32_t named[4] = {0};
    for (uint32_t wait = 0; wait < ROUNDS; wait++) {
        uint64_t begin_ns = 1000000000 + UINT64_C(7919) * wait;
        uint32_t place = enter(&locks[0], begin_ns + wait % PERIOD_NS);
        const uint64_t over_ns[] = {100000, 400000, 1000000};
        for (uint8_t holder = 1; holder <= 3; holder++) {
            held_ns = begin_ns + over_ns[holder - 1];
            give_under(holder, &locks[0]);
        }
        named[close_place(place)]++;
    }
    held_ns = 0;
    assert_int_equal(named[0], 0);
    assert_in_range(named[1], ROUNDS * 9 / 100, ROUNDS * 11 / 100);
    assert_in_range(named[2], ROUNDS * 28 / 100, ROUNDS * 32 / 100);
    assert_in_range(named[3], ROUNDS * 58 / 100, ROUNDS * 62 / 100);
}

static void nobody_waits_any_more(void **state)
{
    (void)state;
    for (int set = 0; set < SP_LOCK_SETS; set++)
        assert_int_equal(table.waiting[set], 0);
}

static void another_lock_tells_nothing(void **state)
{
    (void)state;
    uint32_t place = enter(&locks[0], 0);
    assert_int_equal(table.waiting[sp_lock_set(&locks[0])], 1);
    for (int i = 1; i < LOCKS; i++)
        give_under(0x11, &locks[i]);
    assert_int_equal(close_place(place), 0);
}

/* A wait that may yet be too short for a sample costs the holder no stack. */
static void a_wait_that_is_not_due_is_not_told(void **state)
{
    (void)state;
    uint32_t place = enter(&locks[0], UINT64_MAX);
    give_under(0x11, &locks[0]);
    assert_int_equal(close_place(place), 0);
    place = enter(&locks[0], sp_clock_monotonic_ns());
    give_under(0x11, &locks[0]);
    assert_int_equal(close_place(place), 0x11);
}

static void a_giver_without_a_span_leaves_its_stack_alone(void **state)
{
    (void)state;
    uint32_t place = enter(&locks[0], 0);
    sp_lock_waiters_give(&table, &locks[0], NULL);
    const sp_lock_giver *giver = sp_lock_waiters_close(&table, place);
    assert_non_null(giver);
    assert_int_equal(byte_of(giver), 0);
    sp_lock_waiters_leave(&table, place);
}

static void one_too_many_has_no_place(void **state)
{
    (void)state;
    uint32_t places[SP_LOCK_WAYS];
    for (int i = 0; i < SP_LOCK_WAYS; i++)
        places[i] = enter(&locks[0], UINT64_MAX);
    assert_int_not_equal(places[SP_LOCK_WAYS - 1], 0);
    assert_int_equal(enter(&locks[0], 0), 0);
    for (int i = 0; i < SP_LOCK_WAYS; i++)
        assert_int_equal(close_place(places[i]), 0);
}

static void a_child_has_no_waiters(void **state)
{
    (void)state;
    for (int i = 0; i < SP_LOCK_WAYS; i++)
        enter(&locks[0], 0);
    sp_lock_waiters_fork_child(&table);
    nobody_waits_any_more(state);
    uint32_t place = enter(&locks[0], 0);
    assert_int_not_equal(place, 0);
    assert_int_equal(close_place(place), 0);
}

/* --- all at once ------------------------------------------------------------------------------ */

static _Atomic int done;

/* Each lock is given back under a context of its own. */
static void *give_again_and_again(void *unused)
{
    for (uint32_t i = 0; !done; i++)
        give_under((uint8_t)(0x10 + i % LOCKS), &locks[i % LOCKS]);
    return unused;
}

static void *wait_again_and_again(void *left)
{
    uint32_t *counts = left;
    for (uint32_t i = 0; i < ROUNDS || counts[0] < LEFT_LEAST; i++) {
        uint32_t place = enter(&locks[i % LOCKS], 0);
        for (volatile uint32_t turn = 0; turn < i % 400;)
            turn = turn + 1;
        uint8_t byte = place ? close_place(place) : 0;
        if (byte)
            assert_int_equal(byte, 0x10 + i % LOCKS);
        counts[0] += byte != 0;
    }
    return NULL;
}

static void waits_that_end_meanwhile_get_all_or_nothing(void **state)
{
    pthread_t givers[2], waiter;
    uint32_t left[2] = {0};
    for (int i = 0; i < 2; i++)
        pthread_create(&givers[i], NULL, give_again_and_again, NULL);
    pthread_create(&waiter, NULL, wait_again_and_again, &left[0]);
    wait_again_and_again(&left[1]);
    pthread_join(waiter, NULL);
    done = 1;
    for (int i = 0; i < 2; i++)
        pthread_join(givers[i], NULL);
    nobody_waits_any_more(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_that_wait_are_told),
        cmocka_unit_test(each_holder_is_named_for_its_share),
        cmocka_unit_test(another_lock_tells_nothing),
        cmocka_unit_test(a_wait_that_is_not_due_is_not_told),
        cmocka_unit_test(a_giver_without_a_span_leaves_its_stack_alone),
        cmocka_unit_test(one_too_many_has_no_place),
        cmocka_unit_test(nobody_waits_any_more),
        cmocka_unit_test(a_child_has_no_waiters),
        cmocka_unit_test(waits_that_end_meanwhile_get_all_or_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
