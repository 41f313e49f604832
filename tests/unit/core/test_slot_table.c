/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <cmocka.h>

#include "core/lock.h"
#include "core/slot_table.h"

static bool memory_is_short;

void *__real_mmap(void *address, size_t bytes, int protection, int flags, int fd, off_t offset);
int __real_mprotect(void *address, size_t bytes, int protection);
void *__wrap_mmap(void *address, size_t bytes, int protection, int flags, int fd, off_t offset);
int __wrap_mprotect(void *address, size_t bytes, int protection);

void *__wrap_mmap(void *address, size_t bytes, int protection, int flags, int fd, off_t offset)
{
    return memory_is_short ? MAP_FAILED
                           : __real_mmap(address, bytes, protection, flags, fd, offset);
}

int __wrap_mprotect(void *address, size_t bytes, int protection)
{
    return memory_is_short ? -1 : __real_mprotect(address, bytes, protection);
}

/* As large as a thread's state, so that a step of memory holds some hundred. */
typedef struct thing {
    _Atomic uint64_t value;
    _Atomic uint32_t generation;
    uint32_t next;
    uint32_t number;
    uint8_t rest[1004];
} thing;

enum { THINGS = 1000 };

static void init_thing(void *slot, uint32_t number)
{
    thing *thing = slot;
    assert_int_equal(thing->number, 0);
    thing->number = number;
}

static sp_slot_table make_table(uint32_t maximum)
{
    return (sp_slot_table)SP_SLOT_TABLE(thing, next, maximum, init_thing);
}

static void free_table(sp_slot_table *table)
{
    if (table->memory)
        munmap(table->memory, ((size_t)table->maximum * sizeof(thing) | 0x3ffff) + 1);
}

static void slots_have_numbers_from_one_on_and_the_last_given_is_the_next(void **state)
{
    (void)state;
    sp_slot_table table = make_table(THINGS);
    thing *taken[3];
    assert_false(sp_slot_was_taken(&table, 0));
    assert_false(sp_slot_was_taken(&table, 1));
    for (uint32_t i = 0; i < 3; i++) {
        taken[i] = sp_slot_take(&table);
        assert_int_equal(taken[i]->number, i + 1);
        assert_int_equal(sp_slots_ever_taken(&table), i + 1);
    }
    sp_slot_give(&table, taken[0]);
    sp_slot_give(&table, taken[2]);
    assert_ptr_equal(sp_slot_take(&table), taken[2]);
    assert_ptr_equal(sp_slot_take(&table), taken[0]);
    assert_int_equal(sp_slots_ever_taken(&table), 3);
    assert_true(sp_slot_was_taken(&table, 3));
    assert_false(sp_slot_was_taken(&table, 4));
    assert_false(sp_slot_was_taken(&table, UINT32_MAX));
    free_table(&table);
}

static void fill(sp_slot_table *table, uint32_t count)
{
    for (uint32_t number = 1; number <= count; number++) {
        thing *thing = sp_slot_take(table);
        assert_non_null(thing);
        assert_int_equal(thing->number, number);
        memset(thing->rest, 0xff, sizeof thing->rest);
    }
}

static void full_table_gives_none_until_a_slot_is_given_back(void **state)
{
    (void)state;
    sp_slot_table table = make_table(THINGS);
    assert_true(sp_slot_is_available(&table));
    fill(&table, THINGS);
    assert_false(sp_slot_is_available(&table));
    assert_null(sp_slot_take(&table));
    thing *last = (thing *)table.memory + THINGS - 1;
    assert_int_equal(last->number, THINGS);
    sp_slot_give(&table, last);
    assert_true(sp_slot_is_available(&table));
    assert_ptr_equal(sp_slot_take(&table), last);
    assert_null(sp_slot_take(&table));
    free_table(&table);
}

/* Short at the first slot, and where the memory of those before it ends. */
static void table_without_memory_gives_none_and_goes_on_when_there_is_some(void **state)
{
    (void)state;
    sp_slot_table table = make_table(THINGS);
    memory_is_short = true;
    assert_null(sp_slot_take(&table));
    memory_is_short = false;
    fill(&table, 1);
    memory_is_short = true;
    uint32_t before_the_end = 1;
    while (sp_slot_take(&table))
        before_the_end++;
    assert_true(before_the_end > 100 && before_the_end < THINGS);
    assert_int_equal(sp_slots_ever_taken(&table), before_the_end);
    memory_is_short = false;
    thing *thing = sp_slot_take(&table);
    assert_int_equal(thing->number, before_the_end + 1);
    free_table(&table);
}

static void table_in_an_array_needs_no_memory(void **state)
{
    (void)state;
    static thing array[2];
    sp_slot_table table = SP_SLOT_TABLE_IN(array, thing, next, 2, init_thing);
    memory_is_short = true;
    assert_ptr_equal(sp_slot_take(&table), &array[0]);
    assert_ptr_equal(sp_slot_take(&table), &array[1]);
    assert_null(sp_slot_take(&table));
    memory_is_short = false;
}

static void handle_fits_from_open_to_close_and_never_again(void **state)
{
    (void)state;
    _Atomic uint32_t generation = 0;
    assert_false(sp_slot_fits(&generation, 0));
    uint32_t first = sp_slot_open(&generation);
    assert_int_equal(first, 1);
    assert_true(sp_slot_fits(&generation, first));
    sp_slot_close(&generation);
    assert_false(sp_slot_fits(&generation, first));
    assert_false(sp_slot_fits(&generation, sp_load_relaxed(&generation)));
    uint32_t second = sp_slot_open(&generation);
    assert_int_equal(second, 3);
    assert_false(sp_slot_fits(&generation, first));
    uint32_t third = sp_slot_open(&generation); /* that was not closed */
    assert_false(sp_slot_fits(&generation, second));
    assert_true(sp_slot_fits(&generation, third));
}

