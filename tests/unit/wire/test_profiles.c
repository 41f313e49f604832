/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include <spanprof/version.h>
#include "golden/golden_data.h"
#include "wire/profiles.h"
#include "proto/profiles_service.pb-c.h"
#include "wire/unpack.h"

typedef Sp__Collector__ExportProfilesServiceRequest request_message;

static request_message *encode_and_unpack(const sp_profile_data *data)
{
    sp_buffer out = SP_BUFFER_INIT(1 << 20);
    assert_true(sp_otlp_encode_profiles(&out, SP_OTLP_PROTOBUF, &golden_resource, data));
    void *request = sp_otlp_unpack(&sp__collector__export_profiles_service_request__descriptor,
                                   out.data, out.length);
    assert_non_null(request);
    sp_buffer_deinit(&out);
    return request;
}

static int setup(void **state)
{
    *state = encode_and_unpack(&golden_profile_data);
    return 0;
}

static int teardown(void **state)
{
    request_message *request = *state;
    protobuf_c_message_free_unpacked(&request->base, NULL);
    return 0;
}

static const Sp__Profiles__Profile *profile_at(void **state, size_t number)
{
    const request_message *request = *state;
    assert_int_equal(request->n_resource_profiles, 1);
    assert_int_equal(request->resource_profiles[0]->n_scope_profiles, 1);
    return request->resource_profiles[0]->scope_profiles[0]->profiles[number];
}

static const Sp__Profiles__ProfilesDictionary *dictionary(void **state)
{
    return ((const request_message *)*state)->dictionary;
}

static void check_indices(size_t count, const int32_t *got, sp_index_list wanted)
{
    assert_int_equal(count, wanted.count);
    if (count)
        assert_memory_equal(got, golden_indices + wanted.offset, count * sizeof *got);
}

static void profiles_envelope_names_resource_scope_and_schema(void **state)
{
    const request_message *request = *state;
    const Sp__Profiles__ResourceProfiles *only = request->resource_profiles[0];
    assert_string_equal(only->schema_url, "https://opentelemetry.io/schemas/1.44.0");
    assert_string_equal(only->resource->attributes[0]->key, "service.name");
    assert_int_equal(only->resource->attributes[0]->key_strindex, 0);
    assert_string_equal(only->resource->attributes[0]->value->string_value, "shop");
    assert_string_equal(only->scope_profiles[0]->scope->name, "spanprof");
    assert_string_equal(only->scope_profiles[0]->scope->version, SPANPROF_VERSION);
    assert_int_equal(only->scope_profiles[0]->n_profiles, 2);
}

static void profiles_every_field_of_a_profile_comes_back(void **state)
{
    const Sp__Profiles__Profile *profile = profile_at(state, 0);
    assert_int_equal(profile->sample_type->type_strindex, S_SAMPLES);
    assert_int_equal(profile->sample_type->unit_strindex, S_COUNT);
    assert_int_equal(profile->period_type->type_strindex, S_CPU);
    assert_int_equal(profile->period_type->unit_strindex, S_NANOSECONDS);
    assert_int_equal(profile->period, 10101010);
    assert_true(profile->time_unix_nano == golden_profiles[0].time_unix_nano);
    assert_true(profile->duration_nano == golden_profiles[0].duration_nano);
    assert_int_equal(profile->profile_id.len, 16);
    assert_memory_equal(profile->profile_id.data, golden_profiles[0].profile_id, 16);
    check_indices(profile->n_attribute_indices, profile->attribute_indices,
                  golden_profiles[0].attributes);
}

/* Each Sample has one value and no timestamps, the one shape that every receiver takes. */
static void profiles_samples_come_back(void **state)
{
    const Sp__Profiles__Profile *profile = profile_at(state, 0);
    assert_int_equal(profile->n_samples, 2);
    for (size_t i = 0; i < 2; i++) {
        const Sp__Profiles__Sample *sample = profile->samples[i];
        const sp_profile_sample *wanted = &golden_cpu_samples[i];
        assert_int_equal(sample->stack_index, wanted->stack_index);
        assert_int_equal(sample->link_index, wanted->link_index);
        check_indices(sample->n_attribute_indices, sample->attribute_indices, wanted->attributes);
        assert_int_equal(sample->n_values, 1);
        assert_int_equal(sample->values[0], wanted->value);
        assert_int_equal(sample->n_timestamps_unix_nano, 0);
    }
}

