/* SPDX-License-Identifier: Apache-2.0 */
/* Profiles of other formats as one OTLP request. A reader puts in what it finds, each entry once,
 * and takes the request in the end; the model and all commands then see OTLP only.
 *
 * Functions that put return the entry's index. When memory is short they return 0 and set `failed`,
 * which stays. Threads: one at a time. */
#ifndef SP_TOOL_READ_FOREIGN_PROFILE_H
#define SP_TOOL_READ_FOREIGN_PROFILE_H

#include "core/buffer.h"
#include "core/intern.h"
#include "tool/read/input.h"

/* These are keys of interning tables: no padding, compared bytewise. */
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

/* attributes: COUNT of them in memory that outlives the builder's request, or NULL. */
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

/* The tables with their entries 0. */
void sp_foreign_init(sp_foreign *foreign, sp_arena *memory);
void sp_foreign_deinit(sp_foreign *foreign);

/* LENGTH bytes of TEXT, repaired when they are not UTF-8. */
int32_t sp_foreign_string(sp_foreign *foreign, const char *text, size_t length);
int32_t sp_foreign_mapping_put(sp_foreign *foreign, const sp_foreign_mapping *mapping);
int32_t sp_foreign_function_put(sp_foreign *foreign, const sp_foreign_function *function);
/* LINES innermost first. */
int32_t sp_foreign_location(sp_foreign *foreign, int32_t mapping, uint64_t address,
                            const sp_foreign_line *lines, size_t count);
/* LOCATIONS leaf first. */
int32_t sp_foreign_stack(sp_foreign *foreign, const int32_t *locations, size_t count);
int32_t sp_foreign_attribute_put(sp_foreign *foreign, const sp_foreign_attribute *attribute);
/* 0, which is no span, when the span id is zero. */
int32_t sp_foreign_link_put(sp_foreign *foreign, const sp_foreign_link *link);
void sp_foreign_add(sp_foreign *foreign, sp_foreign_profile *profile,
                    const sp_foreign_sample *sample);

/* The request with COUNT PROFILES, in the arena: not to be freed by protobuf-c. NULL when memory is
 * short now, or was before. */
ProtobufCMessage *sp_foreign_take(sp_foreign *foreign, const sp_foreign_profile *profiles,
                                  size_t count);

#endif
