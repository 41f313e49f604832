/* SPDX-License-Identifier: Apache-2.0 */
/* The table of what contexts carry: an evicted handle gives nothing, a pinned entry stays, and no
 * handle ever gives what was put under another one, from any number of threads. */
#include "unit/trace/support.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/atomic.h"
#include "trace/carrier.h"
#include "unit/trace/headers.h"

#define VALID "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

static sp_carrier_counters table(void)
{
    sp_carrier_counters c;
    sp_carrier_counters_get(&c);
    return c;
}

static spanprof_carrier put(const char *trace_state, const char *baggage)
{
    return sp_carrier_put(&(sp_carried){.trace_state = trace_state,
                                        .baggage = baggage,
                                        .trace_state_length = (uint32_t)strlen(trace_state),
                                        .baggage_length = (uint32_t)strlen(baggage)});
}

static spanprof_carrier put_number(uint64_t number)
{
    char text[32];
    snprintf(text, sizeof text, "n=%llu", (unsigned long long)number);
    return put(text, "");
}

/* 1: CARRIER gives NUMBER, 0: nothing, -1: something else. */
static int gives(spanprof_carrier carrier, uint64_t number)
{
    char text[32];
    snprintf(text, sizeof text, "n=%llu", (unsigned long long)number);
    const sp_carried *carried = sp_carrier_pin(carrier);
    if (!carried)
        return 0;
    int result = strcmp(carried->trace_state, text) == 0 && !carried->baggage[0] ? 1 : -1;
    sp_carrier_unpin(carrier);
    return result;
}

static bool is_same(spanprof_carrier a, spanprof_carrier b)
{
    return a.slot == b.slot && a.generation == b.generation;
}

/* Numbers that no other test has put. */
static uint64_t fresh(uint64_t count)
{
    static uint64_t next = 1;
    uint64_t first = next;
    next += count;
    return first;
}

static void put_something_else(uint64_t count)
{
    for (uint64_t first = fresh(count), i = 0; i < count; i++)
        put_number(first + i);
}

static void equal_texts_have_one_entry(void **state)
{
    (void)state;
    uint64_t before = table().entries;
    spanprof_carrier one = put("a=1", "b=2"), same = put("a=1", "b=2");
    assert_true(is_same(one, same));
    assert_int_equal(table().entries, before + 1);
    assert_false(is_same(one, put("a=1", "")));
    assert_false(is_same(one, put("", "b=2")));
    assert_false(is_same(one, put("a=1b", "=2")));
    const sp_carried *carried = sp_carrier_pin(one);
    assert_string_equal(carried->trace_state, "a=1");
    assert_string_equal(carried->baggage, "b=2");
    assert_ptr_equal(sp_carrier_pinned(one), carried);
    sp_carrier_unpin(one);
}

static void nothing_has_the_zero_handle(void **state)
{
    (void)state;
    assert_true(sp_carrier_is_zero(put("", "")));
    assert_null(sp_carrier_pin((spanprof_carrier){0}));
}

static void handles_that_were_never_given_find_nothing(void **state)
{
    (void)state;
    spanprof_carrier real = put("a=1", ""), forged = real;
    for (uint32_t i = 1; i < 1000; i++) {
        forged.generation = real.generation + i;
        assert_null(sp_carrier_pin(forged));
        forged.generation = real.generation - i;
        assert_null(sp_carrier_pin(forged));
    }
    forged = real;
    for (uint32_t bit = 24; bit < 32; bit++) {
        forged.slot = real.slot ^ 1u << bit;
        assert_null(sp_carrier_pin(forged));
    }
    forged.slot = UINT32_MAX;
    assert_null(sp_carrier_pin(forged));
    forged.slot = SP_CARRIER_SLOTS + 1;
    assert_null(sp_carrier_pin(forged));
    assert_null(sp_carrier_pin((spanprof_carrier){.slot = SP_CARRIER_SLOTS, .generation = 0}));
}

