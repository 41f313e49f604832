/* SPDX-License-Identifier: Apache-2.0 */
#include "unwind/stack_bounds.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

typedef bool is_wanted(const char *line, const sp_stack_bounds *mapping, uint64_t sp);

static bool holds(const char *line, const sp_stack_bounds *mapping, uint64_t sp)
{
    (void)line;
    return sp >= mapping->low && sp < mapping->high;
}

/* The kernel names the mapping in which the process began so; it is never a neighbour's. */
static bool is_main_stack(const char *line, const sp_stack_bounds *mapping, uint64_t sp)
{
    (void)mapping;
    (void)sp;
    return strstr(line, "[stack]") != NULL;
}

/* The first mapping that IS_WANTED, in *OUT. */
static bool find_mapping(is_wanted *is_wanted, uint64_t sp, sp_stack_bounds *out)
{
    FILE *maps = fopen("/proc/self/maps", "re");
    if (!maps)
        return false;
    char *line = NULL;
    size_t capacity = 0;
    bool found = false;
    while (!found && getline(&line, &capacity, maps) > 0) {
        char *rest;
        out->low = strtoull(line, &rest, 16);
        if (*rest != '-')
            continue;
        out->high = strtoull(rest + 1, NULL, 16);
        found = is_wanted(line, out, sp);
    }
    free(line);
    (void)fclose(maps);
    return found;
}

bool sp_stack_bounds_of_address(uint64_t sp, sp_stack_bounds *out)
{
    return find_mapping(holds, sp, out);
}

void sp_stack_learn_own(sp_thread *thread)
{
    sp_stack_bounds bounds = sp_stack_bounds_of_self();
    sp_store_relaxed(&thread->tick.stack_low, bounds.low);
    sp_store_release(&thread->tick.stack_high, bounds.high);
}

/* glibc puts a thread's control block on top of the stack that it makes for it, in the same
 * mapping. */
static bool find_made_stack(uint64_t sp, uint64_t tp, sp_stack_bounds *out)
{
    if (!sp_stack_bounds_of_address(sp, out) || tp <= sp || tp >= out->high)
        return false;
    out->high = tp;
    return true;
}

/* What cannot be told stays guarded: the end of the mapping that SP is in proves nothing, for
 * neighbours merge, and a coroutine's stack may lose what is above it. */
void sp_stack_learn(sp_thread *thread)
{
    uint64_t sp = sp_load_relaxed(&thread->tick.seen_sp),
             tp = sp_load_relaxed(&thread->tick.seen_tp);
    sp_stack_bounds found;
    if (sp_load_relaxed(&thread->tick.stack_high) || sp == 0)
        return;
    bool known = thread->registered.tid == getpid() ? find_mapping(is_main_stack, sp, &found)
                                                    : find_made_stack(sp, tp, &found);
    if (!known)
        return;
    sp_store_relaxed(&thread->tick.stack_low, found.low);
    sp_store_release(&thread->tick.stack_high, found.high);
}
