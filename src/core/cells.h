/* SPDX-License-Identifier: Apache-2.0 */
/* Moments at which something is looked at. Time is cut into cells of one period, and in each cell
 * there is one moment, evenly random. So every moment of time has the same chance, also those near
 * the begin and the end, and what is seen at a moment stands for one period on average: the sum
 * over a span of time is right on average, whatever its length.
 *
 * Threads: one at a time. Signals: not safe. */
#ifndef SP_CORE_CELLS_H
#define SP_CORE_CELLS_H

#include <stdint.h>

typedef struct sp_cells {
    uint64_t begin_ns; /* of cell 0 */
    uint64_t next;     /* the first cell that no chosen moment stands for */
} sp_cells;

/* The moment, and how many cells it stands for: more than one after a late call. */
typedef struct sp_cells_moment {
    uint64_t ns, cells;
} sp_cells_moment;

/* Choose the moment of the next cell that has not passed at NOW_NS. Its cells count as used. DRAWN
 * is evenly random in [0, 1). The period may change only with a new begin. */
static inline sp_cells_moment sp_cells_choose(sp_cells *cells, uint64_t now_ns, uint64_t period_ns,
                                              double drawn)
{
    uint64_t now = (now_ns - cells->begin_ns) / period_ns;
    uint64_t cell = now > cells->next ? now : cells->next;
    sp_cells_moment moment = {.ns = cells->begin_ns + cell * period_ns +
                                    (uint64_t)(drawn * (double)period_ns),
                              .cells = cell + 1 - cells->next};
    cells->next = cell + 1;
    return moment;
}

#endif
