/* SPDX-License-Identifier: Apache-2.0 */
/* A row is a range [start, end) of a module's addresses that have the same frames. The name cache
 * has the frames of a row at its start. Where a module's files take long to open, the rows of a
 * whole function are made at once, before samples need its other addresses. Collector thread only.
 */
#ifndef SP_SYMBOL_NAME_ROWS_H
#define SP_SYMBOL_NAME_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The most rows of a module; when there would be more, all are forgotten. */
enum { SP_NAME_ROWS_MAX = 32 * 1024 };

typedef struct sp_name_row {
    uint64_t start, end;
} sp_name_row;

/* Rows are sorted and do not overlap. Zero-initialised is empty. */
typedef struct sp_name_rows {
    sp_name_row *rows;
    size_t count, capacity;
} sp_name_rows;

void sp_name_rows_deinit(sp_name_rows *rows);

/* The row around ADDRESS, valid until the next call of another function here; NULL: none. */
const sp_name_row *sp_name_rows_find(const sp_name_rows *rows, uint64_t address);

/* Add the rows of one function: row i is [STEPS[i], STEPS[i + 1]). STEPS has COUNT ascending
 * addresses. Nothing is added when other rows overlap them, or when memory is short. */
void sp_name_rows_add(sp_name_rows *rows, const uint64_t *steps, size_t count);

#endif
