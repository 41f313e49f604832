/* SPDX-License-Identifier: Apache-2.0 */
#include "unwind/table_shelf.h"
#include "unwind/unwind_table.h"

#include <stdlib.h>
#include <string.h>

struct sp_shelved_table {
    sp_shelved_table *next;
    sp_table_shelf *shelf; /* NULL: the shelf is gone, and the last user frees the table */
    sp_unwind_table *table;
    uint32_t references;
    uint64_t module_bytes;   /* from the module's start to its end */
    uint64_t section_offset; /* of the frame information, from the module's start */
    uint32_t build_id_length;
    uint8_t build_id[SP_BUILD_ID_MAX];
};

/* The build id identifies the table. Two sizes are compared as well, in case the file was edited
 * later. */
static bool fits(const sp_shelved_table *shelved, const sp_module_image *image)
{
    return image->build_id_length && shelved->build_id_length == image->build_id_length &&
           memcmp(shelved->build_id, image->build_id, image->build_id_length) == 0 &&
           shelved->module_bytes == image->end - image->start &&
           shelved->section_offset == image->section.address - image->start;
}

static sp_shelved_table *find(sp_shelved_table *list, const sp_module_image *image)
{
    while (list && !fits(list, image))
        list = list->next;
    return list;
}

static void push(sp_shelved_table **list, sp_shelved_table *shelved)
{
    shelved->next = *list;
    *list = shelved;
}

static void take_out(sp_shelved_table **list, sp_shelved_table *shelved)
{
    while (*list != shelved)
        list = &(*list)->next;
    *list = shelved->next;
}

static void destroy(sp_shelved_table *shelved)
{
    sp_unwind_table_destroy(shelved->table);
    free(shelved);
}

static sp_shelved_table *create(sp_table_shelf *shelf, const sp_module_image *image)
{
    sp_shelved_table *shelved = calloc(1, sizeof *shelved);
    sp_unwind_table *table = shelved ? sp_unwind_table_compile(&image->section, shelf->pool) : NULL;
    if (!table) {
        free(shelved);
        return NULL;
    }
    *shelved = (sp_shelved_table){.shelf = shelf,
                                  .table = table,
                                  .module_bytes = image->end - image->start,
                                  .section_offset = image->section.address - image->start,
                                  .build_id_length = image->build_id_length};
    memcpy(shelved->build_id, image->build_id, image->build_id_length);
    push(&shelf->used, shelved);
    return shelved;
}

sp_shelved_table *sp_table_shelf_take(sp_table_shelf *shelf, const sp_module_image *image)
{
    if (!image->section.length)
        return NULL;
    sp_shelved_table *shelved = find(shelf->used, image);
    sp_shelved_table *idle = shelved ? NULL : find(shelf->idle, image);
    if (idle) {
        take_out(&shelf->idle, idle);
        push(&shelf->used, idle);
        shelved = idle;
    }
    if (!shelved)
        shelved = create(shelf, image);
    if (shelved)
        shelved->references++;
    return shelved;
}

static void trim_idle(sp_table_shelf *shelf)
{
    size_t bytes = 0;
    sp_shelved_table **link = &shelf->idle;
    while (*link) {
        sp_shelved_table *shelved = *link;
        bytes += shelved->table->bytes;
        if (bytes > SP_SHELF_IDLE_BYTES || !shelved->build_id_length) {
            *link = shelved->next;
            destroy(shelved);
        } else {
            link = &shelved->next;
        }
    }
}

void sp_table_shelf_give_back(sp_shelved_table *shelved)
{
    if (!shelved || --shelved->references)
        return;
    sp_table_shelf *shelf = shelved->shelf;
    if (!shelf) {
        destroy(shelved);
        return;
    }
    take_out(&shelf->used, shelved);
    push(&shelf->idle, shelved);
    trim_idle(shelf);
}

const sp_unwind_table *sp_shelved_table_get(const sp_shelved_table *shelved)
{
    return shelved ? shelved->table : NULL;
}

size_t sp_table_shelf_bytes(const sp_table_shelf *shelf)
{
    size_t bytes = 0;
    for (const sp_shelved_table *s = shelf->used; s; s = s->next)
        bytes += s->table->bytes;
    for (const sp_shelved_table *s = shelf->idle; s; s = s->next)
        bytes += s->table->bytes;
    return bytes;
}

void sp_table_shelf_deinit(sp_table_shelf *shelf)
{
    for (sp_shelved_table *shelved = shelf->used; shelved; shelved = shelved->next)
        shelved->shelf = NULL;
    while (shelf->idle) {
        sp_shelved_table *shelved = shelf->idle;
        shelf->idle = shelved->next;
        destroy(shelved);
    }
    memset(shelf, 0, sizeof *shelf);
}
