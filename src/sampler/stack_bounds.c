/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/stack_bounds.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "sampler/sampler.h"

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

bool sp_stack_bounds_of_address(uint64_t sp, sp_stack_bounds *out)
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
        found = sp >= out->low && sp < out->high;
    }
    free(line);
    (void)fclose(maps);
    return found;
}

void sp_stack_learn_own(sp_thread *thread)
{
    sp_stack_bounds bounds = sp_stack_bounds_of_self();
    sp_store_relaxed(&thread->stack_low, bounds.low);
    sp_store_release(&thread->stack_high, bounds.high);
}

/* The top of a stack that glibc made is where the thread's control block begins; the main thread's is the end of its mapping. What
 * cannot be told so stays guarded: a mapping's end proves nothing, for neighbours merge. */
void sp_sampler_learn_stack(sp_thread *thread)
{
    uint64_t sp = sp_load_relaxed(&thread->seen_sp), tp = sp_load_relaxed(&thread->seen_tp);
    sp_stack_bounds mapping;
    if (sp_load_relaxed(&thread->stack_high) || sp == 0 ||
        !sp_stack_bounds_of_address(sp, &mapping))
        return;
    uint64_t high = thread->tid == getpid() ? mapping.high : tp > sp && tp < mapping.high ? tp : 0;
    if (high == 0)
        return;
    sp_store_relaxed(&thread->stack_low, mapping.low);
    sp_store_release(&thread->stack_high, high);
}
