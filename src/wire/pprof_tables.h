/* SPDX-License-Identifier: Apache-2.0 */
/* What must be known before the first byte of a pprof is written: the types of values, the samples
 * with one value for each type, and all strings. */
#ifndef SP_WIRE_PPROF_TABLES_H
#define SP_WIRE_PPROF_TABLES_H

#include "core/arena.h"
#include "core/intern.h"
#include "wire/pprof_source.h"

/* Strings are numbers of pprof's string table: the dictionary's, then `strings`, then `comments`.
 */
typedef struct sp_pprof_type {
    uint32_t type, unit;
    sp_pprof_type_name name;
} sp_pprof_type;

/* TEXT 0: NUMBER is the value. KEY 0: no label. */
typedef struct sp_pprof_label {
    uint32_t key, text, unit;
    int64_t number;
} sp_pprof_label;

enum { SP_PPROF_LINK_LABELS = 3 };

/* Which names the locations of a mapping have. */
typedef struct sp_pprof_names {
    bool functions, files, lines, inlined;
} sp_pprof_names;

/* Key of `samples`; attributes follow it. */
typedef struct sp_pprof_key {
    int32_t stack, link;
} sp_pprof_key;

typedef struct sp_pprof_tables {
    const sp_pprof_source *from;
    sp_arena memory;
    bool failed; /* memory is short; stays */
    sp_intern strings;
    sp_pprof_type *types;
    size_t type_count, type_capacity;
    uint32_t default_type;                               /* a string */
    sp_pprof_label *attribute_labels;                    /* by number of attribute */
    sp_pprof_label (*link_labels)[SP_PPROF_LINK_LABELS]; /* by number of link */
    sp_pprof_names *mapping_names;                       /* by number of mapping */
    bool has_location_0;                                 /* some stack has location 0 */
    sp_intern samples;
    int64_t *values; /* type_count for each sample */
    size_t value_capacity;
    sp_intern comments;
    uint64_t time_ns, duration_ns;
    sp_pprof_type period_type; /* type 0: none */
    int64_t period;
} sp_pprof_tables;

/* TABLES is zero-initialised. False when memory is short; TABLES must be freed in any case. */
bool sp_pprof_tables_fill(sp_pprof_tables *tables, const sp_pprof_source *source);
void sp_pprof_tables_deinit(sp_pprof_tables *tables);

/* The number of TEXT in pprof's string table. */
uint32_t sp_pprof_string(sp_pprof_tables *tables, const char *text);

/* pprof_labels.c */

/* The labels of all attributes and links. */
void sp_pprof_labels_fill(sp_pprof_tables *tables);
/* The attributes of resources and profiles, as comments. */
void sp_pprof_comments_fill(sp_pprof_tables *tables);

#endif
