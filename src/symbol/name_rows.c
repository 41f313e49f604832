/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol/name_rows.h"

#include <stdlib.h>
#include <string.h>

#include "core/reach.h"

void sp_name_rows_deinit(sp_name_rows *rows)
{
    free(rows->rows);
    *rows = (sp_name_rows){0};
}

/* How many rows start at ADDRESS or below. */
static size_t count_up_to(const sp_name_rows *rows, uint64_t address)
{
    size_t low = 0, high = rows->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (rows->rows[middle].start <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

const sp_name_row *sp_name_rows_find(const sp_name_rows *rows, uint64_t address)
{
    size_t below = count_up_to(rows, address);
    return below && address < rows->rows[below - 1].end ? &rows->rows[below - 1] : NULL;
}

void sp_name_rows_add(sp_name_rows *rows, const uint64_t *steps, size_t count)
{
    if (count < 2)
        return;
    if (rows->count + count > SP_NAME_ROWS_MAX)
        rows->count = 0;
    size_t below = count_up_to(rows, steps[0]);
    bool overlaps = (below && rows->rows[below - 1].end > steps[0]) ||
                    (below < rows->count && rows->rows[below].start < steps[count - 1]);
    if (overlaps || !SP_REACH(rows->rows, rows->count + count, rows->capacity, 64))
        return;
    sp_name_row *at = rows->rows + below;
    memmove(at + count - 1, at, (rows->count - below) * sizeof *at);
    for (size_t i = 0; i + 1 < count; i++)
        at[i] = (sp_name_row){steps[i], steps[i + 1]};
    rows->count += count - 1;
}
