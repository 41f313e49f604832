/* SPDX-License-Identifier: Apache-2.0 */
/* Makes one OTLP request from profiles of another format. A reader puts in what it finds and takes
 * the request at the end, so the model and all commands see only OTLP. Each entry is stored once,
 * also when it is put several times.
 *
 * Functions that put an entry return its index. When memory is short, they return 0 and set
 * `failed`, which is never reset. Threads: one at a time. */
#ifndef SP_TOOL_READ_FOREIGN_PROFILE_H
#define SP_TOOL_READ_FOREIGN_PROFILE_H

#include "core/buffer.h"
#include "core/intern.h"
#include "tool/read/input.h"

/* The structs from here to sp_foreign_attribute are keys of interning tables: they have no padding
 * and are compared bytewise. "string" and "attribute" name the table that a field is an index of.
 */
typedef struct sp_foreign_mapping {
    uint64_t start, limit, offset;
    int32_t file;     /* string */
    int32_t build_id; /* attribute, or 0 */
} sp_foreign_mapping;

typedef struct sp_foreign_function {
    int64_t start_line;
    int32_t name, system_name, file; /* strings */
    int32_t zero;
} sp_foreign_function;

typedef struct sp_foreign_line {
    int64_t function, line, column;
} sp_foreign_line;

typedef struct sp_foreign_link {
    uint8_t trace_id[16];
    uint8_t span_id[8];
} sp_foreign_link;

typedef struct sp_foreign_attribute {
    int32_t key;  /* string */
    int32_t unit; /* string */
    int64_t number;
    int32_t text; /* string */
    int32_t is_text;
} sp_foreign_attribute;

/* attributes: attribute_count indices, in memory that lives as long as the request; or NULL. */
typedef struct sp_foreign_sample {
    int32_t stack, link;
    int32_t *attributes;
    size_t attribute_count;
    int64_t value;
} sp_foreign_sample;

typedef struct sp_foreign_profile {
    int32_t type, unit, period_type, period_unit; /* strings */
    int64_t period;
    uint64_t time_ns, duration_ns;
    sp_foreign_sample *samples;
    size_t count, capacity;
} sp_foreign_profile;

typedef struct sp_foreign {
    sp_arena *memory; /* of the request */
    sp_intern strings, mappings, locations, functions, links, attributes, stacks;
    sp_buffer key; /* of the location that is being put */
    bool failed;
} sp_foreign;

/* Make the tables, each with its entry 0, which OTLP reserves for "none". The request will be in
 * MEMORY. */
void sp_foreign_init(sp_foreign *foreign, sp_arena *memory);
void sp_foreign_deinit(sp_foreign *foreign);

/* Put LENGTH bytes of TEXT, repaired when they are not UTF-8. */
int32_t sp_foreign_string(sp_foreign *foreign, const char *text, size_t length);
int32_t sp_foreign_mapping_put(sp_foreign *foreign, const sp_foreign_mapping *mapping);
int32_t sp_foreign_function_put(sp_foreign *foreign, const sp_foreign_function *function);
/* Put a location with COUNT LINES, innermost first. */
int32_t sp_foreign_location(sp_foreign *foreign, int32_t mapping, uint64_t address,
                            const sp_foreign_line *lines, size_t count);
/* Put a stack of COUNT LOCATIONS, leaf first. */
int32_t sp_foreign_stack(sp_foreign *foreign, const int32_t *locations, size_t count);
int32_t sp_foreign_attribute_put(sp_foreign *foreign, const sp_foreign_attribute *attribute);
/* Returns 0, which means "no link", when the span id is zero. */
int32_t sp_foreign_link_put(sp_foreign *foreign, const sp_foreign_link *link);
void sp_foreign_add(sp_foreign *foreign, sp_foreign_profile *profile,
                    const sp_foreign_sample *sample);

/* The request with COUNT PROFILES. It is in the arena, so protobuf-c must not free it. NULL when
 * memory is short, or when it was short in an earlier call. */
ProtobufCMessage *sp_foreign_take(sp_foreign *foreign, const sp_foreign_profile *profiles,
                                  size_t count);

#endif
