/* SPDX-License-Identifier: Apache-2.0 */
/* Windows of all sizes as requests: every sample arrives in exactly one, with its value, and each
 * request is below the bounds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "failing_memory.h"
#include "golden/golden_data.h"
#include "wire/unpack.h"
#include "proto/profiles_service.pb-c.h"
#include "collect/requests.h"
#include "unit/profile/test_profile_rules.h"
#include "unit/collect/made_profiles.h"

enum { MIB = 1024 * 1024, REQUESTS_MAX = 512 };

/* The allocation that fails, counted from 1; 0: none. After it all work again, or none. */
static uint64_t allocations, failing_allocation;
static bool fails_from_then_on;

static bool allocation_fails(void)
{
    allocations++;
    return failing_allocation && (allocations == failing_allocation ||
                                  (fails_from_then_on && allocations > failing_allocation));
}

static sp_buffer bodies[REQUESTS_MAX];
static sp_sample_range ranges[REQUESTS_MAX];
static uint32_t request_count;
static sp_profile_data whole;

static void keep(void *user, sp_buffer *body, sp_sample_range range)
{
    (void)user;
    assert_true(request_count < REQUESTS_MAX);
    bodies[request_count] = *body;
    ranges[request_count++] = range;
}

static void make_requests(const made_shape *shape, sp_otlp_format format, size_t bytes,
                          uint32_t samples)
{
    sp_request_bounds bounds = {bytes, samples};
    assert_true(make_profiles(&whole, shape));
    assert_int_equal(sp_requests_make(&whole, format, &golden_resource, &bounds, keep, NULL), 0);
}

static int tear_down(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < request_count; i++)
        sp_buffer_deinit(&bodies[i]);
    request_count = 0;
    sp_arena_deinit(&whole.memory);
    whole = (sp_profile_data){0};
    return 0;
}

/* ---- what arrived ---- */

typedef Sp__Collector__ExportProfilesServiceRequest request_message;

/* A sample without the numbers of its request's tables. No padding. */
typedef struct identity {
    uint64_t type, stack;
    uint8_t trace_id[16], span_id[8];
    int64_t thread;
} identity;

typedef struct arrivals {
    sp_intern identities;
    int64_t *values; /* by number in identities */
    uint32_t capacity;
    uint64_t linked, none, unattributed_ns, unattributed_threads; /* of all profiles */
    uint64_t profiles, engines;
    sp_intern profile_ids;
} arrivals;

static uint64_t hash_stack(const Sp__Profiles__ProfilesDictionary *d, int32_t index)
{
    const Sp__Profiles__Stack *stack = d->stack_table[index];
    uint64_t hash = stack->n_location_indices;
    for (size_t i = 0; i < stack->n_location_indices; i++) {
        const Sp__Profiles__Location *location = d->location_table[stack->location_indices[i]];
        assert_int_equal(location->n_lines, 1);
        const Sp__Profiles__Function *function =
            d->function_table[location->lines[0]->function_index];
        const char *name = d->string_table[function->name_strindex];
        uint64_t parts[] = {hash, sp_hash_bytes(name, strlen(name)),
                            (uint64_t)location->lines[0]->line, location->address};
        hash = sp_hash_bytes(parts, sizeof parts);
    }
    return hash;
}

static void copy_id(uint8_t *out, ProtobufCBinaryData id)
{
    if (id.len)
        memcpy(out, id.data, id.len);
}

static void add_sample(arrivals *a, const Sp__Profiles__ProfilesDictionary *d,
                       const uint64_t *stacks, uint64_t type, const Sp__Profiles__Sample *sample)
{
    identity key = {.type = type, .stack = stacks[sample->stack_index]};
    copy_id(key.trace_id, d->link_table[sample->link_index]->trace_id);
    copy_id(key.span_id, d->link_table[sample->link_index]->span_id);
    assert_int_equal(sample->n_attribute_indices, 1);
    key.thread = d->attribute_table[sample->attribute_indices[0]]->value->int_value;
    bool is_new;
    uint32_t number = sp_intern_put(&a->identities, &key, sizeof key, &is_new);
    assert_true(is_new); /* in exactly one request */
    if (number >= a->capacity) {
        a->capacity = a->capacity ? 2 * a->capacity : 1024;
        a->values = realloc(a->values, a->capacity * sizeof *a->values);
    }
    assert_int_equal(sample->n_values + (sample->n_timestamps_unix_nano > 0), 1);
    a->values[number] =
        sample->n_values ? sample->values[0] : (int64_t)sample->n_timestamps_unix_nano;
}

