/* SPDX-License-Identifier: Apache-2.0 */
/* The merged dictionary while it is built: merge_tables.c has the tables, and merge.c fills them.
 * Messages are copied, with new indices, into the merger's arena. Texts and ids are borrowed from
 * the input. Once `failed` is set, results are useless, but calls are harmless. */
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

/* One table of the new dictionary. Entries with equal packed bytes become one entry. */
typedef struct sp_merged_table {
    sp_intern keys;
    void **entries; /* messages; char * in the table of strings */
    size_t capacity;
} sp_merged_table;

typedef struct sp_merger {
    sp_arena *memory;
    sp_merged_table tables[SP_MERGE_TABLE_COUNT];
    /* The document that is being read, its tables, and by index in these the new number plus 1; 0:
     * the entry is not copied yet. */
    const sp_document *document;
    void *const *sources[SP_MERGE_TABLE_COUNT];
    size_t source_counts[SP_MERGE_TABLE_COUNT];
    uint32_t *numbers[SP_MERGE_TABLE_COUNT];
    const char *failed_table; /* the table that an index was outside of; NULL: memory was short */
    int32_t failed_index;
    bool failed;
} sp_merger;

/* Make the zero value entry 0 of every table. Call it before the first document. */
void sp_merger_begin(sp_merger *merger);
/* From now on, indices refer to the tables of DOCUMENT. Returns false when memory is short. */
bool sp_merger_enter(sp_merger *merger, const sp_document *document);
/* Returns the new tables, or NULL when memory is short. */
Sp__Profiles__ProfilesDictionary *sp_merger_take(sp_merger *merger);
void sp_merger_deinit(sp_merger *merger);

/* Returns the new number of entry INDEX of the document's table. Index 0 stays 0, unless the
 * document has a real entry there. */
int32_t sp_merger_map(sp_merger *merger, sp_merge_table table, int32_t index);
int32_t *sp_merger_map_list(sp_merger *merger, sp_merge_table table, const int32_t *indices,
                            size_t count);
/* Copy attributes of a resource or a scope. References to strings become plain text. */
Sp__Common__KeyValue **sp_merger_attributes(sp_merger *merger, Sp__Common__KeyValue *const *from,
                                            size_t count);
/* Copy SIZE bytes of MESSAGE to the arena, or allocate COUNT zero pointers there. Returns NULL, and
 * sets `failed`, when memory is short. */
void *sp_merger_copy(sp_merger *merger, const void *message, size_t size);
void *sp_merger_pointers(sp_merger *merger, size_t count);

#endif