static void the_oldest_makes_room_and_its_handle_gives_nothing(void **state)
{
    (void)state;
    put_something_else(SP_CARRIER_SLOTS); /* full */
    assert_int_equal(table().entries, SP_CARRIER_SLOTS);
    uint64_t evicted = table().evicted, first = fresh(3);
    spanprof_carrier old = put_number(first), used = put_number(first + 1);
    assert_int_equal(table().evicted, evicted + 2);
    put_something_else(SP_CARRIER_SLOTS - 2);
    assert_int_equal(gives(old, first), 1);
    assert_true(is_same(put_number(first + 1), used)); /* put again: as good as new */
    spanprof_carrier newer = put_number(first + 2);
    assert_int_equal(gives(old, first), 0);
    assert_int_equal(gives(used, first + 1), 1);
    assert_int_equal(gives(newer, first + 2), 1);
    assert_int_equal(old.slot & 0xffffff, newer.slot & 0xffffff); /* its place, and yet */
    assert_int_equal(table().entries, SP_CARRIER_SLOTS);
    assert_int_equal(table().dropped, 0);
}

static void pinned_entries_stay(void **state)
{
    (void)state;
    uint64_t first = fresh(1), dropped = table().dropped;
    spanprof_carrier carrier = put_number(first);
    assert_non_null(sp_carrier_pin(carrier));
    put_something_else(3 * SP_CARRIER_SLOTS);
    assert_int_equal(gives(carrier, first), 1);
    assert_int_equal(table().dropped, dropped);
    sp_carrier_unpin(carrier);
    put_something_else(2 * SP_CARRIER_SLOTS);
    assert_int_equal(gives(carrier, first), 0);
}

/* Long rows of them are no reason to drop what is new, and the end of their pins is noticed. */
static void rows_of_pinned_entries_cost_nobody_his_place(void **state)
{
    (void)state;
    enum { ROW = SP_CARRIER_SLOTS - 10 };
    static spanprof_carrier carriers[ROW];
    uint64_t dropped = table().dropped;
    for (int turn = 0; turn < 3; turn++) {
        uint64_t first = fresh(ROW);
        for (int i = 0; i < ROW; i++) {
            carriers[i] = put_number(first + (uint64_t)i);
            assert_non_null(sp_carrier_pin(carriers[i]));
        }
        put_something_else(SP_CARRIER_SLOTS);
        for (int i = 0; i < ROW; i++) {
            assert_int_equal(gives(carriers[i], first + (uint64_t)i), 1);
            sp_carrier_unpin(carriers[i]);
        }
        put_something_else(2 * SP_CARRIER_SLOTS);
        for (int i = 0; i < ROW; i++)
            assert_int_equal(gives(carriers[i], first + (uint64_t)i), 0);
    }
    assert_int_equal(table().dropped, dropped);
}

static void a_table_full_of_pins_drops_what_is_new(void **state)
{
    (void)state;
    static spanprof_carrier carriers[SP_CARRIER_SLOTS];
    uint64_t first = fresh(SP_CARRIER_SLOTS), dropped = table().dropped;
    for (int i = 0; i < SP_CARRIER_SLOTS; i++) {
        carriers[i] = put_number(first + (uint64_t)i);
        assert_non_null(sp_carrier_pin(carriers[i]));
    }
    assert_true(sp_carrier_is_zero(put_number(fresh(1))));
    assert_int_equal(table().dropped, dropped + 1);
    spanprof_context context;
    assert_true(spanprof_context_extract(&context, VALID, "a=full")); /* the trace goes on */
    assert_true(sp_carrier_is_zero(context.carrier));
    assert_int_equal(spanprof_baggage_set(&context, &context, "k", "v", NULL),
                     SPANPROF_ERROR_NO_MEMORY);
    for (int i = 0; i < SP_CARRIER_SLOTS; i++) {
        assert_int_equal(gives(carriers[i], first + (uint64_t)i), 1);
        sp_carrier_unpin(carriers[i]);
    }
    assert_false(sp_carrier_is_zero(put_number(fresh(1))));
}

static void bytes_are_bounded(void **state)
{
    (void)state;
    char *big = malloc(9000);
    memset(big, 'x', 8999);
    big[8999] = 0;
    for (int i = 0; i < 4000; i++) {
        snprintf(big, 9000, "%08d", i);
        big[8] = 'x';
        assert_false(sp_carrier_is_zero(put("", big)));
        assert_in_range(table().bytes, 1, SP_CARRIER_BYTES_MAX);
    }
    assert_in_range(table().entries, 1500, SP_CARRIER_BYTES_MAX / 9000);
    free(big);
    put_something_else(2 * SP_CARRIER_SLOTS);
    assert_int_equal(table().entries, SP_CARRIER_SLOTS);
}

