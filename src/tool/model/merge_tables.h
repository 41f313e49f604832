/* SPDX-License-Identifier: Apache-2.0 */
/* The merged dictionary while it grows (merge_tables.c); merge.c fills it. Messages are copied,
 * with new indices, into the merger's arena; texts and ids are borrowed from the input. Once
 * `failed`, results are of no use, and calls are harmless. */
#ifndef SP_TOOL_MODEL_MERGE_TABLES_H
#define SP_TOOL_MODEL_MERGE_TABLES_H

#include "core/arena.h"
#include "core/intern.h"
#include "proto/profiles.pb-c.h"
#include "tool/read/input.h"

typedef enum sp_merge_table {
    SP_MERGE_STRINGS,
    SP_MERGE_MAPPINGS,
    SP_MERGE_LOCATIONS,
    SP_MERGE_FUNCTIONS,
    SP_MERGE_LINKS,
    SP_MERGE_ATTRIBUTES,
    SP_MERGE_STACKS,
    SP_MERGE_TABLE_COUNT,
} sp_merge_table;

/* One table of the new dictionary: equal entries (by their packed bytes) are one. */
typedef struct sp_merged_table {
    sp_intern keys;
    void **entries; /* messages; of strings: char * */
    size_t capacity;
} sp_merged_table;

typedef struct sp_merger {
    sp_arena *memory;
    sp_merged_table tables[SP_MERGE_TABLE_COUNT];
    /* Of the document that is being read: its entries, and their new numbers plus 1 (0: not yet).
     */
    const sp_document *document;
    void *const *sources[SP_MERGE_TABLE_COUNT];
    size_t source_counts[SP_MERGE_TABLE_COUNT];
    uint32_t *numbers[SP_MERGE_TABLE_COUNT];
    const char *failed_table; /* whose index was outside; NULL when memory was short */
    int32_t failed_index;
    bool failed;
} sp_merger;

/* Entry 0 of every table: the zero value. Before all documents. */
void sp_merger_begin(sp_merger *merger);
/* From now on indices are those of DOCUMENT. */
bool sp_merger_enter(sp_merger *merger, const sp_document *document);
/* The new tables, or NULL. */
Sp__Profiles__ProfilesDictionary *sp_merger_take(sp_merger *merger);
void sp_merger_deinit(sp_merger *merger);

/* The new number of entry INDEX of the document's table. Index 0 stays 0, unless a real entry is
 * there. */
int32_t sp_merger_map(sp_merger *merger, sp_merge_table table, int32_t index);
int32_t *sp_merger_map_list(sp_merger *merger, sp_merge_table table, const int32_t *indices,
                            size_t count);
/* Attributes as a resource has them, references to strings written out. */
Sp__Common__KeyValue **sp_merger_attributes(sp_merger *merger, Sp__Common__KeyValue *const *from,
                                            size_t count);
/* SIZE bytes of MESSAGE, or COUNT zero pointers, in the arena; NULL (and failed) when memory is
 * short. */
void *sp_merger_copy(sp_merger *merger, const void *message, size_t size);
void *sp_merger_pointers(sp_merger *merger, size_t count);

#endif