static void add_attribute(arrivals *a, const char *key, const Sp__Common__AnyValue *value)
{
    a->linked += strcmp(key, "spanprof.samples.linked") ? 0 : (uint64_t)value->int_value;
    a->none += strcmp(key, "spanprof.samples.none") ? 0 : (uint64_t)value->int_value;
    a->unattributed_ns += strcmp(key, "spanprof.unattributed_ns") ? 0 : (uint64_t)value->int_value;
    a->unattributed_threads += strcmp(key, "spanprof.unattributed_ns.threads") == 0;
    a->engines += strcmp(key, "spanprof.engine") == 0;
}

static void add_profile(arrivals *a, const Sp__Profiles__ProfilesDictionary *d,
                        const uint64_t *stacks, const Sp__Profiles__Profile *profile,
                        uint32_t most_samples)
{
    const char *type = d->string_table[profile->sample_type->type_strindex];
    bool is_new;
    sp_intern_put(&a->profile_ids, profile->profile_id.data, profile->profile_id.len, &is_new);
    assert_true(is_new);
    assert_int_equal(profile->profile_id.len, 16);
    assert_int_equal(profile->period, MADE_PERIOD_NS);
    assert_int_equal(profile->time_unix_nano, MADE_TIME_NS);
    assert_int_equal(profile->duration_nano, MADE_DURATION_NS);
    assert_true(profile->n_samples > 0);
    assert_true(!most_samples || profile->n_samples <= most_samples);
    a->profiles++;
    for (size_t i = 0; i < profile->n_attribute_indices; i++) {
        const Sp__Profiles__KeyValueAndUnit *attribute =
            d->attribute_table[profile->attribute_indices[i]];
        add_attribute(a, d->string_table[attribute->key_strindex], attribute->value);
    }
    for (size_t i = 0; i < profile->n_samples; i++)
        add_sample(a, d, stacks, sp_hash_bytes(type, strlen(type)), profile->samples[i]);
}

static void add_request(arrivals *a, const sp_buffer *body, uint32_t most_samples)
{
    request_message *request = (void *)sp_otlp_unpack(
        &sp__collector__export_profiles_service_request__descriptor, body->data, body->length);
    assert_non_null(request);
    const Sp__Profiles__ProfilesDictionary *d = request->dictionary;
    uint64_t *stacks = calloc(d->n_stack_table, sizeof *stacks);
    for (size_t i = 0; i < d->n_stack_table; i++)
        stacks[i] = hash_stack(d, (int32_t)i);
    const Sp__Profiles__ScopeProfiles *scope = request->resource_profiles[0]->scope_profiles[0];
    for (size_t i = 0; i < scope->n_profiles; i++)
        add_profile(a, d, stacks, scope->profiles[i], most_samples);
    free(stacks);
    protobuf_c_message_free_unpacked(&request->base, NULL);
}

static void arrivals_deinit(arrivals *a)
{
    sp_intern_deinit(&a->identities);
    sp_intern_deinit(&a->profile_ids);
    free(a->values);
}

/* The window as one message, which is what the requests are held against. */
static void read_whole(arrivals *a)
{
    sp_buffer body = SP_BUFFER_INIT(256 * MIB);
    assert_true(sp_otlp_encode_profiles(&body, SP_OTLP_PROTOBUF, &golden_resource, &whole));
    add_request(a, &body, 0);
    sp_buffer_deinit(&body);
}

static void assert_same_samples(const arrivals *a, const arrivals *wanted)
{
    assert_int_equal(a->identities.count, wanted->identities.count);
    for (uint32_t i = 0; i < a->identities.count; i++) {
        uint32_t other =
            sp_intern_find(&wanted->identities, sp_intern_key(&a->identities, i), sizeof(identity));
        assert_int_not_equal(other, SP_INTERN_FAILED);
        assert_int_equal(a->values[i], wanted->values[other]);
    }
}

/* Each total of the window is in one profile of each type; each profile names the engine. */
static void assert_same_totals(const arrivals *a, const arrivals *wanted)
{
    assert_int_equal(a->linked, wanted->linked);
    assert_int_equal(a->none, wanted->none);
    assert_int_equal(a->unattributed_ns, wanted->unattributed_ns);
    assert_int_equal(a->unattributed_threads, wanted->unattributed_threads);
    assert_int_equal(a->engines, a->profiles);
}

