/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of a module's addresses whose frames are the same: [start, end). The name cache has the
 * frames of a row by its start. They are told for whole functions, ahead of the addresses that
 * samples will have, where a module's files take long to open. Collector thread only. */
#ifndef SP_SYMBOL_NAME_ROWS_H
#define SP_SYMBOL_NAME_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A module has so many at most; when there would be more, all are forgotten. */
enum { SP_NAME_ROWS_MAX = 32 * 1024 };

typedef struct sp_name_row {
    uint64_t start, end;
} sp_name_row;

/* Sorted, none overlaps. Zero-initialised is empty. */
typedef struct sp_name_rows {
    sp_name_row *rows;
    size_t count, capacity;
} sp_name_rows;

void sp_name_rows_deinit(sp_name_rows *rows);

/* The row around ADDRESS, valid until the next call of another function; NULL: none. */
const sp_name_row *sp_name_rows_find(const sp_name_rows *rows, uint64_t address);

/* The rows of one function lie between each STEPS[i] and STEPS[i + 1], which ascend; there are
 * COUNT steps. Nothing happens where other rows lie there, or when memory is short. */
void sp_name_rows_add(sp_name_rows *rows, const uint64_t *steps, size_t count);

#endif
