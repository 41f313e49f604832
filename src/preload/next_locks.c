/* SPDX-License-Identifier: Apache-2.0 */
/* To find a function takes the loader's lock. Later than the initialization that could be a
 * deadlock: a thread that waits for a mutex in dlopen holds the loader's lock, and the mutex may be
 * that of a thread that looks for its first function. */
#include "preload/next_locks.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>

/* The program was built with a newer C library than it runs with, and would not be started without
 * us. */
static int is_missing(void)
{
    return ENOSYS;
}

/* glibc has two kinds of condition on x86-64, and may give the functions of the old one, which is
 * smaller, to who names no version. */
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
