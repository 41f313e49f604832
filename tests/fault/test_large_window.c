/* SPDX-License-Identifier: Apache-2.0 */
/* A window that is too large for one request, from spans to what a receiver gets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <spanprof/spanprof.h>
#include "core/compiler.h"
#include "core/intern.h"
#include "fault/scripted_server.h"
#include "proto/profiles.pb-c.h"
#include "cpu/cpu_engine.h"
#include "sdk/synthetic.h"
#include "context/thread.h"

#define PATH "/v1development/profiles"

enum { SPANS = 1000, REQUEST_BYTES = 16 * 1024 };

/* What the receiver found. */
typedef struct received {
    sp_intern links, ids;
    uint64_t periods, linked, none, unknown;
    bool with_timestamps;
} received;

static void wait_for_room(const sp_ring *ring)
{
    while (sp_load_relaxed(&ring->head) - sp_load_acquire(&ring->tail) > ring->size / 2)
        usleep(1000);
}

/* Each span has a sample of its own: samples link to local roots on the network. */
static void make_spans(void)
{
    for (uint32_t i = 0; i < SPANS; i++) {
        spanprof_span span = spanprof_span_start(NULL, "work", NULL);
        spanprof_scope scope = spanprof_span_attach(span);
        wait_for_room(&sp_thread_self_create()->tick.ring);
        sp_engine_tick_here(1 + i % 3);
        spanprof_scope_detach(&scope);
        spanprof_span_end(span);
    }
}

static void add_attribute(received *r, const char *key, const Sp__Common__AnyValue *value)
{
    r->linked += strcmp(key, "spanprof.samples.linked") ? 0 : (uint64_t)value->int_value;
    r->none += strcmp(key, "spanprof.samples.none") ? 0 : (uint64_t)value->int_value;
    r->unknown += strcmp(key, "spanprof.samples.unknown") ? 0 : (uint64_t)value->int_value;
}

static void add_sample(received *r, const Sp__Profiles__Profile *profile,
                       const Sp__Profiles__Sample *sample, const Sp__Profiles__Link *link)
{
    bool is_new;
    assert_int_equal(link->span_id.len, 8);
    sp_intern_put(&r->links, link->span_id.data, link->span_id.len, &is_new);
    assert_true(is_new); /* the sample of a span is in one request */
    assert_int_equal(sample->n_timestamps_unix_nano > 0, r->with_timestamps);
    assert_int_equal(sample->n_values, !r->with_timestamps);
    for (size_t i = 0; i < sample->n_timestamps_unix_nano; i++)
        assert_in_range(sample->timestamps_unix_nano[i] - profile->time_unix_nano, 0,
                        profile->duration_nano - 1);
    r->periods += sample->n_values ? (uint64_t)sample->values[0] : sample->n_timestamps_unix_nano;
}

static void add_request(received *r, const server_request *request)
{
    assert_true(request->body_length < REQUEST_BYTES);
    Sp__Profiles__ProfilesData *data =
        sp__profiles__profiles_data__unpack(NULL, request->body_length, request->body);
    assert_non_null(data);
    const Sp__Profiles__ProfilesDictionary *d = data->dictionary;
    const Sp__Profiles__Profile *profile =
        data->resource_profiles[0]->scope_profiles[0]->profiles[0];
    bool is_new;
    sp_intern_put(&r->ids, profile->profile_id.data, profile->profile_id.len, &is_new);
    assert_true(is_new);
    for (size_t i = 0; i < profile->n_attribute_indices; i++) {
        const Sp__Profiles__KeyValueAndUnit *attribute =
            d->attribute_table[profile->attribute_indices[i]];
        add_attribute(r, d->string_table[attribute->key_strindex], attribute->value);
    }
    for (size_t i = 0; i < profile->n_samples; i++)
        add_sample(r, profile, profile->samples[i], d->link_table[profile->samples[i]->link_index]);
    sp__profiles__profiles_data__free_unpacked(data, NULL);
}

static void assert_window_arrives(const char *timestamps)
{
    scripted_server *server = server_start();
    char endpoint[64];
    spanprof_options options = SPANPROF_OPTIONS_INIT;
    spanprof_stats stats = SPANPROF_STATS_INIT;
    snprintf(endpoint, sizeof endpoint, "http://127.0.0.1:%u", server_port(server));
    options.exporter = "otlp";
    options.endpoint = endpoint;
    options.compression = "none";
    options.request_maximum_bytes = REQUEST_BYTES;
    options.timestamps = timestamps;
    options.cpu_hz = 10000; /* makes the rings large */
    sp_sdk_use_synthetic_ticks();
    assert_int_equal(spanprof_start(&options, NULL), SPANPROF_OK);
    make_spans();
    assert_int_equal(spanprof_stop(UINT64_C(60000000000)), SPANPROF_OK);
    spanprof_stats_get(&stats);
    received all = {.with_timestamps = *timestamps == '1'};
    size_t count = server_count(server, PATH);
    assert_in_range(count, 2, SERVER_REQUESTS);
    for (size_t i = 0; i < count; i++)
        add_request(&all, server_get(server, PATH, i));
    assert_int_equal(all.links.count, SPANS);
    assert_int_equal(all.periods, stats.weights);
    assert_int_equal(all.linked, stats.weights);
    assert_int_equal(all.none + all.unknown, 0);
    assert_int_equal(stats.exported_samples, stats.ticks);
    sp_intern_deinit(&all.links);
    sp_intern_deinit(&all.ids);
    server_stop(server);
}

static void large_window_arrives_in_several_requests(void **state)
{
    (void)state;
    assert_window_arrives("0");
}

static void large_window_with_timestamps_arrives_in_several_requests(void **state)
{
    (void)state;
    assert_window_arrives("1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(large_window_arrives_in_several_requests),
        cmocka_unit_test(large_window_with_timestamps_arrives_in_several_requests),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
