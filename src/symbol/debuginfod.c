/* SPDX-License-Identifier: Apache-2.0 */
/* libdebuginfod is loaded at run time, not linked, because it needs libcurl and a TLS library, and
 * few users enable it. It caches its results, also negative ones, in ~/.cache/debuginfod_client,
 * and reads its limits from DEBUGINFOD_TIMEOUT and similar variables. A server may still be slow,
 * so a separate thread makes the calls. The thread may outlive the symbolizer; the one that ends
 * last frees what both use. */
#include "symbol/debuginfod.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "context/thread.h"
#include "core/atomic.h"
#include "core/clock.h"
#include "core/env.h"
#include "core/lock.h"
#include "core/log.h"
#include "core/worker.h"
#include "unwind/module.h"

enum { REQUESTS_MAX = 1024, PATIENCE_MS = 2000, FILE_SECONDS_MAX = 300 };

#define FILE_BYTES_MAX ((long)1 << 30)

/* Declared in elfutils/debuginfod.h, which some systems with elfutils lack. */
typedef struct debuginfod_client debuginfod_client;
typedef int progress_function(debuginfod_client *client, long done, long total);

typedef struct library {
    debuginfod_client *(*begin)(void);
    void (*end)(debuginfod_client *client);
    int (*find_debuginfo)(debuginfod_client *client, const unsigned char *id, int length,
                          char **path);
    void (*set_progressfn)(debuginfod_client *client, progress_function *function);
    void (*set_user_data)(debuginfod_client *client, void *value);
} library;

/* Global, because follow_progress needs it and the client is its only argument that could lead to
 * it. Every load of the library finds the same function. */
static void *(*get_user_data)(debuginfod_client *client);

typedef struct request {
    uint8_t id[SP_BUILD_ID_MAX];
    size_t length;
    sp_debuginfod_answer answer;
    char *path;
} request;

/* The worker's lock guards the members from `requests` on, except `stopped`, which is atomic, and
 * `began_ns`, which only the thread uses. requests[0 .. answered) have their answers. A wake means
 * that a request was added. */
struct sp_debuginfod {
    library library;
    sp_worker worker;
    request requests[REQUESTS_MAX];
    unsigned count, answered;
    unsigned seen; /* answers when patience was last renewed */
    /* how long sp_debuginfod_wait still waits when no further answer arrives */
    uint64_t patience_ns;
    bool started;         /* the thread */
    _Atomic bool stopped; /* nothing more is to be fetched */
    uint64_t began_ns;    /* used by the thread only: when the fetch of the current file began */
};

static bool find_functions(library *functions)
{
    void *handle = dlopen("libdebuginfod.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    const struct {
        const char *name;
        void *place;
    } entries[] = {{"debuginfod_begin", &functions->begin},
                   {"debuginfod_end", &functions->end},
                   {"debuginfod_find_debuginfo", &functions->find_debuginfo},
                   {"debuginfod_set_progressfn", &functions->set_progressfn},
                   {"debuginfod_set_user_data", &functions->set_user_data},
                   {"debuginfod_get_user_data", &get_user_data}};
    for (size_t i = 0; i < SP_ARRAY_LENGTH(entries); i++) {
        void *function = handle ? dlsym(handle, entries[i].name) : NULL;
        if (!function) {
            const char *why = dlerror();
            sp_log_warn("symbols", "SPANPROF_DEBUGINFOD: loading libdebuginfod: %s: not used",
                        why ? why : entries[i].name);
            return false;
        }
        memcpy(entries[i].place, &function, sizeof function);
    }
    return true;
}

sp_debuginfod *sp_debuginfod_create(void)
{
    library functions;
    if (!sp_env("DEBUGINFOD_URLS")) {
        sp_log_warn("symbols",
                    "SPANPROF_DEBUGINFOD=1, but DEBUGINFOD_URLS names no server: not used");
        return NULL;
    }
    sp_debuginfod *debuginfod = find_functions(&functions) ? calloc(1, sizeof *debuginfod) : NULL;
    if (!debuginfod)
        return NULL;
    debuginfod->library = functions;
    debuginfod->patience_ns = PATIENCE_MS * SP_NS_PER_MS;
    sp_worker_init(&debuginfod->worker, SP_LOCK_DEBUGINFOD);
    return debuginfod;
}

static void free_all(void *owner)
{
    sp_debuginfod *debuginfod = owner;
    for (unsigned i = 0; i < debuginfod->count; i++)
        free(debuginfod->requests[i].path);
    sp_worker_deinit(&debuginfod->worker);
    free(debuginfod);
}

/* Called about once a second while a file is fetched; a result other than 0 ends the fetch. TOTAL:
 * the bytes of the file, 0 as long as that is not known. */
static int follow_progress(debuginfod_client *client, long done, long total)
{
    const sp_debuginfod *debuginfod = get_user_data(client);
    (void)done;
    return sp_load_relaxed(&debuginfod->stopped) || total > FILE_BYTES_MAX ||
           sp_clock_monotonic_ns() - debuginfod->began_ns > FILE_SECONDS_MAX * SP_NS_PER_S;
}

/* Fetch the debug file of WANTED. Returns its path, which the caller frees; NULL: it could not be
 * fetched. */
