/* SPDX-License-Identifier: Apache-2.0 */
#include "wall/wall_block.h"

#include "core/compiler.h"

/* Half of what rounds may use (wall_rounds.c). */
enum { SHARE = 66 };

static void begin_block(sp_wall_block *block, uint64_t period_ns, double drawn)
{
    block->cells = 1 + SHARE * block->scan_ns / period_ns;
    block->left = block->cells;
    block->chosen = (uint64_t)(drawn * (double)block->cells);
    block->number = block->number == UINT16_MAX ? 1 : block->number + 1;
}

/* The cells of a late round that are beyond the block's end are a block of their own, in which this
 * round takes new threads. */
void sp_wall_block_enter(sp_wall_block *block, uint64_t cells, uint64_t period_ns, double drawn)
{
    if (block->left == 0)
        begin_block(block, period_ns, drawn);
    uint64_t within = sp_min_u64(cells, block->left), before = block->cells - block->left;
    bool is_chosen = block->chosen >= before && block->chosen - before < within;
    double beyond = (double)(cells - within);
    block->left -= within;
    block->of_quiet = beyond / (double)cells;
    block->of_new = (beyond + (is_chosen ? (double)block->cells : 0)) / (double)cells;
}

/* A single scan may take long by chance (page faults, what a host takes), and would make a very
 * long block. So the smaller one of the last two counts. */
void sp_wall_block_scanned(sp_wall_block *block, uint64_t ns)
{
    block->scan_ns = sp_min_u64(ns, block->last_ns);
    block->last_ns = ns;
}

double sp_wall_block_part(const sp_wall_block *block, bool is_new, uint16_t *first)
{
    if (is_new) {
        if (sp_wall_block_takes_new(block))
            *first = block->number;
        return block->of_new;
    }
    if (*first == block->number)
        return block->of_quiet;
    *first = 0;
    return 1;
}
