/* SPDX-License-Identifier: Apache-2.0 */
/* Calls from many threads, through real rings, collector, builder and file. At a period of one byte
 * each block is sampled and stands for itself, so that the sums under each span are known exactly:
 * what was allocated, what is live at the end, and what was recorded. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <spanprof/spanprof.h>
#include "call/call.h"
#include "signal/synthetic_run.h"
#include "verdict.h"

/* A block has more bytes than exp(-bytes) needs to be nothing. */
enum { THREADS = 8, ROUNDS = 400, BLOCKS = 5, BYTES = 100, LIVE_EACH = 3 };

/* Addresses that nothing else has: the table looks at them only. */
static char blocks[THREADS + 1][ROUNDS][BLOCKS][2];
static const spanprof_value_type *rows;

static spanprof_span start_span(int thread)
{
    spanprof_context parent = {.remote = 1, .trace_flags = 1};
    memset(parent.trace_id, 0x10 + thread, sizeof parent.trace_id);
    memset(parent.span_id, 1, sizeof parent.span_id);
    spanprof_span_options options = SPANPROF_SPAN_OPTIONS_INIT;
    options.parent = &parent;
    return spanprof_span_start(NULL, "calls", &options);
}

static bool rings_have_room(void)
{
    for (uint32_t n = 0; n < SP_CALL_RINGS; n++) {
        const sp_ring *ring = sp_call_ring(n);
        if (sp_load_relaxed(&ring->head) - sp_load_relaxed(&ring->tail) > ring->size / 4)
            return false;
    }
    return true;
}

/* Rings are finite: wait for the collector where it is slow. */
static void allocate(int thread, int round)
{
    while (!rings_have_room())
        usleep(1000);
    for (int i = 0; i < BLOCKS; i++) {
        void *block = blocks[thread][round][i];
        assert_true(spanprof_alloc_sampled(block, BYTES));
        if (round >= LIVE_EACH || i > 0) /* the first of the first rounds stay */
            spanprof_alloc_freed(block);
    }
    spanprof_record(rows, 7);
}

static void *work(void *argument)
{
    int thread = (int)(intptr_t)argument;
    for (int round = 0; round < ROUNDS; round++) {
        spanprof_span span = start_span(thread);
        spanprof_scope scope = spanprof_span_attach(span);
        allocate(thread, round);
        spanprof_scope_detach(&scope);
        spanprof_span_end(span);
    }
    return NULL;
}

/* Values by the thread that they must link to, and without a link. */
typedef struct sums {
    uint64_t by_thread[THREADS], none;
} sums;

typedef struct found {
    sums alloc_space, alloc_objects, inuse_space, inuse_objects, rows;
    uint64_t outlived; /* bytes */
} found;

static const char *text(const Sp__Profiles__ProfilesData *data, int32_t index)
{
    return data->dictionary->string_table[index];
}

static bool has_outlived(const Sp__Profiles__ProfilesData *data, const Sp__Profiles__Sample *sample)
{
    for (size_t i = 0; i < sample->n_attribute_indices; i++) {
        const Sp__Profiles__KeyValueAndUnit *attribute =
            data->dictionary->attribute_table[sample->attribute_indices[i]];
        if (strcmp(text(data, attribute->key_strindex), "spanprof.live.outlived") == 0)
            return strcmp(attribute->value->string_value, "request") == 0;
    }
    return false;
}

static void add_samples(const Sp__Profiles__ProfilesData *data,
                        const Sp__Profiles__Profile *profile, sums *sums, uint64_t *outlived)
{
    for (size_t i = 0; i < profile->n_samples; i++) {
        const Sp__Profiles__Sample *sample = profile->samples[i];
        const Sp__Profiles__Link *link = data->dictionary->link_table[sample->link_index];
        uint64_t value = (uint64_t)sample->values[0];
        if (has_outlived(data, sample))
            *outlived += value;
        if (sample->link_index == 0) {
            sums->none += value;
            continue;
        }
        assert_in_range(link->trace_id.data[0], 0x10, 0x10 + THREADS - 1);
        sums->by_thread[link->trace_id.data[0] - 0x10] += value;
    }
}

static void add_profiles(const Sp__Profiles__ProfilesData *data, void *user)
{
    found *found = user;
    const Sp__Profiles__ScopeProfiles *scope = data->resource_profiles[0]->scope_profiles[0];
    uint64_t ignored = 0;
    for (size_t i = 0; i < scope->n_profiles; i++) {
        const Sp__Profiles__Profile *profile = scope->profiles[i];
        const char *name = text(data, profile->sample_type->type_strindex);
        const char *period = text(data, profile->period_type->type_strindex);
        assert_true(profile->period > 0 && *period);
        if (strcmp(name, "alloc_space") == 0)
            add_samples(data, profile, &found->alloc_space, &ignored);
        else if (strcmp(name, "alloc_objects") == 0)
            add_samples(data, profile, &found->alloc_objects, &ignored);
        else if (strcmp(name, "inuse_space") == 0) { /* the last snapshot holds */
            memset(&found->inuse_space, 0, sizeof found->inuse_space);
            found->outlived = 0;
            add_samples(data, profile, &found->inuse_space, &found->outlived);
        } else if (strcmp(name, "inuse_objects") == 0) {
            memset(&found->inuse_objects, 0, sizeof found->inuse_objects);
            add_samples(data, profile, &found->inuse_objects, &ignored);
        } else if (strcmp(name, "rows") == 0)
            add_samples(data, profile, &found->rows, &ignored);
        else
            fail_msg("a profile of type %s", name);
    }
}