static void assert_whole_window_arrives(size_t bytes, uint32_t samples)
{
    arrivals all = {0}, wanted = {0};
    uint32_t next = 0;
    for (uint32_t i = 0; i < request_count; i++) {
        sp_profile_data part;
        assert_true(bodies[i].length < bytes);
        assert_int_equal(ranges[i].first, next);
        next += ranges[i].count;
        add_request(&all, &bodies[i], samples);
        if (i > 0 && ranges[i].count > 4000)
            continue; /* the rules take long */
        assert_true(sp_profile_part(&part, &whole, ranges[i]));
        assert_profile_rules(&part);
        sp_arena_deinit(&part.memory);
    }
    read_whole(&wanted);
    assert_int_equal(next, sp_profile_sample_total(&whole));
    assert_same_samples(&all, &wanted);
    assert_same_totals(&all, &wanted);
    arrivals_deinit(&all);
    arrivals_deinit(&wanted);
}

/* ---- cases ---- */

static void requests_small_window_is_one(void **state)
{
    (void)state;
    const made_shape shape = {
        .samples = 10, .stacks = 3, .frames = 5, .functions = 9, .links = 2, .wall_samples = 4};
    make_requests(&shape, SP_OTLP_PROTOBUF, 2 * MIB, 16000);
    assert_int_equal(request_count, 1);
    assert_whole_window_arrives(2 * MIB, 16000);
}

/* Few stacks, so that only the number of samples asks for parts. */
static made_shape many_samples(uint32_t samples, uint32_t wall_samples)
{
    return (made_shape){.samples = samples,
                        .wall_samples = wall_samples,
                        .stacks = 50,
                        .frames = 4,
                        .functions = 60,
                        .links = 20};
}

static void requests_divide_a_profile_of_more_than_16000_samples(void **state)
{
    (void)state;
    static const struct {
        uint32_t samples, wall_samples, requests;
    } rows[] = {{16000, 0, 1}, {16001, 0, 2}, {16000, 16000, 1}, {10000, 20000, 2}};
    for (size_t i = 0; i < SP_ARRAY_LENGTH(rows); i++) {
        made_shape shape = many_samples(rows[i].samples, rows[i].wall_samples);
        make_requests(&shape, SP_OTLP_PROTOBUF, 4 * MIB, 16000);
        assert_int_equal(request_count, rows[i].requests);
        assert_whole_window_arrives(4 * MIB, 16000);
        tear_down(state);
    }
}

static void requests_divide_100000_samples(void **state)
{
    (void)state;
    const made_shape shape = {
        .samples = 100000, .stacks = 1500, .frames = 26, .functions = 900, .links = 800};
    make_requests(&shape, SP_OTLP_PROTOBUF, 2 * MIB, 16000);
    assert_in_range(request_count, 7, 9); /* by 16,000 samples: 7 */
    assert_whole_window_arrives(2 * MIB, 16000);
}

/* 4,000 names of 4 KB: every stack needs some of its own. */
static void requests_divide_a_window_of_long_names(void **state)
{
    (void)state;
    const made_shape shape = {.samples = 6000,
                              .stacks = 4000,
                              .frames = 3,
                              .functions = 4000,
                              .links = 10,
                              .name_bytes = 4000};
    make_requests(&shape, SP_OTLP_PROTOBUF, 2 * MIB, 16000);
    assert_true(request_count >= 8); /* 16 MB of names */
    assert_whole_window_arrives(2 * MIB, 16000);
}

static void requests_divide_a_window_of_many_links(void **state)
{
    (void)state;
    const made_shape shape = {
        .samples = 15000, .stacks = 1, .frames = 3, .functions = 5, .links = 14999};
    make_requests(&shape, SP_OTLP_PROTOBUF, MIB / 4, 16000);
    assert_true(request_count >= 3);
    assert_whole_window_arrives(MIB / 4, 16000);
}

static void requests_divide_timestamps(void **state)
{
    (void)state;
    const made_shape shape = {.samples = 15000,
                              .stacks = 50,
                              .frames = 4,
                              .functions = 60,
                              .links = 300,
                              .timestamps = true};
    make_requests(&shape, SP_OTLP_PROTOBUF, MIB / 4, 16000);
    assert_true(request_count >= 2);
    assert_whole_window_arrives(MIB / 4, 16000);
}

