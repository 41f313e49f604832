/* SPDX-License-Identifier: Apache-2.0 */
/* A small tracer that is not ours, under synthetic ticks: it makes ids itself, tells spanprof of
 * starts and ends, attaches contexts that name no local root. Each thread counts what its ticks
 * must link to, by local root and by innermost span; the file must say the same. */
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

enum { THREADS = 8, ROUNDS = 1500 };

/* --- the tracer ------------------------------------------------------------------------------- */

/* What a span is in its trace: the last byte of its span id, so that links can be counted. */
typedef enum role {
    NO_SPAN,
    ROOT,      /* a local root under a remote parent */
    CHILD,     /* of the root */
    LEAF,      /* of the child */
    UNTOLD,    /* of the root, but the tracer did not tell */
    BELOW,     /* of the one untold: as far as is known, a local root */
    OURS,      /* a span of spanprof's own under the leaf */
    UNSAMPLED, /* of the root */
    ROLES
} role;

/* Its spans have a trace for each thread and a number for each round. */
static spanprof_context make_context(int thread, int round, role role)
{
    spanprof_context context = {.trace_flags = SPANPROF_TRACE_FLAG_SAMPLED};
    context.trace_id[0] = (uint8_t)(0x10 + thread);
    context.trace_id[15] = 1;
    memcpy(context.span_id, &round, sizeof round);
    context.span_id[6] = (uint8_t)(thread + 1);
    context.span_id[7] = (uint8_t)role;
    if (role == UNSAMPLED)
        context.trace_flags = 0;
    return context;
}

static spanprof_context start_foreign(int thread, int round, role role,
                                      const spanprof_context *parent, bool marked)
{
    spanprof_context context = make_context(thread, round, role);
    spanprof_start_attributes attributes = SPANPROF_START_ATTRIBUTES_INIT;
    spanprof_processor_on_start(&context, parent, "foreign", 0, &attributes);
    if (attributes.count != marked)
        abort();
    return context;
}

/* --- what ticks must link to ------------------------------------------------------------------ */

/* Ticks by thread and by the role that their link must have. */
typedef struct counts {
    uint64_t by_root[THREADS][ROLES], by_innermost[THREADS][ROLES];
} counts;

static counts expected, found;

/* Rings are finite, and these ticks come faster than any clock's: wait for the collector where it
 * is slow. */
static void tick(int thread, role root, role innermost)
{
    const sp_ring *ring = &sp_thread_self_create()->tick.ring;
    while (sp_load_relaxed(&ring->head) - sp_load_relaxed(&ring->tail) > ring->size / 2)
        usleep(1000);
    sp_engine_tick_here(1);
    expected.by_root[thread][root]++;
    expected.by_innermost[thread][innermost]++;
}

static void tick_under(int thread, const spanprof_context *context, role root, role innermost)
{
    spanprof_scope scope = spanprof_context_attach(context);
    tick(thread, root, innermost);
    spanprof_scope_detach(&scope);
}

extern _Thread_local void *otel_thread_ctx_v1;

/* The tracer attaches nothing, but publishes its contexts itself (OTEP 4947). */
static void tick_under_record(int thread, const spanprof_context *context, role root,
                              role innermost)
{
    static _Thread_local struct {
        uint8_t trace_id[16], span_id[8], valid, trace_flags;
        uint16_t attributes_bytes;
    } record;
    void *ours = otel_thread_ctx_v1;
    memcpy(record.trace_id, context->trace_id, sizeof record.trace_id);
    memcpy(record.span_id, context->span_id, sizeof record.span_id);
    record.trace_flags = context->trace_flags;
    record.valid = 1;
    otel_thread_ctx_v1 = &record;
    tick(thread, root, innermost);
    otel_thread_ctx_v1 = ours;
}

/* A span of our own under PARENT, made known by its role. */
static void tick_under_ours(int thread, const spanprof_context *parent)
{
    spanprof_span_options options = SPANPROF_SPAN_OPTIONS_INIT;
    options.parent = parent;
    spanprof_span span = spanprof_span_start(NULL, "ours", &options);
    spanprof_context context = spanprof_span_context(span);
    context.span_id[7] = OURS;
    tick_under(thread, &context, ROOT, OURS);
    spanprof_span_end(span);
}

