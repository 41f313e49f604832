/* SPDX-License-Identifier: Apache-2.0 */
/* Two small inputs, made by hand, whose encodings are written down byte by byte in this folder. */
#ifndef GOLDEN_DATA_H
#define GOLDEN_DATA_H

#include "wire/otlp.h"

/* clang-format off */
#define GOLDEN_TRACE_ID {0x5b, 0x8e, 0xff, 0xf7, 0x98, 0x03, 0x81, 0x03, 0xd2, 0x69, 0xb6, 0x33, 0x81, 0x3f, 0xc6, 0x0c}
#define GOLDEN_ROOT_ID  {0xee, 0xe1, 0x9b, 0x7e, 0xc3, 0xc1, 0xb1, 0x74}
#define GOLDEN_CHILD_ID {0, 0, 0, 0, 0, 0, 0, 0x2a}
/* clang-format on */

static spanprof_attribute golden_resource_attributes[] = {
    {.key = "service.name", .type = SPANPROF_ATTRIBUTE_STRING, .value.string_value = "shop"},
    {.key = "process.pid", .type = SPANPROF_ATTRIBUTE_INT, .value.int_value = 4242},
};

static const sp_resource golden_resource = {
    .attributes = golden_resource_attributes,
    .attribute_count = 2,
};

/* ---- a trace: a server span that failed, and its child from another scope ---- */

static const spanprof_attribute golden_scope_attributes[] = {
    {.key = "team", .type = SPANPROF_ATTRIBUTE_STRING, .value.string_value = "cart"},
};

static const sp_instrumentation_scope golden_http = {
    .name = "http",
    .version = "1.2",
    .schema_url = "https://opentelemetry.io/schemas/1.30.0",
    .attributes = golden_scope_attributes,
    .attribute_count = 1,
    .dropped_attributes_count = 4,
};
static const sp_instrumentation_scope golden_sql = {.name = "sql", .version = "", .schema_url = ""};

static const char *const golden_words[] = {"a", "", "\xc3\xa9"};
static const int64_t golden_numbers[] = {0, -1, INT64_MAX};
static const double golden_reals[] = {0.1, -2.5};
static const bool golden_truths[] = {true, false};

static const spanprof_attribute golden_root_attributes[] = {
    {.key = "http.route", .type = SPANPROF_ATTRIBUTE_STRING, .value.string_value = "/cart"},
    {.key = "http.response.status_code", .type = SPANPROF_ATTRIBUTE_INT, .value.int_value = 500},
    {.key = "load", .type = SPANPROF_ATTRIBUTE_DOUBLE, .value.double_value = 0.1},
    {.key = "retried", .type = SPANPROF_ATTRIBUTE_BOOL, .value.bool_value = false},
    {.key = "user", .type = SPANPROF_ATTRIBUTE_STRING, .value.string_value = ""},
    {.key = "delta", .type = SPANPROF_ATTRIBUTE_INT, .value.int_value = -1},
    {.key = "words",
     .type = SPANPROF_ATTRIBUTE_STRING_ARRAY,
     .count = 3,
     .value.string_array = golden_words},
    {.key = "numbers",
     .type = SPANPROF_ATTRIBUTE_INT_ARRAY,
     .count = 3,
     .value.int_array = golden_numbers},
    {.key = "reals",
     .type = SPANPROF_ATTRIBUTE_DOUBLE_ARRAY,
     .count = 2,
     .value.double_array = golden_reals},
    {.key = "truths",
     .type = SPANPROF_ATTRIBUTE_BOOL_ARRAY,
     .count = 2,
     .value.bool_array = golden_truths},
    {.key = "nothing", .type = SPANPROF_ATTRIBUTE_INT_ARRAY, .count = 0},
};

static const spanprof_attribute golden_event_attributes[] = {
    {.key = "exception.type", .type = SPANPROF_ATTRIBUTE_STRING, .value.string_value = "ENOENT"},
    {.key = "tries",
     .type = SPANPROF_ATTRIBUTE_INT_ARRAY,
     .count = 1,
     .value.int_array = golden_numbers},
};

static const sp_span_event golden_events[] = {
    {.time_ns = UINT64_C(1700000000000000002),
     .name = "exception",
     .attributes = golden_event_attributes,
     .attribute_count = 2,
     .dropped_attributes_count = 5},
    {.time_ns = UINT64_C(1700000000000000003), .name = ""},
};