static void profiles_without_period_type_have_no_such_message(void **state)
{
    const Sp__Profiles__Profile *profile = profile_at(state, 1);
    assert_null(profile->period_type);
    assert_int_equal(profile->period, 0);
    assert_int_equal(profile->profile_id.len, 0);
    assert_int_equal(profile->samples[0]->values[0], INT64_C(5000000000));
}

static void profiles_entry_zero_of_each_table_is_the_empty_message(void **state)
{
    const Sp__Profiles__ProfilesDictionary *tables = dictionary(state);
    assert_int_equal(protobuf_c_message_get_packed_size(&tables->mapping_table[0]->base), 0);
    assert_int_equal(protobuf_c_message_get_packed_size(&tables->location_table[0]->base), 0);
    assert_int_equal(protobuf_c_message_get_packed_size(&tables->function_table[0]->base), 0);
    assert_int_equal(protobuf_c_message_get_packed_size(&tables->link_table[0]->base), 0);
    assert_int_equal(protobuf_c_message_get_packed_size(&tables->attribute_table[0]->base), 0);
    assert_int_equal(protobuf_c_message_get_packed_size(&tables->stack_table[0]->base), 0);
    assert_string_equal(tables->string_table[0], "");
}

static void profiles_mappings_locations_and_functions_come_back(void **state)
{
    const Sp__Profiles__ProfilesDictionary *tables = dictionary(state);
    assert_int_equal(tables->n_mapping_table, 2);
    const Sp__Profiles__Mapping *mapping = tables->mapping_table[1];
    assert_int_equal(mapping->memory_start, 0x400000);
    assert_int_equal(mapping->memory_limit, 0x500000);
    assert_int_equal(mapping->file_offset, 0x1000);
    assert_int_equal(mapping->filename_strindex, S_SHOP);
    check_indices(mapping->n_attribute_indices, mapping->attribute_indices,
                  golden_mappings[1].attributes);
    assert_int_equal(tables->n_location_table, 3);
    const Sp__Profiles__Location *location = tables->location_table[2];
    assert_int_equal(location->mapping_index, 1);
    assert_int_equal(location->address, 0x401300);
    assert_int_equal(location->n_lines, 2);
    assert_int_equal(location->lines[0]->function_index, 2);
    assert_int_equal(location->lines[0]->line, 12);
    assert_int_equal(location->lines[0]->column, 5);
    assert_int_equal(location->lines[1]->function_index, 1);
    assert_int_equal(tables->n_function_table, 3);
    const Sp__Profiles__Function *function = tables->function_table[2];
    assert_int_equal(function->name_strindex, S_RENDER);
    assert_int_equal(function->system_name_strindex, S_RENDER_MANGLED);
    assert_int_equal(function->filename_strindex, S_SHOP_C);
    assert_int_equal(function->start_line, 10);
}

static void profiles_location_attributes_come_back(void **state)
{
    (void)state;
    sp_profile_location locations[2] = {{0},
                                        {.address = 1, .attributes = {.offset = 3, .count = 2}}};
    sp_profile_data data = golden_profile_data;
    data.locations = locations;
    data.location_count = 2;
    request_message *request = encode_and_unpack(&data);
    const Sp__Profiles__Location *location = request->dictionary->location_table[1];
    check_indices(location->n_attribute_indices, location->attribute_indices,
                  locations[1].attributes);
    protobuf_c_message_free_unpacked(&request->base, NULL);
}

