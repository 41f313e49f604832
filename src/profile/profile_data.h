/* SPDX-License-Identifier: Apache-2.0 */
/* Profiles ready to be encoded: the tables of OTLP's ProfilesDictionary and Profile messages as
 * plain arrays (field by field as in proto/profiles.proto, which says what each means). The builder
 * makes one from a window; src/wire encodes it.
 *
 * Invariants: entry 0 of each table is its zero value; no table has two equal entries, nor one that
 * nothing refers to (except entry 0); every index is below its table's count; strings are valid
 * UTF-8. */
#ifndef SP_PROFILE_PROFILE_DATA_H
#define SP_PROFILE_PROFILE_DATA_H

#include <spanprof/tracer.h>
#include "core/arena.h"

/* A list of indices: offset and count into sp_profile_data.indices. */
typedef struct sp_index_list {
    uint32_t offset;
    uint32_t count;
} sp_index_list;

typedef struct sp_profile_mapping {
    uint64_t memory_start, memory_limit, file_offset;
    uint32_t filename_strindex;
    sp_index_list attributes;
} sp_profile_mapping;

typedef struct sp_profile_line {
    uint32_t function_index;
    int64_t line, column;
} sp_profile_line;

typedef struct sp_profile_location {
    uint32_t mapping_index;
    uint64_t address;
    uint32_t first_line; /* into lines[], innermost inlined function first */
    uint32_t line_count;
    sp_index_list attributes;
} sp_profile_location;

typedef struct sp_profile_function {
    uint32_t name_strindex, system_name_strindex, filename_strindex;
    int64_t start_line;
} sp_profile_function;

typedef struct sp_profile_link {
    uint8_t trace_id[16];
    uint8_t span_id[8];
} sp_profile_link;

/* CPU time of a thread that is in no sample. */
typedef struct sp_profile_unattributed {
    int64_t unattributed_ns;
    int64_t tid;
    char name[3 * 16 + 8]; /* 16 bytes, repaired to UTF-8; filled up with zeros */
} sp_profile_unattributed;

typedef struct sp_profile_attribute {
    uint32_t key_strindex;
    uint32_t unit_strindex;
    spanprof_attribute_type type;
    union {
        const char *string_value;
        int64_t int_value;
        double double_value;
        bool bool_value;
    } value;
    const sp_profile_unattributed *unattributed_threads; /* not NULL: the value, an array of maps */
    uint32_t unattributed_count;
} sp_profile_attribute;

typedef struct sp_profile_sample {
    uint32_t stack_index;
    uint32_t link_index;
    sp_index_list attributes;
    sp_index_list timestamps; /* into timestamps[]; if any, they are encoded instead of the value,
                                 which is their number */
    int64_t value;
} sp_profile_sample;

typedef struct sp_profile {
    uint32_t sample_type_strindex, sample_unit_strindex;
    uint32_t period_type_strindex, period_unit_strindex;
    int64_t period;
    uint64_t time_unix_nano, duration_nano;
    uint8_t profile_id[16];
    sp_index_list attributes;
    sp_profile_sample *samples;
    uint32_t sample_count;
} sp_profile;

typedef struct sp_profile_data {
    sp_arena memory; /* everything below */
    const char **strings;
    sp_profile_mapping *mappings;
    sp_profile_location *locations;
    sp_profile_function *functions;
    sp_profile_link *links;
    sp_profile_attribute *attributes;
    sp_index_list *stacks; /* location numbers, leaf first */
    uint32_t string_count, mapping_count, location_count, function_count, link_count,
        attribute_count, stack_count;
    sp_profile_line *lines;
    int32_t *indices;
    uint64_t *timestamps; /* Unix nanoseconds */
    sp_profile *profiles;
    uint32_t profile_count;
} sp_profile_data;

#endif