static const spanprof_attribute golden_link_attributes[] = {
    {.key = "why", .type = SPANPROF_ATTRIBUTE_STRING, .value.string_value = "queue \"a\"\n"},
};

static const sp_span_link golden_links[] = {{
    .trace_id = {0xaa, [15] = 0xbb},
    .span_id = {0xcc, [7] = 0xdd},
    .flags = 0x101,
    .attributes = golden_link_attributes,
    .attribute_count = 1,
    .dropped_attributes_count = 2,
    .trace_state = "queue=2",
}};

static sp_span_data golden_root = {
    .trace_id = GOLDEN_TRACE_ID,
    .span_id = GOLDEN_ROOT_ID,
    .flags = 0x301,
    .parent_span_id = {0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88},
    .kind = SPANPROF_SPAN_KIND_SERVER,
    .status = SPANPROF_SPAN_STATUS_ERROR,
    .attribute_count = 11,
    .dropped_attributes_count = 1,
    .event_count = 2,
    .dropped_events_count = 6,
    .link_count = 1,
    .dropped_links_count = 3,
    .start_time_ns = UINT64_C(1700000000000000001),
    .end_time_ns = UINT64_C(1700000000050000000),
    .name = "GET /cart",
    .trace_state = "vendor=1",
    .status_message = "no \xc3\xa9t\xc3\xa9", /* UTF-8 */
    .scope = &golden_http,
    .attributes = golden_root_attributes,
    .links = golden_links,
    .events = golden_events,
};

static sp_span_data golden_child = {
    .trace_id = GOLDEN_TRACE_ID,
    .span_id = GOLDEN_CHILD_ID,
    .flags = 0x101,
    .parent_span_id = GOLDEN_ROOT_ID,
    .kind = SPANPROF_SPAN_KIND_INTERNAL,
    .start_time_ns = UINT64_C(1700000000010000000),
    .end_time_ns = UINT64_C(1700000000020000000),
    .name = "select",
    .trace_state = "",
    .status_message = "",
    .scope = &golden_sql,
};

static sp_span_data golden_second_root = {
    .trace_id = GOLDEN_TRACE_ID,
    .span_id = {[7] = 0x2b},
    .flags = 0x101,
    .kind = SPANPROF_SPAN_KIND_CONSUMER,
    .status = SPANPROF_SPAN_STATUS_OK,
    .start_time_ns = UINT64_C(1700000000030000000),
    .end_time_ns = UINT64_C(1700000000030000000),
    .name = "poll",
    .trace_state = "",
    .status_message = "",
    .scope = &golden_http,
};

static sp_span_data *const golden_spans[] = {&golden_root, &golden_child, &golden_second_root};

/* ---- a profile: main called render twice as a leaf of the root span, and once ran itself without
 * a span ---- */

enum {
    S_EMPTY,
    S_SAMPLES,
    S_COUNT,
    S_CPU,
    S_NANOSECONDS,
    S_MAIN,
    S_RENDER,
    S_RENDER_MANGLED,
    S_SHOP_C,
    S_SHOP,
    S_BUILD_ID,
    S_THREAD_NAME,
    S_UNATTRIBUTED,
    S_RATIO,
    S_DONE,
    S_OFF_CPU,
    S_STRINGS
};

static const char *golden_strings[S_STRINGS] = {
    [S_EMPTY] = "",
    [S_SAMPLES] = "samples",
    [S_COUNT] = "count",
    [S_CPU] = "cpu",
    [S_NANOSECONDS] = "nanoseconds",
    [S_MAIN] = "main",
    [S_RENDER] = "render(int)",
    [S_RENDER_MANGLED] = "_Z6renderi",
    [S_SHOP_C] = "shop.cc",
    [S_SHOP] = "/usr/bin/shop",
    [S_BUILD_ID] = "process.executable.build_id.gnu",
    [S_THREAD_NAME] = "thread.name",
    [S_UNATTRIBUTED] = "spanprof.unattributed_ns",
    [S_RATIO] = "ratio",
    [S_DONE] = "done",
    [S_OFF_CPU] = "off_cpu",
};

