/* SPDX-License-Identifier: Apache-2.0 */
/* All unwind rules of a process, each once: modules share a few hundred rules, and a 16-bit number
 * names a rule in the tables of all modules. Rules are only ever added, so a number in a published
 * table or cache stays valid until the pool is destroyed.
 *
 * | operation          | setup | collector | handler |
 * | init, deinit, put  |  yes  |    yes    |         |
 * | read rules, packed |  yes  |    yes    |   yes   |  at numbers from a published generation
 */
#ifndef SP_UNWIND_RULE_POOL_H
#define SP_UNWIND_RULE_POOL_H

#include <stdbool.h>

#include "core/intern.h"
#include "unwind/packed_rule.h"

enum {
    SP_RULE_NONE = 0,        /* SP_CFA_NONE: no frame information */
    SP_RULE_UNSUPPORTED = 1, /* SP_CFA_UNSUPPORTED */
    SP_RULES_MAX = 65536,
};

/* `rules` and `packed` are indexed by number and have room for SP_RULES_MAX. Unused pages are never
 * touched. */
typedef struct sp_rule_pool {
    sp_unwind_rule *rules;
    uint32_t *packed; /* packed_rule.h */
    sp_intern numbers;
} sp_rule_pool;

/* False when memory is short; nothing is held then. */
bool sp_rule_pool_init(sp_rule_pool *pool);
void sp_rule_pool_deinit(sp_rule_pool *pool);

/* The number of RULE, added when it is new; SP_RULE_UNSUPPORTED when the pool is full,
 * SP_INTERN_FAILED when memory is short. */
uint32_t sp_rule_pool_put(sp_rule_pool *pool, const sp_unwind_rule *rule);

#endif
