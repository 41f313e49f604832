/* SPDX-License-Identifier: Apache-2.0 */
/* pprof of a window, read back with protobuf-c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "golden/golden_data.h"
#include "proto/pprof.pb-c.h"
#include "wire/pprof.h"
#include "wire/profiles.h"
#include "wire/unpack.h"

static Sp__Pprof__Profile *unpack(sp_buffer *out)
{
    void *made = sp_otlp_unpack(&sp__pprof__profile__descriptor, out->data, out->length);
    assert_non_null(made);
    sp_buffer_deinit(out);
    return made;
}

static int setup(void **state)
{
    sp_buffer out = SP_BUFFER_INIT(1 << 20);
    assert_true(sp_pprof_encode(&out, &golden_resource, &golden_profile_data));
    *state = unpack(&out);
    return 0;
}

static int teardown(void **state)
{
    protobuf_c_message_free_unpacked(*state, NULL);
    return 0;
}

static const char *text(const Sp__Pprof__Profile *profile, int64_t string)
{
    assert_in_range(string, 0, profile->n_string_table - 1);
    return profile->string_table[string];
}

static void check_type(const Sp__Pprof__Profile *profile, const Sp__Pprof__ValueType *type,
                       const char *name, const char *unit)
{
    assert_string_equal(text(profile, type->type), name);
    assert_string_equal(text(profile, type->unit), unit);
}

static void pprof_samples_of_a_period_are_counts_and_time(void **state)
{
    const Sp__Pprof__Profile *profile = *state;
    assert_int_equal(profile->n_sample_type, 3);
    check_type(profile, profile->sample_type[0], "samples", "count");
    check_type(profile, profile->sample_type[1], "cpu", "nanoseconds");
    check_type(profile, profile->sample_type[2], "off_cpu", "nanoseconds");
    check_type(profile, profile->period_type, "cpu", "nanoseconds");
    assert_int_equal(profile->period, 10101010);
    assert_true(profile->time_nanos == INT64_C(1700000000000000000));
    assert_true(profile->duration_nanos == INT64_C(10000000000));
    assert_string_equal(text(profile, profile->default_sample_type), "off_cpu");
}

static void pprof_a_sample_has_a_value_of_each_type(void **state)
{
    const Sp__Pprof__Profile *profile = *state;
    static const int64_t wanted[3][3] = {
        {200, 200 * INT64_C(10101010), 0}, {1, 10101010, 0}, {0, 0, INT64_C(5000000000)}};
    assert_int_equal(profile->n_sample, 3);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(profile->sample[i]->n_value, 3);
        assert_memory_equal(profile->sample[i]->value, wanted[i], sizeof wanted[i]);
    }
}

static void check_label(const Sp__Pprof__Profile *profile, const Sp__Pprof__Label *label,
                        const char *key, const char *value)
{
    assert_string_equal(text(profile, label->key), key);
    assert_string_equal(text(profile, label->str), value);
    assert_int_equal(label->num, 0);
}

static void pprof_links_and_attributes_are_labels(void **state)
{
    const Sp__Pprof__Profile *profile = *state;
    const Sp__Pprof__Sample *sample = profile->sample[0];
    assert_int_equal(sample->n_label, 3);
    check_label(profile, sample->label[0], "trace_id", "5b8efff798038103d269b633813fc60c");
    check_label(profile, sample->label[1], "span_id", "eee19b7ec3c1b174");
    check_label(profile, sample->label[2], "thread.name", "w-1");
    assert_int_equal(profile->sample[1]->n_label, 0);
}

static const Sp__Pprof__Location *location_of(const Sp__Pprof__Profile *profile, uint64_t id)
{
    for (size_t i = 0; i < profile->n_location; i++)
        if (profile->location[i]->id == id)
            return profile->location[i];
    fail_msg("no location has the id %d", (int)id);
    return NULL;
}

static void pprof_stacks_lead_to_addresses_lines_and_functions(void **state)
{
    const Sp__Pprof__Profile *profile = *state;
    const Sp__Pprof__Sample *sample = profile->sample[0];
    assert_int_equal(sample->n_location_id, 2);
    const Sp__Pprof__Location *leaf = location_of(profile, sample->location_id[0]);
    assert_int_equal(leaf->address, 0x401300);
    assert_int_equal(leaf->n_line, 2);
    assert_int_equal(leaf->line[0]->line, 12);
    assert_int_equal(leaf->line[0]->column, 5);
    assert_int_equal(profile->n_function, 2);
    const Sp__Pprof__Function *inner = profile->function[1];
    assert_int_equal(leaf->line[0]->function_id, inner->id);
    assert_string_equal(text(profile, inner->name), "render(int)");
    assert_int_equal(inner->start_line, 10);
    assert_int_equal(location_of(profile, sample->location_id[1])->address, 0x401234);
}

static void pprof_a_mapping_has_its_build_id_and_what_is_known(void **state)
{
    const Sp__Pprof__Profile *profile = *state;
    assert_int_equal(profile->n_mapping, 1);
    const Sp__Pprof__Mapping *mapping = profile->mapping[0];
    assert_int_equal(mapping->id, profile->location[0]->mapping_id);
    assert_int_equal(mapping->memory_start, 0x400000);
    assert_int_equal(mapping->memory_limit, 0x500000);
    assert_int_equal(mapping->file_offset, 0x1000);
    assert_string_equal(text(profile, mapping->build_id), "abc123");
    assert_true(mapping->has_functions && mapping->has_filenames && mapping->has_line_numbers &&
                mapping->has_inline_frames);
}

static void pprof_resource_and_attributes_are_comments(void **state)
{
    const Sp__Pprof__Profile *profile = *state;
    static const char *const wanted[] = {"service.name=shop", "process.pid=4242", "ratio=0.5",
                                         "done=true", "spanprof.unattributed_ns=12345"};
    assert_int_equal(profile->n_comment, 5);
    for (size_t i = 0; i < 5; i++)
        assert_string_equal(text(profile, profile->comment[i]), wanted[i]);
}

/* Sum of two windows, and a sum that does not fit. */
static void pprof_equal_samples_are_added_up_and_stay_at_the_largest_number(void **state)
{
    (void)state;
    static sp_profile_sample twice[] = {
        {.stack_index = 1, .value = 5},
        {.stack_index = 1, .value = 6},
        {.stack_index = 2, .value = INT64_MAX},
    };
    static sp_profile profiles[1];
    profiles[0] = golden_profiles[0];
    profiles[0].samples = twice;
    profiles[0].sample_count = 3;
    sp_profile_data data = golden_profile_data;
    data.profiles = profiles;
    data.profile_count = 1;
    sp_buffer out = SP_BUFFER_INIT(1 << 20);
    assert_true(sp_pprof_encode(&out, &golden_resource, &data));
    Sp__Pprof__Profile *profile = unpack(&out);
    assert_int_equal(profile->n_sample, 2);
    assert_true(profile->sample[0]->value[0] == 11);
    assert_true(profile->sample[1]->value[1] == INT64_MAX);
    protobuf_c_message_free_unpacked(&profile->base, NULL);
}

