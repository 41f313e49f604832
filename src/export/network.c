/* SPDX-License-Identifier: Apache-2.0 */
#include "export/network.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "core/atomic.h"
#include "core/compiler.h"
#include "core/log.h"

sp_network sp_network_table;

static _Atomic bool loaded;

typedef struct entry {
    const char *name;
    void *place; /* in sp_network_table */
} entry;

/* The names are strings, because the macros of network.h would replace identifiers. */
#define ENTRY(name) {"curl_" #name, &sp_network_table.name},
static const entry entries[] = {SP_NETWORK_FUNCTIONS(ENTRY)};

/* Distributions build libcurl with several TLS libraries, under a name for each; what we call is
 * the same in all. A libcurl that the host has loaded under one of these names is used and not
 * loaded twice. */
static void *open_library(void)
{
    static const char *const names[] = {"libcurl.so.4", "libcurl-gnutls.so.4"};
    char reasons[SP_ARRAY_LENGTH(names)][256];
    for (size_t i = 0; i < SP_ARRAY_LENGTH(names); i++) {
        void *library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
        if (library)
            return library;
        const char *why = dlerror(); /* begins with the name */
        snprintf(reasons[i], sizeof reasons[i], "%s", why ? why : names[i]);
    }
    sp_log_error("export", "loading libcurl: %s; %s: install it, or set SPANPROF_EXPORTER=file",
                 reasons[0], reasons[1]);
    return NULL;
}

static bool find_functions(void *library)
{
    for (size_t i = 0; i < SP_ARRAY_LENGTH(entries); i++) {
        void *function = dlsym(library, entries[i].name);
        if (!function) {
            sp_log_error("export", "loading libcurl: it has no %s: 7.83 or later is needed",
                         entries[i].name);
            return false;
        }
        memcpy(entries[i].place, &function, sizeof function);
    }
    return true;
}

static void load(void)
{
    void *library = open_library();
    bool good =
        library && find_functions(library) && curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK;
    sp_store_release(&loaded, good);
}

bool sp_network_load(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load);
    return sp_network_is_loaded();
}

bool sp_network_is_loaded(void)
{
    return sp_load_acquire(&loaded);
}