static void run_round(int thread, int round)
{
    spanprof_context remote = make_context(thread, round, NO_SPAN);
    remote.span_id[0] |= 1;
    remote.remote = 1;
    spanprof_context root = start_foreign(thread, round, ROOT, &remote, true);
    spanprof_context child = start_foreign(thread, round, CHILD, &root, true);
    spanprof_context leaf = start_foreign(thread, round, LEAF, &child, true);
    spanprof_context untold = make_context(thread, round, UNTOLD);
    spanprof_context below = start_foreign(thread, round, BELOW, &untold, true);
    spanprof_context unsampled = start_foreign(thread, round, UNSAMPLED, &root, false);
    spanprof_scope outer = spanprof_context_attach(&root);
    tick(thread, ROOT, ROOT);
    tick_under(thread, &child, ROOT, CHILD);
    spanprof_processor_on_end(&child, 0);
    tick_under(thread, &leaf, ROOT, LEAF);
    tick_under_ours(thread, &leaf);
    tick_under(thread, &untold, UNTOLD, UNTOLD);
    tick_under(thread, &below, BELOW, BELOW);
    tick_under(thread, &unsampled, NO_SPAN, NO_SPAN);
    tick_under(thread, &remote, NO_SPAN, NO_SPAN);
    spanprof_processor_on_end(&leaf, 0);
    spanprof_processor_on_end(&below, 0);
    spanprof_processor_on_end(&root, 0);
    tick(thread, ROOT, ROOT); /* ended, and active still */
    spanprof_scope_detach(&outer);
    tick(thread, NO_SPAN, NO_SPAN);
    tick_under_record(thread, &leaf, ROOT, LEAF);
    tick_under_record(thread, &untold, UNTOLD, UNTOLD);
    tick_under_record(thread, &unsampled, NO_SPAN, NO_SPAN);
    tick_under_record(thread, &below, BELOW, BELOW);
    tick(thread, NO_SPAN, NO_SPAN);
}

static void *work(void *argument)
{
    int thread = (int)(intptr_t)argument;
    spanprof_scope first = spanprof_context_attach(NULL); /* registers the thread */
    spanprof_scope_detach(&first);
    for (int round = 0; round < ROUNDS; round++)
        run_round(thread, round);
    return NULL;
}

/* --- what the file says ----------------------------------------------------------------------- */

/* Where the samples without a link are counted, no thread is known. */
static uint64_t found_none[2];

/* The profile by innermost span is in nanoseconds, for nobody is to add it to the other. */
static void add_profile(const Sp__Profiles__ProfilesData *data,
                        const Sp__Profiles__Profile *profile, bool innermost)
{
    uint64_t unit = innermost ? (uint64_t)profile->period : 1;
    for (size_t i = 0; i < profile->n_samples; i++) {
        const Sp__Profiles__Sample *sample = profile->samples[i];
        const Sp__Profiles__Link *link = data->dictionary->link_table[sample->link_index];
        uint64_t ticks = (uint64_t)sample->values[0] / unit;
        if (sample->link_index == 0) {
            found_none[innermost] += ticks;
            continue;
        }
        int thread = link->trace_id.data[0] - 0x10;
        role role = link->span_id.data[7];
        assert_in_range(thread, 0, THREADS - 1);
        assert_in_range(role, ROOT, ROLES - 1);
        if (role != OURS)
            assert_int_equal(link->span_id.data[6], thread + 1);
        (innermost ? found.by_innermost : found.by_root)[thread][role] += ticks;
    }
}

static void add_profiles(const Sp__Profiles__ProfilesData *data, void *unused)
{
    (void)unused;
    const Sp__Profiles__ScopeProfiles *scope = data->resource_profiles[0]->scope_profiles[0];
    assert_int_equal(scope->n_profiles, 2); /* by root, and by innermost span */
    add_profile(data, scope->profiles[0], false);
    add_profile(data, scope->profiles[1], true);
}

static void check_counters(const spanprof_stats *stats)
{
    assert_int_equal(stats->samples_unknown, 0);
    assert_int_equal(stats->foreign_spans_started, THREADS * ROUNDS * 4);
    assert_int_equal(stats->foreign_spans_ended, THREADS * ROUNDS * 4);
    assert_int_equal(stats->evicted_foreign_spans, 0);
}

static void samples_under_a_foreign_tracer_link_to_their_spans(void **state)
{
    (void)state;
    synthetic_run run;
    spanprof_options options = SPANPROF_OPTIONS_INIT;
    options.link_scope = SPANPROF_LINK_SCOPE_BOTH;
    synthetic_start(&run, &options);
    synthetic_threads(THREADS, work);
    spanprof_stats stats = synthetic_stop(&run, add_profiles, NULL);
    check_counters(&stats);
    if (!run.is_complete)
        return;
    uint64_t none = 0;
    for (int i = 0; i < THREADS; i++) {
        none += expected.by_root[i][NO_SPAN];
        expected.by_root[i][NO_SPAN] = expected.by_innermost[i][NO_SPAN] = 0;
        for (int role = 0; role < ROLES; role++) {
            assert_int_equal(found.by_root[i][role], expected.by_root[i][role]);
            assert_int_equal(found.by_innermost[i][role], expected.by_innermost[i][role]);
        }
    }
    assert_int_equal(found_none[0], none);
    assert_int_equal(found_none[1], none);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(samples_under_a_foreign_tracer_link_to_their_spans),
    };
    return verdict_code(cmocka_run_group_tests(tests, NULL, NULL));
}