static void pprof_without_room_appends_nothing(void **state)
{
    (void)state;
    sp_buffer out = SP_BUFFER_INIT(16);
    assert_true(sp_buffer_add_char(&out, '>'));
    assert_false(sp_pprof_encode(&out, &golden_resource, &golden_profile_data));
    assert_true(out.failed);
    assert_int_equal(out.length, 1);
    sp_buffer_deinit(&out);
}

/* Go's reader refuses a file with such a line. */
static void pprof_lines_without_a_function_are_left_out(void **state)
{
    (void)state;
    static sp_profile_line lines[LENGTH_OF(golden_lines)];
    memcpy(lines, golden_lines, sizeof lines);
    lines[1].function_index = 0;
    sp_profile_data data = golden_profile_data;
    data.lines = lines;
    sp_buffer out = SP_BUFFER_INIT(1 << 20);
    assert_true(sp_pprof_encode(&out, &golden_resource, &data));
    Sp__Pprof__Profile *profile = unpack(&out);
    for (size_t i = 0; i < profile->n_location; i++)
        for (size_t k = 0; k < profile->location[i]->n_line; k++)
            assert_int_not_equal(profile->location[i]->line[k]->function_id, 0);
    assert_int_equal(location_of(profile, profile->sample[0]->location_id[0])->n_line, 1);
    protobuf_c_message_free_unpacked(&profile->base, NULL);
}

/* The program is mapping 2 here; pprof's readers take the first one for it. */
static void pprof_the_programs_mapping_is_the_first(void **state)
{
    (void)state;
    static sp_profile_mapping mappings[3];
    static sp_profile_location locations[3];
    static const char *strings[S_STRINGS];
    static spanprof_attribute attributes[] = {{.key = "process.executable.path",
                                               .type = SPANPROF_ATTRIBUTE_STRING,
                                               .value.string_value = "/bin/program"}};
    const sp_resource resource = {.attributes = attributes, .attribute_count = 1};
    memcpy(strings, golden_strings, sizeof strings);
    strings[S_RATIO] = "/bin/program";
    memcpy(locations, golden_locations, sizeof locations);
    mappings[1] = mappings[2] = golden_mappings[1];
    mappings[2].filename_strindex = S_RATIO;
    locations[2].mapping_index = 2;
    sp_profile_data data = golden_profile_data;
    data.strings = strings;
    data.mappings = mappings;
    data.mapping_count = 3;
    data.locations = locations;
    sp_buffer out = SP_BUFFER_INIT(1 << 20);
    assert_true(sp_pprof_encode(&out, &resource, &data));
    Sp__Pprof__Profile *profile = unpack(&out);
    assert_int_equal(profile->n_mapping, 2);
    assert_string_equal(text(profile, profile->mapping[0]->filename), "/bin/program");
    assert_int_equal(profile->mapping[0]->id, location_of(profile, 3)->mapping_id);
    protobuf_c_message_free_unpacked(&profile->base, NULL);
}

