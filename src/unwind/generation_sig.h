/* SPDX-License-Identifier: Apache-2.0 */
/* How a handler protects a generation without a lock: by a hazard pointer for each thread.
 *
 *     handler                         collector
 *     current -> g                    publish: current = g'
 *     hazard = g                      read all hazards
 *     current still g?  no: again     free g when no hazard and no number in a ring refers to it
 *
 * The store of the hazard and the second load of `current` are sequentially consistent, and so are
 * the publication and the collector's loads of the hazards. In the single order of those four,
 * either the handler reads g' and tries again, or the collector reads g in the hazard. Waiting for
 * a fixed time instead is not enough: a thread may be stopped inside a tick for any length of
 * time. */
#ifndef SP_UNWIND_GENERATION_SIG_H
#define SP_UNWIND_GENERATION_SIG_H

#include "unwind/module.h"
#include "unwind/table_shelf.h"
#include "unwind/unwind_table.h"

#define SP_RULE_CACHE_BITS    14
#define SP_RULE_CACHE_ENTRIES (1u << SP_RULE_CACHE_BITS) /* 128 KiB */

_Static_assert(48 - SP_RULE_CACHE_BITS + SP_PACKED_BITS == 64,
               "an entry is a tag and a packed rule");

struct sp_modules {
    _Atomic(const sp_generation *) current; /* NULL: not created, or destroyed */
    /* The rest belongs to the collector thread. */
    sp_rule_pool rules;
    sp_table_shelf shelf;
    sp_generation *newest;  /* what current points to */
    sp_generation *retired; /* newest first */
    uint64_t adds;          /* the loader's counters when newest was made */
    uint64_t subs;
    sp_modules *next_spare;
    uint32_t next_number;
    uint32_t next_module_id;
};

/* The cache entry for the address AFTER. Its index is the lowest bits of the address XORed with
 * bits above them, because functions begin at aligned addresses. The index and the upper bits
 * together determine the lowest bits, so the tag does not need them. */
SP_SIGSAFE static inline _Atomic uint64_t *sp_rule_entry(const sp_generation *generation,
                                                         uint64_t after)
{
    return &generation->rule_cache[(after ^ after >> 8) & (SP_RULE_CACHE_ENTRIES - 1)];
}

/* Look up AFTER - 1 in the modules' tables, and cache the result. */
SP_SIGSAFE uint32_t sp_generation_look_up(const sp_generation *generation, uint64_t after);

/* The packed rule (packed_rule.h) for the byte before AFTER. AFTER is a return address, so that the
 * rule is that of the call, or pc + 1 for an exact pc. Returns the packed number of SP_RULE_NONE
 * where no rule is known; never 0.
 *
 * An entry of the cache is one word, which is read and written atomically, so concurrent writers
 * cannot tear it. It has 34 bits of the address (without the lowest 14) above the 30 bits of the
 * packed rule. The bits of the result above the packed rule are undefined. */
SP_SIGSAFE static inline uint32_t sp_generation_rule(const sp_generation *generation,
                                                     uint64_t after)
{
    uint64_t known = sp_load_relaxed(sp_rule_entry(generation, after));
    if (SP_LIKELY(known >> SP_PACKED_BITS == after >> SP_RULE_CACHE_BITS && known))
        return (uint32_t)known;
    return sp_generation_look_up(generation, after);
}

#endif
