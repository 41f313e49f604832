/* SPDX-License-Identifier: Apache-2.0 */
/* The unwind table of one module, compiled from its .eh_frame away from any signal handler.
 *
 * pcs[0 .. row_count) are strictly increasing offsets from the module's start; row i covers
 * [pcs[i], pcs[i+1]) and has the rule with number rule_of_row[i] in the pool. The gaps between
 * functions are rows of SP_RULE_NONE, the last row too. page_rows makes a lookup take only a few
 * steps: page_rows[p] is the number of rows below first_page + (p << SP_UNWIND_PAGE_SHIFT).
 *
 *   page_rows  | 0 | 3 | 3 | 7 |            one entry per 512 bytes of code, and one more
 *                |    \   \   \________
 *   pcs        | 0x10 0x11 0x14 | 0x424 … |
 *   rule_of_row|    2    3    4 |    2  … |  into the pool
 */
#ifndef SP_UNWIND_UNWIND_TABLE_H
#define SP_UNWIND_UNWIND_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/compiler.h"
#include "unwind/cfi_section.h"
#include "unwind/rule_pool.h"

#define SP_UNWIND_PAGE_SHIFT 9

/* Immutable once compiled. */
typedef struct sp_unwind_table {
    uint32_t row_count;  /* >= 1 */
    uint32_t first_page; /* pcs[0] rounded down to a page */
    uint32_t page_count; /* page_rows has one more */
    uint32_t *pcs;
    uint16_t *rule_of_row;
    uint32_t *page_rows;
    uint32_t *begins; /* of functions, sorted; only for a module without .eh_frame_hdr */
    uint32_t function_count;
    size_t bytes; /* of the block that holds all this */
} sp_unwind_table;

/* NULL when there is nothing usable in SECTION, or memory is short. SECTION may have any content:
 * unreadable parts are left out, and memory stays proportional to its length. The result is one
 * block that refers to nothing of SECTION; its rules are added to POOL. */
sp_unwind_table *sp_unwind_table_compile(const sp_cfi_section *section, sp_rule_pool *pool);
void sp_unwind_table_destroy(sp_unwind_table *table);

/* The number of the rule for OFFSET bytes from the module's start. Signals: safe. */
SP_SIGSAFE static inline uint16_t sp_unwind_table_find(const sp_unwind_table *table,
                                                       uint64_t offset)
{
    if (offset < table->first_page || offset > UINT32_MAX)
        return SP_RULE_NONE;
    uint64_t page = (offset - table->first_page) >> SP_UNWIND_PAGE_SHIFT;
    if (page >= table->page_count)
        return SP_RULE_NONE;
    /* The first row above OFFSET is in [low, high]. */
    uint32_t low = table->page_rows[page];
    uint32_t high = table->page_rows[page + 1];
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (table->pcs[middle] <= offset)
            low = middle + 1;
        else
            high = middle;
    }
    return low ? table->rule_of_row[low - 1] : SP_RULE_NONE;
}

#endif
