/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/stack_bounds.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

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