static char *fetch(sp_debuginfod *debuginfod, debuginfod_client *client, const request *wanted)
{
    char *path = NULL;
    debuginfod->began_ns = sp_clock_monotonic_ns();
    int fd = debuginfod->library.find_debuginfo(client, wanted->id, (int)wanted->length, &path);
    if (fd >= 0) {
        close(fd);
        return path;
    }
    if (fd != -ENOENT && !sp_load_relaxed(&debuginfod->stopped))
        sp_log_warn("symbols", "asking debuginfod servers: %s: using what is here", strerror(-fd));
    free(path);
    return NULL;
}

/* False when there is no request without an answer. */
static bool copy_request(sp_debuginfod *debuginfod, request *next)
{
    sp_lock_take(&debuginfod->worker.lock);
    bool found = debuginfod->answered < debuginfod->count;
    if (found)
        *next = debuginfod->requests[debuginfod->answered];
    sp_lock_give(&debuginfod->worker.lock);
    return found;
}

/* Wait for the next request and copy it; false when the thread is to end. */
static bool next_request(sp_debuginfod *debuginfod, request *next)
{
    bool ending = false, found = false;
    while (!ending && !(found = copy_request(debuginfod, next)))
        ending = sp_worker_wait(&debuginfod->worker, UINT64_MAX).ending;
    return found && !sp_load_relaxed(&debuginfod->stopped);
}

static void answer(sp_debuginfod *debuginfod, char *path)
{
    sp_lock_take(&debuginfod->worker.lock);
    request *answered = &debuginfod->requests[debuginfod->answered++];
    answered->path = path;
    answered->answer = path ? SP_DEBUGINFOD_FETCHED : SP_DEBUGINFOD_NONE;
    sp_worker_publish_progress(&debuginfod->worker);
    sp_lock_give(&debuginfod->worker.lock);
}

static void run(void *owner)
{
    sp_debuginfod *debuginfod = owner;
    request next;
    sp_thread_self_internal();
    debuginfod_client *client = debuginfod->library.begin();
    if (client) {
        debuginfod->library.set_user_data(client, debuginfod);
        debuginfod->library.set_progressfn(client, follow_progress);
    }
    while (next_request(debuginfod, &next))
        answer(debuginfod, client ? fetch(debuginfod, client, &next) : NULL);
    if (client)
        debuginfod->library.end(client);
}

static const sp_worker_role role = {.name = "spanprof-debugi", .run = run, .destroy = free_all};

void sp_debuginfod_destroy(sp_debuginfod *debuginfod)
{
    if (!debuginfod)
        return;
    if (!debuginfod->started) {
        free_all(debuginfod);
        return;
    }
    sp_store_relaxed(&debuginfod->stopped, true);
    sp_worker_end(&debuginfod->worker, sp_clock_monotonic_ns() + PATIENCE_MS * SP_NS_PER_MS);
    if (sp_worker_release(&debuginfod->worker))
        free_all(debuginfod);
}

/* With the lock held. */
static request *add_request(sp_debuginfod *debuginfod, const uint8_t *id, size_t length)
{
    if (debuginfod->count == REQUESTS_MAX || length > sizeof debuginfod->requests[0].id)
        return NULL;
    if (!debuginfod->started)
        debuginfod->started = sp_worker_start(&debuginfod->worker, &role, debuginfod) == 0;
    if (!debuginfod->started)
        return NULL;
    request *added = &debuginfod->requests[debuginfod->count++];
    memcpy(added->id, id, length);
    added->length = length;
    return added;
}

sp_debuginfod_answer sp_debuginfod_ask(sp_debuginfod *debuginfod, const uint8_t *id, size_t length,
                                       const char **path)
{
    request *found = NULL;
    sp_lock_take(&debuginfod->worker.lock);
    for (unsigned i = 0; i < debuginfod->count && !found; i++)
        if (debuginfod->requests[i].length == length &&
            memcmp(debuginfod->requests[i].id, id, length) == 0)
            found = &debuginfod->requests[i];
    bool is_new = !found;
    if (is_new)
        found = add_request(debuginfod, id, length);
    sp_debuginfod_answer answer = found ? found->answer : SP_DEBUGINFOD_NONE;
    *path = found ? found->path : NULL;
    sp_lock_give(&debuginfod->worker.lock);
    if (is_new && found)
        sp_worker_wake(&debuginfod->worker);
    return answer;
}

bool sp_debuginfod_wait(sp_debuginfod *debuginfod, uint32_t ms)
{
    uint64_t begin = sp_clock_monotonic_ns();
    sp_lock_take(&debuginfod->worker.lock);
    if (debuginfod->seen != debuginfod->answered)
        debuginfod->patience_ns = PATIENCE_MS * SP_NS_PER_MS;
    debuginfod->seen = debuginfod->answered;
    bool waits = debuginfod->answered < debuginfod->count && debuginfod->patience_ns > 0;
    if (waits)
        sp_worker_wait_for_progress(&debuginfod->worker, begin + ms * SP_NS_PER_MS);
    uint64_t waited_ns = sp_clock_monotonic_ns() - begin;
    debuginfod->patience_ns -= sp_min_u64(waited_ns, debuginfod->patience_ns);
    sp_lock_give(&debuginfod->worker.lock);
    return waits;
}