static sp_profile_attribute golden_attributes[] = {
    {0},
    {.key_strindex = S_BUILD_ID, .type = SPANPROF_ATTRIBUTE_STRING, .value.string_value = "abc123"},
    {.key_strindex = S_THREAD_NAME, .type = SPANPROF_ATTRIBUTE_STRING, .value.string_value = "w-1"},
    {.key_strindex = S_UNATTRIBUTED,
     .unit_strindex = S_NANOSECONDS,
     .type = SPANPROF_ATTRIBUTE_INT,
     .value.int_value = 12345},
    {.key_strindex = S_RATIO, .type = SPANPROF_ATTRIBUTE_DOUBLE, .value.double_value = 0.5},
    {.key_strindex = S_DONE, .type = SPANPROF_ATTRIBUTE_BOOL, .value.bool_value = true},
};

/* Lists in it: mapping 1 has [1]; the first sample has [2]; profile 0 has [3 4 5]; stacks are [1]
 * and [2 1]. */
static int32_t golden_indices[] = {1, 2, 3, 4, 5, 1, 2, 1};

static sp_profile_mapping golden_mappings[] = {
    {0},
    {.memory_start = 0x400000,
     .memory_limit = 0x500000,
     .file_offset = 0x1000,
     .filename_strindex = S_SHOP,
     .attributes = {.offset = 0, .count = 1}},
};

static sp_profile_line golden_lines[] = {
    {.function_index = 1, .line = 30, .column = 0},
    {.function_index = 2, .line = 12, .column = 5},
    {.function_index = 1, .line = 31, .column = 0},
};

/* Location 2 is render inlined into main. */
static sp_profile_location golden_locations[] = {
    {0},
    {.mapping_index = 1, .address = 0x401234, .first_line = 0, .line_count = 1},
    {.mapping_index = 1, .address = 0x401300, .first_line = 1, .line_count = 2},
};

static sp_profile_function golden_functions[] = {
    {0},
    {.name_strindex = S_MAIN, .filename_strindex = S_SHOP_C, .start_line = 28},
    {.name_strindex = S_RENDER,
     .system_name_strindex = S_RENDER_MANGLED,
     .filename_strindex = S_SHOP_C,
     .start_line = 10},
};

static sp_profile_link golden_profile_links[] = {
    {.trace_id = {0}},
    {.trace_id = GOLDEN_TRACE_ID, .span_id = GOLDEN_ROOT_ID},
};

static sp_index_list golden_stacks[] = {
    {0},
    {.offset = 5, .count = 1},
    {.offset = 6, .count = 2},
};

static sp_profile_sample golden_cpu_samples[] = {
    {.stack_index = 2, .link_index = 1, .attributes = {.offset = 1, .count = 1}, .value = 200},
    {.stack_index = 1, .link_index = 0, .value = 1},
};

static sp_profile_sample golden_off_cpu_samples[] = {
    {.stack_index = 1, .link_index = 1, .value = INT64_C(5000000000)},
};

/* CPU, and off-CPU time, which has no period type. */
static sp_profile golden_profiles[] = {
    {.sample_type_strindex = S_SAMPLES,
     .sample_unit_strindex = S_COUNT,
     .period_type_strindex = S_CPU,
     .period_unit_strindex = S_NANOSECONDS,
     .period = 10101010,
     .time_unix_nano = UINT64_C(1700000000000000000),
     .duration_nano = UINT64_C(10000000000),
     .profile_id = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16},
     .attributes = {.offset = 2, .count = 3},
     .samples = golden_cpu_samples,
     .sample_count = 2},
    {.sample_type_strindex = S_OFF_CPU,
     .sample_unit_strindex = S_NANOSECONDS,
     .time_unix_nano = UINT64_C(1700000000000000000),
     .duration_nano = UINT64_C(10000000000),
     .samples = golden_off_cpu_samples,
     .sample_count = 1},
};

#define LENGTH_OF(array) ((uint32_t)(sizeof(array) / sizeof((array)[0])))

static const sp_profile_data golden_profile_data = {
    .strings = golden_strings,
    .mappings = golden_mappings,
    .locations = golden_locations,
    .functions = golden_functions,
    .links = golden_profile_links,
    .attributes = golden_attributes,
    .stacks = golden_stacks,
    .string_count = S_STRINGS,
    .mapping_count = LENGTH_OF(golden_mappings),
    .location_count = LENGTH_OF(golden_locations),
    .function_count = LENGTH_OF(golden_functions),
    .link_count = LENGTH_OF(golden_profile_links),
    .attribute_count = LENGTH_OF(golden_attributes),
    .stack_count = LENGTH_OF(golden_stacks),
    .lines = golden_lines,
    .indices = golden_indices,
    .profiles = golden_profiles,
    .profile_count = LENGTH_OF(golden_profiles),
};

#endif
