/* SPDX-License-Identifier: Apache-2.0 */
#include "unwind/stack_bounds.h"

#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "core/mappings.h"

sp_stack_bounds sp_stack_bounds_of_self(void)
{
    sp_stack_bounds bounds = {0};
    pthread_attr_t attributes;
    void *low;
    size_t size;
    if (pthread_getattr_np(pthread_self(), &attributes) != 0)
        return bounds;
    if (pthread_attr_getstack(&attributes, &low, &size) == 0) {
        bounds.low = (uint64_t)(uintptr_t)low;
        bounds.high = bounds.low + size;
    }
    pthread_attr_destroy(&attributes);
    return bounds;
}

/* A search for the first mapping that contains SP, or, if SP is 0, for the main thread's stack. */
typedef struct search {
    uint64_t sp;
    sp_stack_bounds *out;
    bool is_found;
} search;

/* The kernel names the mapping of the main thread's stack "[stack]"; no other mapping has that
 * name. */
static bool take_mapping(const sp_mapping *mapping, void *user)
{
    search *search = user;
    search->is_found = search->sp ? search->sp >= mapping->start && search->sp < mapping->end
                                  : strcmp(mapping->path, "[stack]") == 0;
    if (search->is_found)
        *search->out = (sp_stack_bounds){.low = mapping->start, .high = mapping->end};
    return !search->is_found;
}

static bool find_mapping(uint64_t sp, sp_stack_bounds *out)
{
    search search = {.sp = sp, .out = out};
    return sp_mappings_of_process(0, take_mapping, &search) && search.is_found;
}

bool sp_stack_bounds_of_address(uint64_t sp, sp_stack_bounds *out)
{
    return sp > 0 && find_mapping(sp, out);
}

void sp_stack_learn_own(sp_thread *thread)
{
    sp_stack_bounds bounds = sp_stack_bounds_of_self();
    sp_store_relaxed(&thread->tick.stack_low, bounds.low);
    sp_store_release(&thread->tick.stack_high, bounds.high);
}

/* glibc puts a thread's control block, to which TP points, at the top of the stack that it
 * allocates, in the same mapping. */
static bool find_made_stack(uint64_t sp, uint64_t tp, sp_stack_bounds *out)
{
    if (!sp_stack_bounds_of_address(sp, out) || tp <= sp || tp >= out->high)
        return false;
    out->high = tp;
    return true;
}

/* If the stack's end is not certain, loads stay guarded. The end of SP's mapping is no proof,
 * because the kernel merges neighbouring mappings, and the memory above a coroutine's stack may be
 * unmapped. */
void sp_stack_learn(sp_thread *thread)
{
    uint64_t sp = sp_load_relaxed(&thread->tick.seen_sp),
             tp = sp_load_relaxed(&thread->tick.seen_tp);
    sp_stack_bounds found;
    if (sp_load_relaxed(&thread->tick.stack_high) || sp == 0)
        return;
    bool known = thread->registered.tid == getpid() ? find_mapping(0, &found)
                                                    : find_made_stack(sp, tp, &found);
    if (!known)
        return;
    sp_store_relaxed(&thread->tick.stack_low, found.low);
    sp_store_release(&thread->tick.stack_high, found.high);
}