static void live_spans_pin_what_their_context_carries(void **state)
{
    (void)state;
    spanprof_span_options options = SPANPROF_SPAN_OPTIONS_INIT;
    for (int sampled = 0; sampled < 2; sampled++) {
        spanprof_context remote;
        char traceparent[] = VALID;
        traceparent[54] = (char)('0' + sampled);
        assert_true(spanprof_context_extract(&remote, traceparent, "span=1"));
        options.parent = &remote;
        spanprof_span span = spanprof_span_start(NULL, "s", &options);
        put_something_else(2 * SP_CARRIER_SLOTS);
        spanprof_context context = spanprof_span_context(span);
        char *got = injected(&context, "tracestate");
        assert_string_equal(got, "span=1");
        free(got);
        spanprof_span_end(span);
        put_something_else(2 * SP_CARRIER_SLOTS);
        assert_null(injected(&context, "tracestate"));
        if (sampled) { /* a finished span has its own */
            sp_span_data *data = take_one();
            assert_string_equal(data->trace_state, "span=1");
            sp_span_data_release(data);
        }
        span = spanprof_span_start(NULL, "late", &options); /* under a context that lost it */
        context = spanprof_span_context(span);
        assert_true(sp_carrier_is_zero(context.carrier));
        spanprof_span_end(span);
        release_all();
    }
}

/* --- threads ---------------------------------------------------------------------------------- */

enum { THREADS = 4, ROUNDS = 30000, SHARED = 64 };

/* Handles that all threads use; the number that belongs to shared_handles[i] is in its low bits by
 * construction of put_number. */
static _Atomic uint64_t shared_handles[SHARED];
static _Atomic uint64_t shared_numbers[SHARED];
static _Atomic int wrong, found;

static uint64_t pack(spanprof_carrier carrier)
{
    return (uint64_t)carrier.slot << 32 | carrier.generation;
}

static spanprof_carrier unpack(uint64_t word)
{
    return (spanprof_carrier){.slot = (uint32_t)(word >> 32), .generation = (uint32_t)word};
}

static void *put_and_pin(void *argument)
{
    uint64_t me = (uint64_t)(uintptr_t)argument;
    for (uint64_t i = 0; i < ROUNDS; i++) {
        uint64_t number = me << 40 | i;
        spanprof_carrier carrier = put_number(number);
        /* Nothing, when the other threads put a whole table while this one waited for a processor.
         */
        if (gives(carrier, number) < 0)
            sp_count(&wrong, 1);
        size_t at = (size_t)(i * 7 + me) % SHARED;
        /* Another thread's handle: what it gives is something whole that was put once, or nothing.
         */
        const sp_carried *carried = sp_carrier_pin(unpack(sp_load_relaxed(&shared_handles[at])));
        if (carried) {
            if (strncmp(carried->trace_state, "n=", 2) != 0 ||
                strlen(carried->trace_state) != carried->trace_state_length)
                sp_count(&wrong, 1);
            sp_count(&found, 1);
            sp_carrier_unpin(unpack(sp_load_relaxed(&shared_handles[at])));
        }
    }
    return NULL;
}

/* The handles stay as they are while threads pin them and the table turns over. */
static void threads_never_get_what_is_not_theirs(void **state)
{
    (void)state;
    uint64_t first = fresh(SHARED);
    for (int i = 0; i < SHARED; i++) {
        spanprof_carrier carrier = put_number(first + (uint64_t)i);
        sp_store_relaxed(&shared_handles[i], pack(carrier));
        sp_store_relaxed(&shared_numbers[i], first + (uint64_t)i);
        assert_non_null(sp_carrier_pin(carrier)); /* so that they are found, too */
    }
    pthread_t threads[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, put_and_pin, (void *)(i + 1)), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(wrong, 0);
    assert_int_equal(found, THREADS * ROUNDS);
    for (int i = 0; i < SHARED; i++) {
        spanprof_carrier carrier = unpack(sp_load_relaxed(&shared_handles[i]));
        assert_int_equal(gives(carrier, sp_load_relaxed(&shared_numbers[i])), 1);
        sp_carrier_unpin(carrier);
    }
    put_something_else(2 * SP_CARRIER_SLOTS); /* no pin was lost or left */
    for (int i = 0; i < SHARED; i++)
        assert_int_equal(
            gives(unpack(sp_load_relaxed(&shared_handles[i])), sp_load_relaxed(&shared_numbers[i])),
            0);
}