/* The bound holds for what is sent, which as JSON is several times as long. */
static void requests_json_keeps_the_bound(void **state)
{
    (void)state;
    const made_shape shape = many_samples(10000, 0);
    make_requests(&shape, SP_OTLP_JSON, MIB / 2, 16000);
    uint32_t next = 0;
    for (uint32_t i = 0; i < request_count; i++) {
        assert_true(bodies[i].length < MIB / 2);
        assert_int_equal(ranges[i].first, next);
        next += ranges[i].count;
    }
    assert_true(request_count >= 2);
    assert_int_equal(next, 10000);
}

/* No part of it could be shorter. */
static void requests_one_sample_above_the_bound_is_sent_alone(void **state)
{
    (void)state;
    const made_shape shape = {
        .samples = 4, .stacks = 4, .frames = 10, .functions = 40, .links = 1, .name_bytes = 16000};
    make_requests(&shape, SP_OTLP_PROTOBUF, 64 * 1024, 16000);
    assert_int_equal(request_count, 4);
    assert_whole_window_arrives(MIB, 16000);
}

/* Dividing does not help against a resource that every request has. */
static void requests_large_resource_does_not_divide(void **state)
{
    (void)state;
    static char value[100000];
    memset(value, 'x', sizeof value - 1);
    spanprof_attribute attribute = {.key = "large", .value.string_value = value};
    sp_resource resource = {.attributes = &attribute, .attribute_count = 1};
    const made_shape shape = many_samples(100, 0);
    sp_request_bounds bounds = {64 * 1024, 16000};
    assert_true(make_profiles(&whole, &shape));
    assert_int_equal(sp_requests_make(&whole, SP_OTLP_PROTOBUF, &resource, &bounds, keep, NULL), 0);
    assert_int_equal(request_count, 1);
}

/* Samples that no request has when allocation FAILING fails; checked against those that some
 * request has. JSON is longer: with this bound the window is divided into 13 requests, each of
 * which allocates the same again. */
static uint32_t dropped_when(sp_otlp_format format, uint64_t failing)
{
    const sp_request_bounds bounds = {format == SP_OTLP_JSON ? 6000 : 4096, 16000};
    uint32_t taken = 0;
    allocations = 0;
    failing_allocation = failing;
    uint32_t dropped = sp_requests_make(&whole, format, &golden_resource, &bounds, keep, NULL);
    failing_allocation = 0;
    for (uint32_t i = 0; i < request_count; i++) {
        taken += ranges[i].count;
        sp_buffer_deinit(&bodies[i]);
    }
    request_count = 0;
    assert_int_equal(taken + dropped, sp_profile_sample_total(&whole));
    return dropped;
}

/* A request that finds no memory is divided, and its halves find some. Only a request of one sample
 * is given up. */
static void requests_one_failed_allocation_drops_one_sample_at_most(void **state)
{
    (void)state;
    const made_shape shape = {
        .samples = 120, .stacks = 40, .frames = 6, .functions = 60, .links = 12};
    assert_true(make_profiles(&whole, &shape));
    static const sp_otlp_format formats[] = {SP_OTLP_PROTOBUF, SP_OTLP_JSON};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(dropped_when(formats[i], 0), 0);
        uint64_t count = allocations;
        fails_from_then_on = false;
        for (uint64_t failing = 1; failing <= count; failing++)
            assert_in_range(dropped_when(formats[i], failing), 0, 1);
        fails_from_then_on = true;
        for (uint64_t failing = 1; failing < count; failing++) /* the last only gives memory back */
            assert_true(dropped_when(formats[i], failing) > 0);
        fails_from_then_on = false;
    }
}

#define CASE(function) cmocka_unit_test_teardown(function, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(requests_small_window_is_one),
        CASE(requests_divide_a_profile_of_more_than_16000_samples),
        CASE(requests_divide_100000_samples),
        CASE(requests_divide_a_window_of_long_names),
        CASE(requests_divide_a_window_of_many_links),
        CASE(requests_divide_timestamps),
        CASE(requests_json_keeps_the_bound),
        CASE(requests_one_sample_above_the_bound_is_sent_alone),
        CASE(requests_large_resource_does_not_divide),
        CASE(requests_one_failed_allocation_drops_one_sample_at_most),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