/* ---- sequences ---- */

static const sp_pprof_type_name cpu_types[] = {{"samples", "count"}, {"cpu", "nanoseconds"}};

static void add_window(sp_buffer *out, sp_pprof_sequence *sequence, sp_profile *profile)
{
    sp_profile_data data = golden_profile_data;
    data.profiles = profile;
    data.profile_count = profile != NULL;
    assert_true(sp_pprof_encode_part(out, &golden_resource, &data, cpu_types, 2, sequence));
}

static const char *name_of(const Sp__Pprof__Profile *profile, uint64_t location)
{
    uint64_t function = location_of(profile, location)->line[0]->function_id;
    for (size_t i = 0; i < profile->n_function; i++)
        if (profile->function[i]->id == function)
            return text(profile, profile->function[i]->name);
    fail_msg("no function has the id %d", (int)function);
    return NULL;
}

static void pprof_windows_in_a_sequence_are_one(void **state)
{
    (void)state;
    sp_buffer out = SP_BUFFER_INIT(1 << 20);
    sp_pprof_sequence sequence = {0};
    sp_profile second = golden_profiles[0];
    second.time_unix_nano += UINT64_C(20000000000);
    add_window(&out, &sequence, NULL);
    add_window(&out, &sequence, golden_profiles);
    add_window(&out, &sequence, NULL);
    add_window(&out, &sequence, &second);
    Sp__Pprof__Profile *profile = unpack(&out);
    assert_int_equal(profile->n_sample_type, 2);
    check_type(profile, profile->sample_type[1], "cpu", "nanoseconds");
    check_type(profile, profile->period_type, "cpu", "nanoseconds");
    assert_string_equal(text(profile, profile->default_sample_type), "cpu");
    assert_true(profile->time_nanos == INT64_C(1700000000000000000));
    assert_true(profile->duration_nanos == INT64_C(30000000000));
    assert_int_equal(profile->n_sample, 4);
    for (size_t i = 0; i < 4; i++) {
        const Sp__Pprof__Sample *sample = profile->sample[i];
        assert_int_equal(sample->n_value, 2);
        assert_int_equal(sample->value[0], i % 2 ? 1 : 200);
        assert_string_equal(name_of(profile, sample->location_id[0]),
                            i % 2 ? "main" : "render(int)");
        assert_int_equal(sample->n_label, i % 2 ? 0 : 3);
    }
    assert_int_equal(profile->n_comment, 4);
    assert_string_equal(text(profile, profile->comment[0]), "service.name=shop");
    check_label(profile, profile->sample[2]->label[2], "thread.name", "w-1");
    assert_string_equal(text(profile, profile->mapping[1]->build_id), "abc123");
    assert_int_equal(profile->mapping[1]->id,
                     location_of(profile, profile->sample[3]->location_id[0])->mapping_id);
    protobuf_c_message_free_unpacked(&profile->base, NULL);
}

static void pprof_without_a_sample_has_its_types(void **state)
{
    (void)state;
    sp_buffer out = SP_BUFFER_INIT(1 << 20);
    sp_pprof_sequence sequence = {0};
    add_window(&out, &sequence, NULL);
    Sp__Pprof__Profile *profile = unpack(&out);
    assert_int_equal(profile->n_sample_type, 2);
    assert_int_equal(profile->n_sample, 0);
    assert_string_equal(text(profile, 0), "");
    protobuf_c_message_free_unpacked(&profile->base, NULL);
}

#define READS(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        READS(pprof_samples_of_a_period_are_counts_and_time),
        READS(pprof_a_sample_has_a_value_of_each_type),
        READS(pprof_links_and_attributes_are_labels),
        READS(pprof_stacks_lead_to_addresses_lines_and_functions),
        READS(pprof_a_mapping_has_its_build_id_and_what_is_known),
        READS(pprof_resource_and_attributes_are_comments),
        cmocka_unit_test(pprof_equal_samples_are_added_up_and_stay_at_the_largest_number),
        cmocka_unit_test(pprof_without_room_appends_nothing),
        cmocka_unit_test(pprof_lines_without_a_function_are_left_out),
        cmocka_unit_test(pprof_the_programs_mapping_is_the_first),
        cmocka_unit_test(pprof_windows_in_a_sequence_are_one),
        cmocka_unit_test(pprof_without_a_sample_has_its_types),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
