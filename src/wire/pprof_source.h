/* SPDX-License-Identifier: Apache-2.0 */
/* The input of a pprof. */
#ifndef SP_WIRE_PPROF_SOURCE_H
#define SP_WIRE_PPROF_SOURCE_H

#include <stdbool.h>
#include <stddef.h>

#include "proto/profiles.pb-c.h"

/* RESOURCE may be NULL. */
typedef struct sp_pprof_part {
    const Sp__Profiles__Profile *profile;
    const Sp__Resource__Resource *resource;
} sp_pprof_part;

typedef struct sp_pprof_type_name {
    const char *type, *unit;
} sp_pprof_type_name;

/* One pprof of several sources, such as windows, made one after the other: the bytes of all, in
 * their order, are the pprof. Ids and strings of a source follow those of the one before.
 * Zero-initialised before the first. Each source gives the types, which must be the same in all;
 * they are written once. Comments are those of the first source with a profile, without numbers,
 * because these are of one source. */
typedef struct sp_pprof_sequence {
    uint64_t strings, ids; /* used so far */
    uint64_t start_ns;     /* of the first source with a profile; 0: none yet */
    bool has_begun;
} sp_pprof_sequence;

/* Profiles that become one pprof. Every index is inside its table, no value refers to the string
 * table, and entry 0 of each table is its zero value: sp_merge and wire/profiles.h make such trees.
 * ROOT_SPAN_IDS, by number of link, may be NULL; all zero: not known. */
typedef struct sp_pprof_source {
    const Sp__Profiles__ProfilesDictionary *dictionary;
    const sp_pprof_part *parts;
    size_t part_count;
    const uint8_t (*root_span_ids)[8];
    const sp_pprof_type_name *types; /* the first types of the pprof, also without a sample */
    size_t type_count;
    sp_pprof_sequence *sequence; /* NULL: the source is the whole pprof */
} sp_pprof_source;

#define SP_PPROF_TRACE_LABEL "trace_id"
#define SP_PPROF_SPAN_LABEL  "span_id"
#define SP_PPROF_ROOT_LABEL  "local root span id"

#endif
