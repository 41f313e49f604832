/* SPDX-License-Identifier: Apache-2.0 */
/* How signal handlers read generations. No libc, no lock, no allocation. */
#include "unwind/generation_sig.h"

SP_SIGSAFE const sp_generation *sp_generation_enter(const sp_modules *modules,
                                                    _Atomic(const sp_generation *) *hazard)
{
    const sp_generation *generation = atomic_load(&modules->current);
    for (;;) {
        atomic_store(hazard, generation);
        const sp_generation *again = atomic_load(&modules->current);
        if (again == generation)
            return generation;
        generation = again;
    }
}

/* The release pairs with the load in sp_modules_hazard_number: a thread that reads an empty hazard
 * also reads the new sample in the ring. */
SP_SIGSAFE void sp_generation_leave(_Atomic(const sp_generation *) *hazard)
{
    sp_store_release(hazard, (const sp_generation *)0);
}

SP_SIGSAFE uint32_t sp_generation_look_up(const sp_generation *generation, uint64_t after)
{
    uint64_t pc = after - 1;
    const sp_module *module = sp_generation_find(generation, pc);
    uint16_t number = SP_RULE_NONE;
    if (module && module->table)
        number = sp_unwind_table_find(module->table, pc - module->start);
    uint32_t packed = generation->rules->packed[number];
    if (after >> 48 == 0)
        sp_store_relaxed(sp_rule_entry(generation, after),
                         after >> SP_RULE_CACHE_BITS << SP_PACKED_BITS | packed);
    return packed;
}

SP_SIGSAFE const sp_module *sp_generation_find(const sp_generation *generation, uint64_t pc)
{
    uint32_t low = 0;
    uint32_t high = generation->module_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (generation->modules[middle]->start <= pc)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0 || pc >= generation->modules[low - 1]->end)
        return 0;
    return generation->modules[low - 1];
}
