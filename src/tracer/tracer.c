/* SPDX-License-Identifier: Apache-2.0 */
/* The tracers: one for each pair of name and version, for the life of the process. Programs have a few, so a list is enough; it
 * only ever grows at its head, hence looking through it takes no lock. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "core/utf8.h"
#include "tracer/internal.h"

spanprof_tracer sp_tracer_default = {.scope = {.name = "", .version = ""}};

static struct {
    pthread_mutex_t lock; /* of additions */
    _Atomic(spanprof_tracer *) newest;
} tracers = {.lock = PTHREAD_MUTEX_INITIALIZER, .newest = &sp_tracer_default};

static spanprof_tracer *find(const char *name, const char *version)
{
    spanprof_tracer *tracer = sp_load_acquire(&tracers.newest); /* pairs with add_locked */
    while (tracer &&
           (strcmp(tracer->scope.name, name) != 0 || strcmp(tracer->scope.version, version) != 0))
        tracer = tracer->next;
    return tracer;
}

static spanprof_tracer *add_locked(const char *name, const char *version)
{
    spanprof_tracer *tracer = malloc(sizeof *tracer);
    if (!tracer)
        return NULL;
    *tracer = (spanprof_tracer){.scope = {.name = name, .version = version},
                                .next = sp_load_relaxed(&tracers.newest)};
    sp_store_release(&tracers.newest, tracer);
    return tracer;
}

static char *copy_valid(const char *text)
{
    size_t length = text ? strlen(text) : 0;
    char *copy = length < SIZE_MAX / 4 ? malloc(3 * length + 1) : NULL;
    if (copy)
        sp_utf8_repair(copy, text ? text : "", length);
    return copy;
}

spanprof_tracer *spanprof_tracer_get(const char *name, const char *version)
{
    spanprof_tracer *tracer = find(name ? name : "", version ? version : "");
    if (tracer)
        return tracer;
    char *own_name = copy_valid(name), *own_version = copy_valid(version);
    if (own_name && own_version) {
        pthread_mutex_lock(&tracers.lock);
        tracer = find(own_name, own_version);
        if (!tracer && (tracer = add_locked(own_name, own_version)))
            own_name = own_version = NULL; /* the tracer's now */
        pthread_mutex_unlock(&tracers.lock);
    }
    free(own_name);
    free(own_version);
    return tracer;
}

void sp_tracer_table_after_fork(void)
{
    tracers.lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
}
