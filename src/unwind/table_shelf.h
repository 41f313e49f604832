/* SPDX-License-Identifier: Apache-2.0 */
/* Unwind tables by build id. Offsets in a table count from its module's start, so that one table
 * serves a library wherever it is loaded, also when it is loaded again: plugins are loaded and
 * unloaded, and compiling the table of a large one takes a tenth of a second. A module without
 * build id has a table of its own. Of the tables that no module uses, the last used ones are kept,
 * up to SP_SHELF_IDLE_BYTES in all. Threads: one at a time. Signals: not safe. */
#ifndef SP_UNWIND_TABLE_SHELF_H
#define SP_UNWIND_TABLE_SHELF_H

#include "unwind/loader_snapshot.h"

#define SP_SHELF_IDLE_BYTES ((size_t)2 << 20) /* of tables that no module uses */

typedef struct sp_shelved_table sp_shelved_table;

/* All zero except `pool`: an empty shelf. */
typedef struct sp_table_shelf {
    sp_rule_pool *pool;     /* of all tables */
    sp_shelved_table *used; /* tables of modules */
    sp_shelved_table *idle; /* the last used first */
} sp_table_shelf;

/* Find or compile the table of the module that IMAGE describes. The caller gives it back. NULL when
 * the module has no frame information, or memory is short. */
sp_shelved_table *sp_table_shelf_take(sp_table_shelf *shelf, const sp_module_image *image);
void sp_table_shelf_give_back(sp_shelved_table *shelved);
const sp_unwind_table *sp_shelved_table_get(const sp_shelved_table *shelved);

/* The bytes of all tables, used and idle. */
size_t sp_table_shelf_bytes(const sp_table_shelf *shelf);

/* Tables in use live on until they are given back. */
void sp_table_shelf_deinit(sp_table_shelf *shelf);

#endif