static void profiles_strings_stacks_and_links_come_back(void **state)
{
    const Sp__Profiles__ProfilesDictionary *tables = dictionary(state);
    assert_int_equal(tables->n_string_table, S_STRINGS);
    for (size_t i = 0; i < S_STRINGS; i++)
        assert_string_equal(tables->string_table[i], golden_strings[i]);
    assert_int_equal(tables->n_stack_table, 3);
    for (size_t i = 0; i < 3; i++)
        check_indices(tables->stack_table[i]->n_location_indices,
                      tables->stack_table[i]->location_indices, golden_stacks[i]);
    assert_int_equal(tables->n_link_table, 2);
    const Sp__Profiles__Link *link = tables->link_table[1];
    assert_int_equal(link->trace_id.len, 16);
    assert_memory_equal(link->trace_id.data, golden_profile_links[1].trace_id, 16);
    assert_int_equal(link->span_id.len, 8);
    assert_memory_equal(link->span_id.data, golden_profile_links[1].span_id, 8);
}

static void profiles_attributes_come_back_with_unit_and_type(void **state)
{
    const Sp__Profiles__ProfilesDictionary *tables = dictionary(state);
    assert_int_equal(tables->n_attribute_table, 6);
    Sp__Profiles__KeyValueAndUnit **list = tables->attribute_table;
    assert_int_equal(list[1]->key_strindex, S_BUILD_ID);
    assert_string_equal(list[1]->value->string_value, "abc123");
    assert_int_equal(list[3]->key_strindex, S_UNATTRIBUTED);
    assert_int_equal(list[3]->unit_strindex, S_NANOSECONDS);
    assert_int_equal(list[3]->value->int_value, 12345);
    assert_true(list[4]->value->double_value == 0.5);
    assert_int_equal(list[5]->value->value_case, SP__COMMON__ANY_VALUE__VALUE_BOOL_VALUE);
    assert_true(list[5]->value->bool_value);
}

static void profiles_unattributed_threads_are_an_array_of_maps(void **state)
{
    (void)state;
    static const char *const keys[] = {"thread.name", "thread.id", "unattributed_ns"};
    const sp_profile_unattributed unattributed_threads[] = {{500, 77, "first"},
                                                            {400, 78, "second"}};
    sp_profile_attribute attributes[2] = {{0},
                                          {.key_strindex = S_UNATTRIBUTED,
                                           .unattributed_threads = unattributed_threads,
                                           .unattributed_count = 2}};
    sp_profile_data data = golden_profile_data;
    data.attributes = attributes;
    data.attribute_count = 2;
    request_message *request = encode_and_unpack(&data);
    const Sp__Common__AnyValue *value = request->dictionary->attribute_table[1]->value;
    assert_int_equal(value->value_case, SP__COMMON__ANY_VALUE__VALUE_ARRAY_VALUE);
    assert_int_equal(value->array_value->n_values, 2);
    const Sp__Common__KeyValueList *map = value->array_value->values[1]->kvlist_value;
    assert_int_equal(map->n_values, 3);
    for (int i = 0; i < 3; i++)
        assert_string_equal(map->values[i]->key, keys[i]);
    assert_string_equal(map->values[0]->value->string_value, "second");
    assert_int_equal(map->values[1]->value->int_value, 78);
    assert_int_equal(map->values[2]->value->int_value, 400);
    protobuf_c_message_free_unpacked(&request->base, NULL);
}

static void profiles_link_without_trace_id_keeps_its_span_id(void **state)
{
    (void)state;
    sp_profile_link links[2] = {{.trace_id = {0}}, {.span_id = {9}}};
    sp_profile_data data = golden_profile_data;
    data.links = links;
    request_message *request = encode_and_unpack(&data);
    assert_int_equal(request->dictionary->link_table[1]->trace_id.len, 0);
    assert_int_equal(request->dictionary->link_table[1]->span_id.len, 8);
    protobuf_c_message_free_unpacked(&request->base, NULL);
}

