/* SPDX-License-Identifier: Apache-2.0 */
/* `spanprof check`: checks the rules of OTLP that a file can break and still be decoded. Each
 * violation is one line on standard output: FILE: PLACE: RULE: what is wrong.
 * docs/formats/check.md lists the rules. */
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

/* The program that will receive the data, whose own rules are checked, too. */
typedef enum sp_backend {
    SP_BACKEND_NONE = 0,
    SP_BACKEND_PYROSCOPE = 1,
    SP_BACKEND_COLLECTOR = 2,
} sp_backend;

/* What is kept of a span. The links of profiles are checked against these spans. */
typedef struct sp_checked_span {
    const Sp__Trace__Span *message;
} sp_checked_span;

typedef struct sp_checker {
    const sp_input *input;
    const sp_document *document; /* the one that is being checked */
    sp_backend backend;
    sp_buffer out;
    uint64_t violations, warnings;
    sp_intern span_ids;     /* keys: trace id and span id, 24 bytes */
    sp_checked_span *spans; /* by index in span_ids */
    size_t span_capacity;
    sp_intern keys; /* temporary: the keys of the list that is being checked */
    bool failed;    /* memory was short */
} sp_checker;

/* A place in a message, as text for the user: "link_table[3]". */
typedef struct sp_place {
    char text[192];
} sp_place;
sp_place sp_place_of(const char *format, ...) SP_PRINTF(1, 2);

/* Report that RULE is broken at PLACE of the document. */
void sp_check_violation(sp_checker *checker, const char *rule, const sp_place *place,
                        const char *format, ...) SP_PRINTF(4, 5);
/* Report something that is allowed but probably a mistake. A warning does not change the exit
 * code. */
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

/* The dictionary of the message that is being checked. used[t][i]: something refers to entry i of
 * table t. */
typedef struct sp_tables {
    sp_checker *checker;
    const Sp__Profiles__ProfilesDictionary *dictionary;
    size_t counts[SP_TABLE_COUNT];
    void *const *entries[SP_TABLE_COUNT];
    bool *used[SP_TABLE_COUNT];
} sp_tables;

/* Mark entry INDEX of TABLE as used. Returns false when there is no such entry, and reports that as
 * a violation at PLACE, except for index 0: a missing entry 0 is reported once for the table. */
bool sp_tables_use(sp_tables *tables, sp_table table, int32_t index, const sp_place *place);
/* The string INDEX, or NULL when there is no such entry. */
const char *sp_tables_string(const sp_tables *tables, int32_t index);
/* Check a list of attribute indices: each is in range and has a key, and the keys are unique. */
void sp_tables_use_attributes(sp_tables *tables, const int32_t *indices, size_t count,
                              const sp_place *place);
/* Check the entries of the dictionary, and mark the entries that they refer to as used. */
void sp_check_dictionary(sp_tables *tables);
/* Report the entries that nothing refers to. Call this after everything else was checked. */
void sp_check_orphans(sp_tables *tables);

/* ---- wall time ---- */

/* If PROFILE is of wall time, check its units and its period. */
void sp_check_wall_profile(sp_tables *tables, const Sp__Profiles__Profile *profile,
                           const sp_place *place);
/* If ATTRIBUTE says what a thread waited for, check the word. */
void sp_check_wait(sp_tables *tables, const Sp__Profiles__KeyValueAndUnit *attribute,
                   const sp_place *place);

/* ---- parts ---- */

void sp_check_traces(sp_checker *checker);
void sp_check_profiles(sp_checker *checker);
/* Check a list of attributes of a span, a resource or a scope. TABLES resolves references to the
 * dictionary. In traces TABLES is NULL, because traces must not have such references. */
void sp_check_attributes(sp_checker *checker, sp_tables *tables, Sp__Common__KeyValue *const *list,
                         size_t count, const sp_place *place);
/* Check all strings of MESSAGE, on every level. */
void sp_check_utf8(sp_checker *checker, const ProtobufCMessage *message, const sp_place *place);
/* Check the rules of the chosen backend. */
void sp_check_backend(sp_checker *checker);

/* Whether ID has COUNT bytes that are not all zero. */
bool sp_id_is_good(const ProtobufCBinaryData *id, size_t count);
/* The index of a span in checker->spans. SP_INTERN_FAILED: no span has these ids, or one of the ids
 * is not good. */
uint32_t sp_checker_find_span(const sp_checker *checker, const ProtobufCBinaryData *trace_id,
                              const ProtobufCBinaryData *span_id);

#endif
