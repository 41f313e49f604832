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

struct sp_modules {
    _Atomic(const sp_generation *) current; /* never NULL after create */
    /* The rest belongs to the collector thread. */
    sp_generation *newest;  /* what current points to */
    sp_generation *retired; /* newest first */
    uint64_t adds;          /* the loader's counters when newest was made */
    uint64_t subs;
    uint32_t next_number;
    uint32_t next_module_id;
};

#endif
