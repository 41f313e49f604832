/* SPDX-License-Identifier: Apache-2.0 */
/* All functions are found when the library is initialized, because dlsym takes the loader's lock. A
 * later search could deadlock: a thread in dlopen holds the loader's lock and waits for a mutex,
 * and the thread that has the mutex calls dlsym for its first function. */
#include "preload/next_locks.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>

/* Called when the program was built with a newer C library than it runs with. Without this library,
 * it would not start. */
static int is_missing(void)
{
    return ENOSYS;
}

/* On x86-64 glibc has two versions of the condition functions. Without a version dlsym may return
 * the old ones, whose condition is smaller. */
static void *find_condition(const char *name)
{
    return strncmp(name, "pthread_cond_", strlen("pthread_cond_")) == 0
               ? dlvsym(RTLD_NEXT, name, "GLIBC_2.3.2")
               : NULL;
}

static void *find(const char *name)
{
    void *found = find_condition(name);
    if (!found)
        found = dlsym(RTLD_NEXT, name);
    return found ? found : (void *)is_missing;
}

#define FIND(name) (__typeof__(sp_next_locks.name))find(#name)

#define FIRST(name, parameters, arguments)                                                         \
    static int first_##name parameters                                                             \
    {                                                                                              \
        sp_next_locks.name = FIND(name);                                                           \
        return sp_next_locks.name arguments;                                                       \
    }
SP_NEXT_LOCKS(FIRST)

#define INITIAL(name, parameters, arguments) .name = first_##name,
sp_lock_functions sp_next_locks = {SP_NEXT_LOCKS(INITIAL)};

__attribute__((constructor(101))) static void find_all(void)
{
#define FIND_ONE(name, parameters, arguments) sp_next_locks.name = FIND(name);
    SP_NEXT_LOCKS(FIND_ONE)
}