static void assert_sums(const sums *sums, uint64_t each, uint64_t none)
{
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(sums->by_thread[i], each);
    assert_int_equal(sums->none, none);
}

static void calls_are_counted_exactly_under_their_spans(void **state)
{
    (void)state;
    synthetic_run run;
    found found = {0};
    spanprof_options options = SPANPROF_OPTIONS_INIT;
    rows = spanprof_value_type_get("rows", "rows");
    options.profiles = "alloc,heap";
    options.alloc_bytes = 1;
    synthetic_start(&run, &options);
    allocate(THREADS, 0); /* under no span; one stays */
    synthetic_threads(THREADS, work);
    spanprof_stats stats = synthetic_stop(&run, add_profiles, &found);
    assert_int_equal(stats.calls_unknown, 0);
    assert_int_equal(stats.dropped_calls, 0);
    assert_int_equal(stats.dropped_live_blocks, 0);
    if (!run.is_complete)
        return;
    assert_sums(&found.alloc_space, (uint64_t)ROUNDS * BLOCKS * BYTES, BLOCKS * BYTES);
    assert_sums(&found.alloc_objects, (uint64_t)ROUNDS * BLOCKS, BLOCKS);
    assert_sums(&found.inuse_space, LIVE_EACH * BYTES, BYTES);
    assert_sums(&found.inuse_objects, LIVE_EACH, 1);
    assert_sums(&found.rows, (uint64_t)ROUNDS * 7, 7);
    assert_int_equal(found.outlived, THREADS * LIVE_EACH * BYTES);
    for (int thread = 0; thread <= THREADS; thread++)
        for (int round = 0; round < LIVE_EACH; round++)
            spanprof_alloc_freed(blocks[thread][round][0]);
}

/* 200,000 rows in calls of 20, one in 1,000 sampled: 200 samples, a standard error of 7 %. */
static void sampled_values_stand_for_the_others(void **state)
{
    (void)state;
    synthetic_run run;
    found found = {0};
    spanprof_options options = SPANPROF_OPTIONS_INIT;
    options.profiles = "alloc";
    options.alloc_bytes = 1;
    spanprof_value_type_sample(rows, 1000);
    synthetic_start(&run, &options);
    for (int i = 0; i < 10000; i++)
        spanprof_record(rows, 20);
    spanprof_stats stats = synthetic_stop(&run, add_profiles, &found);
    spanprof_value_type_sample(rows, 0);
    assert_int_equal(stats.dropped_calls, 0);
    assert_in_range(stats.calls_none, 100, 320); /* within 7 standard errors */
    if (run.is_complete)
        assert_in_range(found.rows.none, 100000, 320000);
}

static void type_of_values_is_one_for_its_names(void **state)
{
    (void)state;
    const spanprof_value_type *type = spanprof_value_type_get("scanned-rows", NULL);
    assert_non_null(type);
    assert_ptr_equal(type, spanprof_value_type_get("scanned_rows", "count"));
    assert_ptr_not_equal(type, spanprof_value_type_get("scanned_rows", "bytes"));
}

static void name_that_is_none_is_refused(void **state)
{
    (void)state;
    char longest[65] = "";
    memset(longest, 'a', 64);
    static const char *const bad[] = {NULL,          "",    "cpu", "alloc_space",
                                      "x_innermost", "1st", "a b", "é"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_null(spanprof_value_type_get(bad[i], NULL));
    assert_null(spanprof_value_type_get(longest, NULL));
    assert_null(spanprof_value_type_get("good", ""));
    longest[63] = 0;
    assert_non_null(spanprof_value_type_get(longest, NULL));
}

static void types_are_sixteen_at_most(void **state)
{
    (void)state;
    char name[16];
    int made = 0;
    for (int i = 0; i < 20; i++) {
        snprintf(name, sizeof name, "more_%d", i);
        made += spanprof_value_type_get(name, NULL) != NULL;
    }
    assert_in_range(made, 1, 16);
    assert_null(spanprof_value_type_get("one_too_many", NULL));
    assert_non_null(spanprof_value_type_get("rows", "rows"));
}

static void nothing_is_recorded_while_the_sdk_does_not_run(void **state)
{
    (void)state;
    static char block[2];
    spanprof_record(rows, 1);
    spanprof_record(NULL, 1);
    assert_false(spanprof_alloc_sampled(block, 1 << 30));
    spanprof_alloc_freed(block);
    spanprof_alloc_freed(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_are_counted_exactly_under_their_spans),
        cmocka_unit_test(sampled_values_stand_for_the_others),
        cmocka_unit_test(type_of_values_is_one_for_its_names),
        cmocka_unit_test(name_that_is_none_is_refused),
        cmocka_unit_test(nothing_is_recorded_while_the_sdk_does_not_run),
        cmocka_unit_test(types_are_sixteen_at_most),
    };
    return verdict_code(cmocka_run_group_tests(tests, NULL, NULL));
}
