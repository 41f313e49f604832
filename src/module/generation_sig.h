/* SPDX-License-Identifier: Apache-2.0 */
/* How a handler takes hold of a generation without a lock: a hazard pointer for each thread.
 *
 *   handler                               collector
 *   current -> g                          publish: current = g'
 *   hazard = g                            read all hazards
 *   current still g?  no: again           free g when no hazard shows it (and no ring holds its number)
 *
 * The store of the hazard and the second look at `current` are sequentially consistent, and so are the publication and the
 * collector's look at the hazards. In the single order of those four either the handler sees g' and tries again, or the
 * collector sees g in the hazard. A grace period of time would not do: a thread may be stopped in a tick for as long as
 * anybody likes. */
#ifndef SP_MODULE_GENERATION_SIG_H
#define SP_MODULE_GENERATION_SIG_H

#include "module/module.h"
#include "module/table_shelf.h"

#define SP_RULE_CACHE_BITS    13
#define SP_RULE_CACHE_ENTRIES (1u << SP_RULE_CACHE_BITS) /* 64 KiB */

_Static_assert(48 - SP_RULE_CACHE_BITS + SP_PACKED_BITS == 64,
               "an entry is a tag and a packed rule");

struct sp_modules {
    _Atomic(const sp_generation *) current; /* never NULL after create */
    /* The rest belongs to the collector thread. */
    sp_rule_pool rules;
    sp_table_shelf shelf;
    sp_generation *newest;  /* what current points to */
    sp_generation *retired; /* newest first */
    uint64_t adds;          /* the loader's counters when newest was made */
    uint64_t subs;
    uint32_t next_number;
    uint32_t next_module_id;
};

/* Where in the cache the entry for PC is. Neighbours have different ones. */
SP_SIGSAFE static inline _Atomic uint64_t *sp_rule_entry(const sp_generation *generation,
                                                         uint64_t pc)
{
    return &generation->rule_cache[(pc ^ pc >> SP_RULE_CACHE_BITS) & (SP_RULE_CACHE_ENTRIES - 1)];
}

/* Look PC up in the modules' tables, and remember what is found. */
SP_SIGSAFE uint32_t sp_generation_look_up(const sp_generation *generation, uint64_t pc);

/* The packed rule (packed_rule.h) at PC, the number of SP_RULE_NONE where nothing is known; never 0.
 *
 * An entry of the cache is one word, read and written as such, so that it is always whole, whoever else writes it: 35 bits tell the pc,
 * without its lowest 13, which follow from those and from the entry's place; the other 29 are the packed rule. */
SP_SIGSAFE static inline uint32_t sp_generation_rule_at(const sp_generation *generation,
                                                        uint64_t pc)
{
    uint64_t known = sp_load_relaxed(sp_rule_entry(generation, pc));
    if (SP_LIKELY(known >> SP_PACKED_BITS == pc >> SP_RULE_CACHE_BITS && known))
        return (uint32_t)known & ((1u << SP_PACKED_BITS) - 1);
    return sp_generation_look_up(generation, pc);
}

#endif