static void generations_go_on_where_they_wrap(void **state)
{
    (void)state;
    _Atomic uint32_t generation = UINT32_MAX;
    assert_true(sp_slot_fits(&generation, UINT32_MAX));
    sp_slot_close(&generation);
    assert_false(sp_slot_fits(&generation, UINT32_MAX));
    assert_int_equal(sp_slot_open(&generation), 1);
}

/* ---- threads ---- */

enum { TAKERS = 3, LOOKERS = 1, ROUNDS = 3000, HELD = 8, SHOWN = 64 };

/* Handles that lookers try, mostly stale ones: number << 32 | generation. */
static struct {
    sp_lock lock;
    sp_slot_table things;
    _Atomic uint64_t handles[SHOWN];
    pthread_barrier_t begin;
    _Atomic uint32_t running;
    _Atomic uint64_t found, stale, wrong;
} shared = {.lock = SP_LOCK_AT(SP_LOCK_FIBERS),
            .things = SP_SLOT_TABLE(thing, next, TAKERS *HELD, init_thing)};

/* What a thing holds while its handle is valid: nothing else fits its number and generation. */
static uint64_t value_of(uint32_t number, uint32_t generation)
{
    return (uint64_t)number << 32 | generation;
}

static thing *take_thing(uint32_t round)
{
    sp_lock_take(&shared.lock);
    thing *thing = sp_slot_take(&shared.things);
    sp_lock_give(&shared.lock);
    if (!thing)
        return NULL;
    sp_count(&shared.wrong, sp_load_relaxed(&thing->value) != 0); /* it was another thread's */
    uint64_t value = value_of(thing->number, sp_load_relaxed(&thing->generation) + 1);
    sp_store_release(&thing->value, value);
    sp_lock_take(&shared.lock);
    sp_count(&shared.wrong, sp_slot_open(&thing->generation) != (uint32_t)value);
    sp_lock_give(&shared.lock);
    sp_store_release(&shared.handles[round % SHOWN], value);
    return thing;
}

static void give_thing(thing *thing)
{
    sp_lock_take(&shared.lock);
    sp_slot_close(&thing->generation);
    sp_store_release(&thing->value, 0); /* who sees it sees the close */
    sp_slot_give(&shared.things, thing);
    sp_lock_give(&shared.lock);
}

static void *take_and_give(void *unused)
{
    thing *held[HELD] = {NULL};
    (void)unused;
    pthread_barrier_wait(&shared.begin);
    for (uint32_t round = 0; round < ROUNDS; round++) {
        thing **place = &held[round * 5 % HELD];
        if (*place)
            give_thing(*place);
        *place = take_thing(round);
        sp_count(&shared.wrong, !*place); /* there are as many as all hold */
    }
    for (uint32_t i = 0; i < HELD; i++)
        give_thing(held[i]);
    sp_count(&shared.running, UINT32_MAX);
    return NULL;
}

/* A handle that fits before and after says that the value between is its own. */
static void look_at(uint64_t handle)
{
    uint32_t number = (uint32_t)(handle >> 32), generation = (uint32_t)handle;
    if (!sp_slot_was_taken(&shared.things, number))
        return;
    thing *thing = (struct thing *)shared.things.memory + number - 1;
    bool fits = sp_slot_fits(&thing->generation, generation);
    uint64_t value = sp_load_acquire(&thing->value);
    if (!fits || !sp_slot_fits(&thing->generation, generation))
        sp_count(&shared.stale, 1);
    else
        sp_count(value == handle ? &shared.found : &shared.wrong, 1);
}

static void *look(void *unused)
{
    (void)unused;
    pthread_barrier_wait(&shared.begin);
    while (sp_load_acquire(&shared.running) > 0)
        for (uint32_t i = 0; i < SHOWN; i++)
            look_at(sp_load_acquire(&shared.handles[i]));
    return NULL;
}

static void threads_that_take_and_give_never_share_a_slot(void **state)
{
    (void)state;
    pthread_t threads[TAKERS + LOOKERS];
    sp_store_relaxed(&shared.running, TAKERS);
    assert_int_equal(pthread_barrier_init(&shared.begin, NULL, TAKERS + LOOKERS), 0);
    for (int i = 0; i < TAKERS + LOOKERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, i < TAKERS ? take_and_give : look, NULL),
                         0);
    for (int i = 0; i < TAKERS + LOOKERS; i++)
        pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&shared.begin);
    assert_int_equal(sp_load_relaxed(&shared.wrong), 0);
    assert_true(sp_slots_ever_taken(&shared.things) <= TAKERS * HELD);
    for (uint32_t i = 0; i < TAKERS * HELD; i++)
        assert_non_null(sp_slot_take(&shared.things));
    assert_null(sp_slot_take(&shared.things));
    print_message("%lu handles fitted, %lu were stale\n",
                  (unsigned long)sp_load_relaxed(&shared.found),
                  (unsigned long)sp_load_relaxed(&shared.stale));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slots_have_numbers_from_one_on_and_the_last_given_is_the_next),
        cmocka_unit_test(full_table_gives_none_until_a_slot_is_given_back),
        cmocka_unit_test(table_without_memory_gives_none_and_goes_on_when_there_is_some),
        cmocka_unit_test(table_in_an_array_needs_no_memory),
        cmocka_unit_test(handle_fits_from_open_to_close_and_never_again),
        cmocka_unit_test(generations_go_on_where_they_wrap),
        cmocka_unit_test(threads_that_take_and_give_never_share_a_slot),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
