/* SPDX-License-Identifier: Apache-2.0 */
/* `spanprof check`: every rule of OTLP that a file can break without being undecodable. A broken
 * rule is a line on standard output: FILE: PLACE: RULE: what is wrong. docs/formats/check.md lists
 * the rules. */
#ifndef SP_TOOL_CHECK_CHECK_H
#define SP_TOOL_CHECK_CHECK_H

#include "core/buffer.h"
#include "core/compiler.h"
#include "core/intern.h"
#include "proto/profiles.pb-c.h"
#include "proto/trace.pb-c.h"
#include "tool/read/input.h"
#include "tool/text/options.h"

extern const sp_command sp_command_check;

/* Beside the specification's rules: those of a program that takes the data. */
typedef enum sp_backend {
    SP_BACKEND_NONE = 0,
    SP_BACKEND_PYROSCOPE = 1,
    SP_BACKEND_COLLECTOR = 2,
} sp_backend;

/* What is kept of a span for the links of profiles. */
typedef struct sp_checked_span {
    const Sp__Trace__Span *message;
} sp_checked_span;

typedef struct sp_checker {
    const sp_input *input;
    const sp_document *document; /* that is being checked */
    sp_backend backend;
    sp_buffer out;
    uint64_t violations, warnings;
    sp_intern span_ids;     /* trace id and span id, 24 bytes */
    sp_checked_span *spans; /* by number of span_ids */
    size_t span_capacity;
    sp_intern keys; /* scratch: the keys of one list */
    bool failed;    /* memory was short */
} sp_checker;

/* Where something stands in a message, for people: "link_table[3]". */
typedef struct sp_place {
    char text[192];
} sp_place;
sp_place sp_place_of(const char *format, ...) SP_PRINTF(1, 2);

/* Note that RULE is broken at PLACE of the document. */
void sp_check_violation(sp_checker *checker, const char *rule, const sp_place *place,
                        const char *format, ...) SP_PRINTF(4, 5);
/* The same for what is legal but likely a mistake; it does not change the exit code. */
void sp_check_warning(sp_checker *checker, const char *rule, const sp_place *place,
                      const char *format, ...) SP_PRINTF(4, 5);

/* ---- the tables of a dictionary ---- */

typedef enum sp_table {
    SP_TABLE_STRING,
    SP_TABLE_MAPPING,
    SP_TABLE_LOCATION,
    SP_TABLE_FUNCTION,
    SP_TABLE_LINK,
    SP_TABLE_ATTRIBUTE,
    SP_TABLE_STACK,
    SP_TABLE_COUNT,
} sp_table;

extern const char *const sp_table_names[SP_TABLE_COUNT];

/* A dictionary while its message is checked: used[t][i] tells that something leads to entry i of
 * table t. */
typedef struct sp_tables {
    sp_checker *checker;
    const Sp__Profiles__ProfilesDictionary *dictionary;
    size_t counts[SP_TABLE_COUNT];
    void *const *entries[SP_TABLE_COUNT];
    bool *used[SP_TABLE_COUNT];
} sp_tables;

/* Whether INDEX is in the table, which is noted as used there; else that is a violation at PLACE.
 */
bool sp_tables_use(sp_tables *tables, sp_table table, int32_t index, const sp_place *place);
/* The text, or NULL when INDEX is outside. */
const char *sp_tables_string(const sp_tables *tables, int32_t index);
/* Check a list of attribute indices: ranges, and keys that are there and unique. */
void sp_tables_use_attributes(sp_tables *tables, const int32_t *indices, size_t count,
                              const sp_place *place);
/* Mark what the dictionary itself refers to, and check its entries. */
void sp_check_dictionary(sp_tables *tables);
/* Once everything was used: what nothing leads to. */
void sp_check_orphans(sp_tables *tables);

/* ---- wall time ---- */

/* A profile whose type is wall time: unit and period. */
void sp_check_wall_profile(sp_tables *tables, const Sp__Profiles__Profile *profile,
                           const sp_place *place);
/* An entry of the attribute table that tells what was waited for: its word. */
void sp_check_wait(sp_tables *tables, const Sp__Profiles__KeyValueAndUnit *attribute,
                   const sp_place *place);

/* ---- parts ---- */

void sp_check_traces(sp_checker *checker);
void sp_check_profiles(sp_checker *checker);
/* A list of attributes as spans, resources and scopes have them. TABLES resolves references; NULL
 * in traces, which must not have any. */
void sp_check_attributes(sp_checker *checker, sp_tables *tables, Sp__Common__KeyValue *const *list,
                         size_t count, const sp_place *place);
/* All strings of MESSAGE, on every level. */
void sp_check_utf8(sp_checker *checker, const ProtobufCMessage *message, const sp_place *place);
/* The rules of the chosen backend. */
void sp_check_backend(sp_checker *checker);

/* ID has COUNT bytes that are not all zero. */
bool sp_id_is_good(const ProtobufCBinaryData *id, size_t count);
/* The number of a span in checker->spans, or SP_INTERN_FAILED. Ids that are not good are no span's.
 */
uint32_t sp_checker_find_span(const sp_checker *checker, const ProtobufCBinaryData *trace_id,
                              const ProtobufCBinaryData *span_id);

#endif
