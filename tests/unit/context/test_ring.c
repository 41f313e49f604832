/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "context/ring_sig.h"

typedef struct test_record {
    sp_record header;
    uint64_t serial;
    uint64_t fill[];
} test_record;

static bool push(sp_ring *ring, uint64_t serial, uint32_t words)
{
    uint64_t size = sizeof(test_record) + words * 8;
    test_record *record = sp_ring_reserve(ring, size);
    if (!record)
        return false;
    record->header = (sp_record){.size = (uint32_t)size, .kind = SP_RECORD_SAMPLE};
    record->serial = serial;
    for (uint32_t i = 0; i < words; i++)
        record->fill[i] = serial * 31 + i;
    sp_ring_commit(ring, size);
    return true;
}

/* Pop everything; records must come with serials from *NEXT on, whole. */
static int pop_all(sp_ring *ring, uint64_t *next)
{
    int count = 0;
    uint64_t head = sp_load_acquire(&ring->head);
    for (const sp_record *record; (record = sp_ring_peek(ring, head)) != NULL;
         sp_ring_pop(ring, record)) {
        if (record->kind == SP_RECORD_SKIP)
            continue;
        const test_record *test = (const test_record *)record;
        assert_int_equal(test->serial, *next);
        for (uint32_t i = 0; i < (record->size - sizeof *test) / 8; i++)
            assert_int_equal(test->fill[i], test->serial * 31 + i);
        ++*next;
        count++;
    }
    return count;
}

static void ring_full_drops_newest(void **state)
{
    (void)state;
    sp_ring ring = {.size = 0};
    assert_true(sp_ring_init(&ring, 4096));
    uint64_t pushed = 0, next = 0;
    while (push(&ring, pushed, 10))
        pushed++;
    assert_int_equal(pushed, 4096 / (16 + 80));
    assert_int_equal(pop_all(&ring, &next), (int)pushed);
    assert_true(push(&ring, pushed, 10));
    sp_ring_deinit(&ring);
}

static void ring_record_never_wraps(void **state)
{
    (void)state;
    sp_ring ring = {.size = 0};
    assert_true(sp_ring_init(&ring, 4096));
    uint64_t serial = 0, next = 0;
    for (int round = 0; round < 10000; round++) {
        assert_true(push(&ring, serial, (uint32_t)(round * 7 % 100)));
        serial++;
        assert_int_equal(pop_all(&ring, &next), 1);
    }
    sp_ring_deinit(&ring);
}

static void ring_uncommitted_record_never_was(void **state)
{
    (void)state;
    sp_ring ring = {.size = 0};
    assert_true(sp_ring_init(&ring, 4096));
    uint64_t next = 7;
    assert_non_null(sp_ring_reserve(&ring, 512));
    assert_true(push(&ring, 7, 3));
    assert_int_equal(pop_all(&ring, &next), 1);
    sp_ring_deinit(&ring);
}

/* Two records, of which the first has SIZE now, are skipped; the ring can be used again. */
static void expect_skipped(uint32_t size)
{
    sp_ring ring = {.size = 0};
    uint64_t next = 3;
    assert_true(sp_ring_init(&ring, 4096));
    assert_true(push(&ring, 1, 10));
    assert_true(push(&ring, 2, 10));
    sp_record *first = (sp_record *)(void *)sp_load_relaxed(&ring.data);
    first->size = size;
    assert_int_equal(pop_all(&ring, &next), 0);
    assert_int_equal(sp_load_relaxed(&ring.tail), sp_load_relaxed(&ring.head));
    assert_int_equal(ring.corrupt, 1);
    assert_true(push(&ring, 3, 10));
    assert_int_equal(pop_all(&ring, &next), 1);
    assert_int_equal(ring.corrupt, 1);
    sp_ring_deinit(&ring);
}

static void ring_record_of_a_size_that_cannot_be_is_skipped_to_the_head(void **state)
{
    (void)state;
    expect_skipped(0);
    expect_skipped(4);                 /* smaller than a header */
    expect_skipped(12);                /* no multiple of 8 */
    expect_skipped(2 * (16 + 80) + 8); /* beyond the head */
    expect_skipped(4096 + 8);          /* beyond the ring */
    expect_skipped(UINT32_MAX & ~7u);
}

/* The tail is where a record could begin only if the ring had another size. */
static void ring_tail_beyond_the_head_is_set_back(void **state)
{
    (void)state;
    sp_ring ring = {.size = 0};
    uint64_t next = 1;
    assert_true(sp_ring_init(&ring, 4096));
    sp_store_relaxed(&ring.tail, 8192 + 4088);
    assert_int_equal(pop_all(&ring, &next), 0);
    assert_int_equal(ring.corrupt, 1);
    assert_true(push(&ring, 1, 10));
    assert_int_equal(pop_all(&ring, &next), 1);
    sp_ring_deinit(&ring);
}

enum { CROSSING = 200000 };

static void *produce(void *argument)
{
    sp_ring *ring = argument;
    for (uint64_t serial = 0; serial < CROSSING;)
        if (push(ring, serial, (uint32_t)(serial % 50)))
            serial++;
        else
            sched_yield();
    return NULL;
}

static void ring_two_threads_lose_and_tear_nothing(void **state)
{
    (void)state;
    sp_ring ring = {.size = 0};
    assert_true(sp_ring_init(&ring, 8192));
    pthread_t producer;
    pthread_create(&producer, NULL, produce, &ring);
    uint64_t next = 0;
    while (next < CROSSING)
        if (pop_all(&ring, &next) == 0)
            sched_yield();
    pthread_join(producer, NULL);
    sp_ring_deinit(&ring);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ring_full_drops_newest),
        cmocka_unit_test(ring_record_never_wraps),
        cmocka_unit_test(ring_uncommitted_record_never_was),
        cmocka_unit_test(ring_record_of_a_size_that_cannot_be_is_skipped_to_the_head),
        cmocka_unit_test(ring_tail_beyond_the_head_is_set_back),
        cmocka_unit_test(ring_two_threads_lose_and_tear_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