/* The shape "timestamps only": field 5, packed fixed64, and no field 4. */
static void profiles_timestamps_stand_in_place_of_the_value(void **state)
{
    (void)state;
    static const uint8_t sample_bytes[] = {
        0x12, 0x16,                                     /* Profile.samples, 22 bytes */
        0x08, 0x01,                                     /* stack_index 1 */
        0x18, 0x01,                                     /* link_index 1 */
        0x2a, 0x10,                                     /* timestamps_unix_nano, 16 bytes */
        0x08, 0x07, 0x06, 0x05, 0x04, 0x03, 0x02, 0x01, /* 0x0102030405060708 */
        0x09, 0x07, 0x06, 0x05, 0x04, 0x03, 0x02, 0x01};
    uint64_t times[] = {7, UINT64_C(0x0102030405060708), UINT64_C(0x0102030405060709)};
    sp_profile_sample sample = {
        .stack_index = 1, .link_index = 1, .timestamps = {1, 2}, .value = 2};
    sp_profile profile = golden_profile_data.profiles[0];
    profile.samples = &sample;
    profile.sample_count = 1;
    sp_profile_data data = golden_profile_data;
    data.timestamps = times;
    data.profiles = &profile;
    data.profile_count = 1;
    sp_buffer out = SP_BUFFER_INIT(1 << 20);
    assert_true(sp_otlp_encode_profiles(&out, SP_OTLP_PROTOBUF, &golden_resource, &data));
    assert_non_null(memmem(out.data, out.length, sample_bytes, sizeof sample_bytes));
    sp_buffer_clear(&out);
    assert_true(sp_otlp_encode_profiles(&out, SP_OTLP_JSON, &golden_resource, &data));
    assert_non_null(strstr((const char *)out.data,
                           "{\"stackIndex\":1,\"linkIndex\":1,\"timestampsUnixNano\":"
                           "[\"72623859790382856\",\"72623859790382857\"]}"));
    sp_buffer_deinit(&out);
}

static void profiles_no_profiles_give_the_empty_request(void **state)
{
    (void)state;
    sp_profile_data data = golden_profile_data;
    data.profile_count = 0;
    sp_buffer out = SP_BUFFER_INIT(100);
    assert_true(sp_otlp_encode_profiles(&out, SP_OTLP_PROTOBUF, &golden_resource, &data));
    assert_int_equal(out.length, 0);
    assert_true(sp_otlp_encode_profiles(&out, SP_OTLP_JSON, &golden_resource, &data));
    assert_string_equal((const char *)out.data, "{}");
    sp_buffer_deinit(&out);
}

static void profiles_buffer_too_small_appends_nothing(void **state)
{
    (void)state;
    for (int format = SP_OTLP_PROTOBUF; format <= SP_OTLP_JSON; format++) {
        for (size_t maximum = 1; maximum < 590; maximum++) {
            sp_buffer out = SP_BUFFER_INIT(maximum);
            sp_buffer_add_char(&out, '>');
            assert_false(sp_otlp_encode_profiles(&out, (sp_otlp_format)format, &golden_resource,
                                                 &golden_profile_data));
            assert_true(out.failed);
            assert_string_equal((const char *)out.data, ">");
            sp_buffer_deinit(&out);
        }
    }
}

/* ---- any data ---- */

enum { ENTRIES = 12, NUMBERS = 4000, SAMPLES = 300 };

/* Tables of random sizes, with numbers of all lengths. What refers to what is of no meaning. */
typedef struct any_data {
    uint64_t state;
    int32_t indices[NUMBERS];
    uint64_t timestamps[NUMBERS];
    const char *strings[ENTRIES];
    sp_profile_mapping mappings[ENTRIES];
    sp_profile_location locations[ENTRIES];
    sp_profile_line lines[ENTRIES];
    sp_profile_function functions[ENTRIES];
    sp_profile_link links[ENTRIES];
    sp_profile_attribute attributes[ENTRIES];
    sp_profile_unattributed unattributed_threads[ENTRIES];
    sp_index_list stacks[ENTRIES];
    sp_profile profiles[3];
    sp_profile_sample samples[SAMPLES];
} any_data;

