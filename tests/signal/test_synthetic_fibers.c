/* SPDX-License-Identifier: Apache-2.0 */
/* Fibers that move between threads, under ThreadSanitizer as well: ticks that the threads take
 * themselves, so that the number of samples under each span is known exactly. Stacks are not
 * switched: to the library a fiber is what the program says it runs. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <spanprof/spanprof.h>
#include "cpu/cpu_engine.h"
#include "signal/synthetic_run.h"

/* Who has a span: fibers, threads on their own stacks, and one fiber that all threads want at once.
 */
enum {
    THREADS = 6,
    FIBERS = 16,
    ROUNDS = 4000,
    WANTED = FIBERS + THREADS,
    OWNERS,
    FIRST_ID = 0x10
};

/* A fiber as its program sees it. Who holds `busy` may switch to it, as a scheduler would see to.
 */
typedef struct place {
    atomic_flag busy;
    spanprof_fiber fiber;
    spanprof_scope scope;
    bool is_attached;
} place;

static place places[FIBERS];
static spanprof_fiber wanted_by_all;
static spanprof_span spans[OWNERS];
static _Atomic uint64_t expected[OWNERS], expected_none, expected_unknown;

static spanprof_span start_span(int owner)
{
    spanprof_context parent = {.remote = 1, .trace_flags = 1};
    memset(parent.trace_id, FIRST_ID + owner, sizeof parent.trace_id);
    memset(parent.span_id, 1, sizeof parent.span_id);
    spanprof_span_options options = SPANPROF_SPAN_OPTIONS_INIT;
    options.parent = &parent;
    return spanprof_span_start(NULL, "synthetic", &options);
}

/* Rings are finite, and these ticks come faster than any clock's: wait for the collector where it
 * is slow. */
static void wait_for_room(void)
{
    const sp_ring *ring = &sp_thread_self_create()->tick.ring;
    while (sp_load_relaxed(&ring->head) - sp_load_relaxed(&ring->tail) > ring->size / 2)
        usleep(1000);
}

static void tick(_Atomic uint64_t *counter)
{
    wait_for_room();
    sp_engine_tick_here(1);
    sp_count(counter, 1);
}

static void tick_in(const place *p)
{
    tick(p->is_attached ? &expected[p - places] : &expected_none);
}

static void run_fiber(place *p, unsigned dice)
{
    assert_int_equal(spanprof_fiber_switch(p->fiber), SPANPROF_OK);
    tick_in(p);
    if (dice % 3 == 0 && p->is_attached) {
        assert_int_equal(spanprof_scope_detach(&p->scope), SPANPROF_OK);
        p->is_attached = false;
        tick_in(p);
    } else if (dice % 3 == 1 && !p->is_attached) {
        p->scope = spanprof_span_attach(spans[p - places]);
        p->is_attached = true;
        tick_in(p);
    }
}

static void visit(place *p, unsigned dice, int self)
{
    if (atomic_flag_test_and_set_explicit(&p->busy, memory_order_acquire))
        return;
    run_fiber(p, dice);
    spanprof_fiber_switch((spanprof_fiber){0});
    tick(&expected[FIBERS + self]);
    if (dice % 7 == 0 && p->is_attached) { /* while the fiber is suspended: it goes on without */
        assert_int_equal(spanprof_scope_detach(&p->scope), SPANPROF_ERROR_OTHER_THREAD);
        p->is_attached = false;
        tick(&expected[FIBERS + self]);
    }
    atomic_flag_clear_explicit(&p->busy, memory_order_release);
}

/* Nobody sees to it that only one runs this fiber: whoever comes second knows that it does not. */
static void visit_without_asking(int self)
{
    spanprof_status status = spanprof_fiber_switch(wanted_by_all);
    tick(status == SPANPROF_OK ? &expected[WANTED] : &expected_unknown);
    spanprof_fiber_switch((spanprof_fiber){0});
    tick(&expected[FIBERS + self]);
}

static void *work(void *argument)
{
    int self = (int)(intptr_t)argument;
    unsigned seed = (unsigned)self + 1;
    spanprof_scope scope = spanprof_span_attach(spans[FIBERS + self]);
    for (int round = 0; round < ROUNDS; round++) {
        seed = seed * 1103515245u + 12345u;
        unsigned dice = seed >> 16;
        visit(&places[dice % FIBERS], dice / FIBERS, self);
        visit_without_asking(self);
    }
    spanprof_scope_detach(&scope);
    return NULL;
}

static void prepare(void)
{
    for (int owner = 0; owner < OWNERS; owner++)
        spans[owner] = start_span(owner);
    for (int i = 0; i < FIBERS; i++)
        places[i].fiber = spanprof_fiber_create(NULL, 0);
    wanted_by_all = spanprof_fiber_create(NULL, 0);
    spanprof_fiber_switch(wanted_by_all);
    spanprof_span_attach(spans[WANTED]);
    spanprof_fiber_switch((spanprof_fiber){0});
}

static void finish(void)
{
    for (int owner = 0; owner < OWNERS; owner++)
        spanprof_span_end(spans[owner]);
    for (int i = 0; i < FIBERS; i++)
        spanprof_fiber_destroy(places[i].fiber);
    spanprof_fiber_destroy(wanted_by_all);
}

static uint64_t found[OWNERS], found_without;

static void add_profiles(const Sp__Profiles__ProfilesData *data, void *user)
{
    (void)user;
    const Sp__Profiles__Profile *profile =
        data->resource_profiles[0]->scope_profiles[0]->profiles[0];
    for (size_t i = 0; i < profile->n_samples; i++) {
        const Sp__Profiles__Sample *sample = profile->samples[i];
        const Sp__Profiles__Link *link = data->dictionary->link_table[sample->link_index];
        if (sample->link_index == 0) {
            found_without += (uint64_t)sample->values[0];
            continue;
        }
        assert_in_range(link->trace_id.data[0], FIRST_ID, FIRST_ID + OWNERS - 1);
        found[link->trace_id.data[0] - FIRST_ID] += (uint64_t)sample->values[0];
    }
}

static void ticks_link_to_the_span_of_the_fiber_that_runs(void **state)
{
    (void)state;
    synthetic_run run;
    spanprof_options options = SPANPROF_OPTIONS_INIT;
    synthetic_start(&run, &options);
    prepare();
    synthetic_threads(THREADS, work);
    finish();
    spanprof_stats stats = synthetic_stop(&run, add_profiles, NULL);
    assert_int_equal(stats.samples_unknown, expected_unknown);
    assert_int_equal(stats.misuse_fiber, expected_unknown);
    if (!run.is_complete)
        return;
    for (int owner = 0; owner < OWNERS; owner++) {
        assert_int_equal(found[owner], expected[owner]);
        assert_true(found[owner] > 0);
    }
    assert_int_equal(found_without, expected_none + expected_unknown);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ticks_link_to_the_span_of_the_fiber_that_runs),
    };
    return verdict_code(cmocka_run_group_tests(tests, NULL, NULL));
}
