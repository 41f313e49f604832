/* SPDX-License-Identifier: Apache-2.0 */
/* Attributes on samples under synthetic ticks: threads serve requests of tenants, count the periods
 * that each tenant and route has, and the file must say the same: no sample without the attributes
 * of its context, none with those of another. */
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

/* TENANTS come back; each round also has a request number of its own, which is never asked for. */
enum { THREADS = 6, ROUNDS = 1500, TENANTS = 9, ROUTES = 3 };

/* Periods by tenant and route, the last of each: none. */
typedef struct periods {
    uint64_t of[TENANTS + 1][ROUTES + 1];
} periods;

static periods expected[THREADS];

static void wait_for_room(void)
{
    const sp_ring *ring = &sp_thread_self_create()->tick.ring;
    while (sp_load_relaxed(&ring->head) - sp_load_relaxed(&ring->tail) > ring->size / 2)
        usleep(1000);
}

static void tick(periods *mine, int tenant, int route, uint32_t count)
{
    wait_for_room();
    sp_engine_tick_here(count);
    mine->of[tenant][route] += count;
}

static void set(spanprof_context *context, const char *key, int number)
{
    char value[32];
    snprintf(value, sizeof value, "%s-%d", key, number);
    assert_int_equal(spanprof_context_set_attribute(context, key, value), SPANPROF_OK);
}

/* A request: a span under a context with attributes; a child; a context that knows its route only
 * later; and one with none. */
static void serve(periods *mine, int tenant, int route, int number)
{
    spanprof_context request = {0};
    set(&request, "tenant", tenant);
    set(&request, "request", number);
    spanprof_span_options options = SPANPROF_SPAN_OPTIONS_INIT;
    options.parent = &request;
    spanprof_span root = spanprof_span_start(NULL, "root", &options);
    spanprof_scope outer = spanprof_span_attach(root);
    tick(mine, tenant, ROUTES, 1 + (uint32_t)number % 3);
    spanprof_context routed = spanprof_context_current();
    set(&routed, "route", route);
    spanprof_scope inner = spanprof_context_attach(&routed);
    tick(mine, tenant, route, 1);
    spanprof_span child = spanprof_span_start(NULL, "child", NULL);
    spanprof_scope innermost = spanprof_span_attach(child);
    tick(mine, tenant, route, 2);
    spanprof_scope nobody = spanprof_context_attach(NULL);
    tick(mine, TENANTS, ROUTES, 1);
    spanprof_scope_detach(&nobody);
    if (number % 2)
        spanprof_scope_detach(&inner);
    spanprof_scope_detach(&innermost);
    tick(mine, tenant, number % 2 ? ROUTES : route, 1);
    spanprof_scope_detach(&inner);
    tick(mine, tenant, ROUTES, 1);
    spanprof_scope_detach(&outer);
    tick(mine, TENANTS, ROUTES, 1);
    spanprof_span_end(child);
    spanprof_span_end(root);
}

static void *work(void *argument)
{
    int thread = (int)(intptr_t)argument;
    spanprof_scope first = spanprof_context_attach(NULL); /* registers the thread */
    spanprof_scope_detach(&first);
    for (int round = 0; round < ROUNDS; round++)
        serve(&expected[thread], (round + thread) % TENANTS, round % ROUTES,
              thread * ROUNDS + round);
    return NULL;
}

static int number_behind(const char *key, const Sp__Profiles__KeyValueAndUnit *attribute)
{
    const char *value = attribute->value->string_value;
    assert_memory_equal(value, key, strlen(key));
    return atoi(value + strlen(key) + 1);
}

static void add_profiles(const Sp__Profiles__ProfilesData *data, void *user)
{
    periods *found = user;
    const Sp__Profiles__ProfilesDictionary *dictionary = data->dictionary;
    const Sp__Profiles__Profile *profile =
        data->resource_profiles[0]->scope_profiles[0]->profiles[0];
    for (size_t i = 0; i < profile->n_samples; i++) {
        const Sp__Profiles__Sample *sample = profile->samples[i];
        int tenant = TENANTS, route = ROUTES;
        for (size_t a = 0; a < sample->n_attribute_indices; a++) {
            const Sp__Profiles__KeyValueAndUnit *attribute =
                dictionary->attribute_table[sample->attribute_indices[a]];
            const char *key = dictionary->string_table[attribute->key_strindex];
            if (strcmp(key, "tenant") == 0)
                tenant = number_behind("tenant", attribute);
            else if (strcmp(key, "route") == 0)
                route = number_behind("route", attribute);
            else
                assert_memory_equal(key, "thread.", strlen("thread."));
        }
        found->of[tenant][route] += (uint64_t)sample->values[0];
    }
}

/* False: something was dropped, so the counts cannot be compared. */
static bool run(const char *asked_for, periods *found)
{
    synthetic_run files;
    spanprof_options options = SPANPROF_OPTIONS_INIT;
    options.sample_attributes = asked_for;
    memset(expected, 0, sizeof expected);
    memset(found, 0, sizeof *found);
    synthetic_start(&files, &options);
    synthetic_threads(THREADS, work);
    spanprof_stats stats = synthetic_stop(&files, add_profiles, found);
    assert_int_equal(stats.samples_unknown, 0);
    assert_int_equal(stats.dropped_attributes, 0);
    return files.is_complete;
}

static uint64_t expected_of(int tenant, int route)
{
    uint64_t sum = 0;
    for (int i = 0; i < THREADS; i++)
        sum += expected[i].of[tenant][route];
    return sum;
}

static void samples_have_the_attributes_of_their_context(void **state)
{
    (void)state;
    periods found;
    if (!run("tenant, route", &found))
        return;
    for (int tenant = 0; tenant <= TENANTS; tenant++)
        for (int route = 0; route <= ROUTES; route++)
            assert_int_equal(found.of[tenant][route], expected_of(tenant, route));
}

static void samples_have_only_what_is_asked_for(void **state)
{
    (void)state;
    periods found;
    uint64_t all = 0;
    if (!run("route", &found))
        return;
    for (int tenant = 0; tenant < TENANTS; tenant++)
        for (int route = 0; route <= ROUTES; route++)
            assert_int_equal(found.of[tenant][route], 0);
    for (int route = 0; route < ROUTES; route++) {
        uint64_t sum = 0;
        for (int tenant = 0; tenant < TENANTS; tenant++)
            sum += expected_of(tenant, route);
        assert_int_equal(found.of[TENANTS][route], sum);
        all += sum;
    }
    assert_true(all > 0);
    run(NULL, &found);
    for (int route = 0; route < ROUTES; route++)
        assert_int_equal(found.of[TENANTS][route], 0);
    assert_true(found.of[TENANTS][ROUTES] > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(samples_have_the_attributes_of_their_context),
        cmocka_unit_test(samples_have_only_what_is_asked_for),
    };
    return verdict_code(cmocka_run_group_tests(tests, NULL, NULL));
}