/* Small ones, those at the edges of a varint's length, and any others. */
static uint64_t any_number(any_data *any)
{
    any->state ^= any->state << 13;
    any->state ^= any->state >> 7;
    any->state ^= any->state << 17;
    uint64_t number = any->state * UINT64_C(0x2545f4914f6cdd1d);
    switch (number % 4) {
    case 0:
        return number >> 62;
    case 1:
        return (UINT64_C(1) << (7 * (number >> 60) % 64)) - (number >> 8 & 1);
    default:
        return number >> (number >> 3) % 64;
    }
}

static uint32_t any_below(any_data *any, uint32_t bound)
{
    return (uint32_t)(any_number(any) % bound);
}

static sp_index_list any_list(any_data *any, uint32_t longest)
{
    return (sp_index_list){any_below(any, NUMBERS - longest), any_below(any, longest + 1)};
}

static void fill(any_data *any, void *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        ((uint8_t *)bytes)[i] = (uint8_t)any_number(any);
}

static sp_profile_attribute any_attribute(any_data *any, uint32_t number)
{
    sp_profile_attribute attribute = {.key_strindex = (uint32_t)any_number(any),
                                      .unit_strindex = (uint32_t)any_number(any),
                                      .type = (spanprof_attribute_type)(number % 4)};
    if (number % 5 == 4) {
        attribute.unattributed_threads = any->unattributed_threads;
        attribute.unattributed_count = any_below(any, ENTRIES);
    } else if (attribute.type == SPANPROF_ATTRIBUTE_STRING) {
        attribute.value.string_value = any->strings[number];
    } else if (attribute.type == SPANPROF_ATTRIBUTE_BOOL) {
        attribute.value.bool_value = any_number(any) & 1;
    } else {
        attribute.value.int_value = (int64_t)any_number(any);
    }
    return attribute;
}

static void make_any_entry(any_data *any, uint32_t i)
{
    static const char *const texts[] = {"", "main", "a longer name than the others have"};
    any->strings[i] = texts[any_below(any, 3)];
    any->mappings[i] = (sp_profile_mapping){any_number(any), any_number(any), any_number(any),
                                            (uint32_t)any_number(any), any_list(any, 3)};
    any->locations[i] =
        (sp_profile_location){(uint32_t)any_number(any), any_number(any), any_below(any, 6),
                              any_below(any, ENTRIES - 5), any_list(any, 300)};
    any->lines[i] = (sp_profile_line){(uint32_t)any_number(any), (int64_t)any_number(any),
                                      (int64_t)any_number(any)};
    any->functions[i] = (sp_profile_function){(uint32_t)any_number(any), (uint32_t)any_number(any),
                                              (uint32_t)any_number(any), (int64_t)any_number(any)};
    fill(any, &any->links[i], any_number(any) % 2 ? sizeof any->links[i] : 0);
    any->unattributed_threads[i] =
        (sp_profile_unattributed){.unattributed_ns = (int64_t)any_number(any),
                                  .tid = (int64_t)any_number(any),
                                  .name = "worker"};
    any->attributes[i] = any_attribute(any, i);
    any->stacks[i] = any_list(any, 600);
}

static sp_profile any_profile(any_data *any)
{
    sp_profile profile = {.period = (int64_t)any_number(any),
                          .sample_type_strindex = (uint32_t)any_number(any),
                          .period_type_strindex = (uint32_t)any_number(any),
                          .period_unit_strindex = (uint32_t)any_number(any),
                          .time_unix_nano = any_number(any),
                          .duration_nano = any_number(any),
                          .attributes = any_list(any, 40),
                          .samples = any->samples + any_below(any, SAMPLES / 2),
                          .sample_count = any_below(any, SAMPLES / 2)};
    fill(any, profile.profile_id, any_number(any) % 2 ? sizeof profile.profile_id : 0);
    return profile;
}