/* --- fork ------------------------------------------------------------------------------------- */

static _Atomic bool stop_putting;
static _Atomic uint64_t puts_allowed, puts_done;

/* So many in a turn that the fork comes in the middle, and so few that what the turn itself put is
 * not evicted by two turns' puts. */
enum { PUTS_A_TURN = 5000 };
_Static_assert(2 * PUTS_A_TURN + 3 < SP_CARRIER_SLOTS, "room for a turn");

static void *put_what_is_allowed(void *argument)
{
    (void)argument;
    for (uint64_t i = 0; !sp_load_relaxed(&stop_putting);) {
        if (i < sp_load_relaxed(&puts_allowed))
            put_number(UINT64_C(1) << 60 | i++);
        else
            sched_yield();
        sp_store_relaxed(&puts_done, i);
    }
    return NULL;
}

/* ASan's allocator does not survive a fork in the middle of another thread's call: its locks stay
 * as they were, and the child waits for them for ever. There, the other thread rests; with glibc's
 * it does not. */
static void make_fork_safe(void)
{
#if defined(__SANITIZE_ADDRESS__)
    while (sp_load_relaxed(&puts_done) != sp_load_relaxed(&puts_allowed))
        sched_yield();
#endif
}

/* Three entries, the first two pinned by the parent. The child has what its contexts carry, and
 * none of the pins of spans that it does not have. */
static int check_child(const spanprof_carrier carriers[3], uint64_t first)
{
    alarm(300);
    sp_carrier_unpin(carriers[0]); /* the pin is the parent's: a no-op */
    for (int i = 0; i < 3; i++)
        if (gives(carriers[i], first + (uint64_t)i) != 1)
            return 1;
    put_something_else(2 * SP_CARRIER_SLOTS);
    for (int i = 0; i < 3; i++)
        if (gives(carriers[i], first + (uint64_t)i) != 0)
            return 2;
    return table().dropped == 0 ? 0 : 3;
}

static void a_forked_child_keeps_entries_and_drops_pins(void **state)
{
    (void)state;
    pthread_t thread;
    uint64_t first = fresh(3);
    assert_int_equal(pthread_create(&thread, NULL, put_what_is_allowed, NULL), 0);
    for (int turn = 0; turn < 20; turn++) { /* in the middle of whatever the other thread does */
        spanprof_carrier carriers[3];
        sp_count(&puts_allowed, PUTS_A_TURN);
        for (int i = 0; i < 3; i++) {
            carriers[i] = put_number(first + (uint64_t)i);
            assert_non_null(sp_carrier_pin(carriers[i]));
        }
        sp_carrier_unpin(carriers[2]);
        make_fork_safe();
        pid_t child = fork();
        if (child == 0)
            _exit(check_child(carriers, first));
        int status = -1;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 0);
        sp_carrier_unpin(carriers[0]);
        sp_carrier_unpin(carriers[1]);
    }
    sp_store_relaxed(&stop_putting, true);
    pthread_join(thread, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_texts_have_one_entry),
        cmocka_unit_test(nothing_has_the_zero_handle),
        cmocka_unit_test(handles_that_were_never_given_find_nothing),
        cmocka_unit_test(the_oldest_makes_room_and_its_handle_gives_nothing),
        cmocka_unit_test(pinned_entries_stay),
        cmocka_unit_test(rows_of_pinned_entries_cost_nobody_his_place),
        cmocka_unit_test(bytes_are_bounded),
        traced(live_spans_pin_what_their_context_carries),
        cmocka_unit_test(threads_never_get_what_is_not_theirs),
        cmocka_unit_test(a_forked_child_keeps_entries_and_drops_pins),
        cmocka_unit_test(a_table_full_of_pins_drops_what_is_new),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
