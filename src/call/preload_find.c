/* SPDX-License-Identifier: Apache-2.0 */
#include "call/preload_find.h"

#include <dlfcn.h>
#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "core/compiler.h"

typedef void *getter_function(uint32_t version);

#define CHECKS " checks the program's calls, so spanprof does not sample them"

/* The name of a tool that checks the same calls, or NULL. libspanprof-preload.so then passes all
 * calls on and samples none, so that it does not appear in the tool's reports. */
static const char *find_checker(void)
{
    static const char *const sanitizers[][2] = {{"__asan_init", "AddressSanitizer" CHECKS},
                                                {"__tsan_init", "ThreadSanitizer" CHECKS},
                                                {"__msan_init", "MemorySanitizer" CHECKS}};
    for (size_t i = 0; i < SP_ARRAY_LENGTH(sanitizers); i++)
        if (dlsym(RTLD_DEFAULT, sanitizers[i][0]))
            return sanitizers[i][1];
    const char *preloads = getenv("LD_PRELOAD");
    return preloads && strstr(preloads, "vgpreload") ? "valgrind" CHECKS : NULL;
}

/* Whether the program's calls of SYMBOL enter the library that has GETTER. In a program at a fixed
 * address that takes the function's address, dlsym returns an entry in the program itself. That
 * entry is undefined there, and leads to the first definition. */
static bool is_first(const char *symbol, getter_function *getter)
{
    Dl_info called, library;
    const ElfW(Sym) *entry = NULL;
    void *address = dlsym(RTLD_DEFAULT, symbol);
    return address && dladdr1(address, &called, (void **)&entry, RTLD_DL_SYMENT) &&
           dladdr((void *)getter, &library) &&
           (called.dli_fbase == library.dli_fbase || (entry && entry->st_shndx == SHN_UNDEF));
}

void *sp_preload_find(const char *getter, uint32_t version, const char *symbol, const char **reason)
{
    getter_function *get = (getter_function *)dlsym(RTLD_DEFAULT, getter);
    void *found = get ? get(version) : NULL;
    *reason = find_checker();
    if (!get)
        *reason = "libspanprof-preload.so is not loaded: set LD_PRELOAD to it, or link it first";
    else if (!found)
        *reason = "libspanprof-preload.so is of another version: install both from one build";
    else if (!*reason && !is_first(symbol, get))
        *reason = "another library's or the program's own function comes before that of "
                  "libspanprof-preload.so: put it first in LD_PRELOAD, or link it first";
    return *reason ? NULL : found;
}