static sp_profile_data make_any_data(any_data *any, uint64_t seed)
{
    any->state = seed;
    for (uint32_t i = 0; i < NUMBERS; i++) {
        any->indices[i] = (int32_t)any_number(any);
        any->timestamps[i] = any_number(any);
    }
    for (uint32_t i = 0; i < ENTRIES; i++)
        make_any_entry(any, i);
    for (uint32_t i = 0; i < SAMPLES; i++)
        any->samples[i] = (sp_profile_sample){
            (uint32_t)any_number(any), (uint32_t)any_number(any), any_list(any, 12),
            any_list(any, any_number(any) % 3 ? 0 : 40), (int64_t)any_number(any)};
    for (uint32_t i = 0; i < 3; i++)
        any->profiles[i] = any_profile(any);
    return (sp_profile_data){.strings = any->strings,
                             .string_count = any_below(any, ENTRIES),
                             .mappings = any->mappings,
                             .mapping_count = any_below(any, ENTRIES),
                             .locations = any->locations,
                             .location_count = any_below(any, ENTRIES),
                             .functions = any->functions,
                             .function_count = any_below(any, ENTRIES),
                             .links = any->links,
                             .link_count = any_below(any, ENTRIES),
                             .attributes = any->attributes,
                             .attribute_count = any_below(any, ENTRIES),
                             .stacks = any->stacks,
                             .stack_count = any_below(any, ENTRIES),
                             .lines = any->lines,
                             .indices = any->indices,
                             .timestamps = any->timestamps,
                             .profiles = any->profiles,
                             .profile_count = any_below(any, 4)};
}

static void assert_as_protobuf_c_writes_it(const sp_profile_data *data)
{
    sp_arena arena = {0};
    request_message request = SP__COLLECTOR__EXPORT_PROFILES_SERVICE_REQUEST__INIT;
    sp_buffer wanted = SP_BUFFER_INIT(1 << 22), got = SP_BUFFER_INIT(1 << 22);
    assert_true(sp_otlp_profiles_tree(&arena, &request, &golden_resource, data));
    assert_true(sp_otlp_append(&wanted, SP_OTLP_PROTOBUF, &request.base));
    assert_true(sp_otlp_encode_profiles(&got, SP_OTLP_PROTOBUF, &golden_resource, data));
    assert_int_equal(got.length, wanted.length);
    if (got.length)
        assert_memory_equal(got.data, wanted.data, wanted.length);
    sp_buffer_deinit(&wanted);
    sp_buffer_deinit(&got);
    sp_arena_deinit(&arena);
}

static void profiles_bytes_are_those_of_protobuf_c(void **state)
{
    (void)state;
    any_data *any = calloc(1, sizeof *any);
    assert_non_null(any);
    assert_as_protobuf_c_writes_it(&golden_profile_data);
    for (uint64_t seed = 1; seed <= 300; seed++) {
        sp_profile_data data = make_any_data(any, seed);
        assert_as_protobuf_c_writes_it(&data);
    }
    free(any);
}

#define WITH_REQUEST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_REQUEST(profiles_envelope_names_resource_scope_and_schema),
        WITH_REQUEST(profiles_every_field_of_a_profile_comes_back),
        WITH_REQUEST(profiles_samples_come_back),
        WITH_REQUEST(profiles_without_period_type_have_no_such_message),
        WITH_REQUEST(profiles_entry_zero_of_each_table_is_the_empty_message),
        WITH_REQUEST(profiles_mappings_locations_and_functions_come_back),
        cmocka_unit_test(profiles_location_attributes_come_back),
        WITH_REQUEST(profiles_strings_stacks_and_links_come_back),
        WITH_REQUEST(profiles_attributes_come_back_with_unit_and_type),
        cmocka_unit_test(profiles_unattributed_threads_are_an_array_of_maps),
        cmocka_unit_test(profiles_link_without_trace_id_keeps_its_span_id),
        cmocka_unit_test(profiles_timestamps_stand_in_place_of_the_value),
        cmocka_unit_test(profiles_no_profiles_give_the_empty_request),
        cmocka_unit_test(profiles_buffer_too_small_appends_nothing),
        cmocka_unit_test(profiles_bytes_are_those_of_protobuf_c),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
