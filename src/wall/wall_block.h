/* SPDX-License-Identifier: Apache-2.0 */
/* Decides in which rounds new threads are taken, and what their visits stand for. New threads are
 * those that no round has visited yet.
 *
 * A scan for them takes time for each thread of the process, and scans may use one part in SHARE of
 * a core (wall_block.c). As long as that is enough, each round scans, and a block is one cell. Else
 * a block is several cells. One of them takes new threads; it is chosen at random. Their first
 * visit stands for the whole block, and until its end they are quiet: not visited again. So the
 * part of a life that is in a block counts right on average, however short it is.
 *
 * Threads: one at a time. Signals: not safe. */
#ifndef SP_WALL_WALL_BLOCK_H
#define SP_WALL_WALL_BLOCK_H

#include <stdbool.h>
#include <stdint.h>

/* Zero-initialised: no scan was made yet. */
typedef struct sp_wall_block {
    uint64_t cells, left, chosen; /* of the block; after this round; the cell, from its begin */
    uint64_t scan_ns, last_ns; /* CPU time of a scan: what the next block reckons with; the last */
    double of_new, of_quiet;   /* weight of a visit, in parts of that of a thread known before */
    uint16_t number;           /* of the block; never 0; it wraps */
} sp_wall_block;

/* A round begins that stands for CELLS periods of PERIOD_NS. DRAWN is evenly random in [0, 1). */
void sp_wall_block_enter(sp_wall_block *block, uint64_t cells, uint64_t period_ns, double drawn);
/* A scan took NS of CPU time. */
void sp_wall_block_scanned(sp_wall_block *block, uint64_t ns);

static inline bool sp_wall_block_takes_new(const sp_wall_block *block)
{
    return block->of_new > 0;
}

/* What a visit in this round stands for, in parts of the round's weight; 0: do not visit. IS_NEW:
 * no round has visited the thread yet. *FIRST is the thread's: the block of its first visit, or 0,
 * an earlier one. */
double sp_wall_block_part(const sp_wall_block *block, bool is_new, uint16_t *first);

#endif
