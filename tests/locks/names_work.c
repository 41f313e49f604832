/* SPDX-License-Identifier: Apache-2.0 */
/* names_work FIRST_PLUGIN SECOND_PLUGIN: waits, each certain and under a span of its own, for locks
 * that lie in different places. Prints for each span the address of what it waited for, and first
 * where the program and its heap lie. */
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <threads.h>

#include <spanprof/spanprof.h>

#include "locks/blocked.h"
#include "locks/names_plugin.h"

enum { RELOADS = 4 };

/* A C++ variable, from C. */
struct shop {
    char name[40];
    pthread_mutex_t mutex;
};
extern struct shop names_shop __asm__("_ZN4shop9inventoryE");
struct shop names_shop = {"shop", PTHREAD_MUTEX_INITIALIZER};

extern pthread_mutex_t names_global;
pthread_mutex_t names_global = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t names_static = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t names_rwlock = PTHREAD_RWLOCK_INITIALIZER;
static mtx_t names_mtx;
static pthread_cond_t names_condition = PTHREAD_COND_INITIALIZER;
static sem_t names_semaphore;
static bool is_ready;

/* --- one wait --------------------------------------------------------------------------------- */

typedef void step(void *lock);

typedef struct wait {
    const char *name;
    void *lock;
    step *take, *give;
    _Atomic int tid;
} wait;

static void *wait_for_it(void *argument)
{
    wait *w = argument;
    SPANPROF_SPAN(w->name) {
        w->tid = own_tid();
        w->take(w->lock);
    }
    return NULL;
}

static void start_waiter(wait *w, pthread_t *thread)
{
    printf("%s %p\n", w->name, w->lock);
    pthread_create(thread, NULL, wait_for_it, w);
    wait_until_blocked(&w->tid);
}

/* A thread waits for LOCK, which this one has, under a span called NAME. */
static void contend(const char *name, void *lock, step *take, step *give)
{
    pthread_t thread;
    wait w = {.name = name, .lock = lock, .take = take, .give = give};
    take(lock);
    start_waiter(&w, &thread);
    give(lock);
    pthread_join(thread, NULL);
    give(lock);
}

static void take_mutex(void *lock)
{
    pthread_mutex_lock(lock);
}

static void give_mutex(void *lock)
{
    pthread_mutex_unlock(lock);
}

static void take_rwlock(void *lock)
{
    pthread_rwlock_wrlock(lock);
}

static void give_rwlock(void *lock)
{
    pthread_rwlock_unlock(lock);
}

static void take_mtx(void *lock)
{
    mtx_lock(lock);
}

static void give_mtx(void *lock)
{
    mtx_unlock(lock);
}

static void contend_mutex(const char *name, pthread_mutex_t *mutex)
{
    contend(name, mutex, take_mutex, give_mutex);
}

/* --- conditions and semaphores ---------------------------------------------------------------- */

static void await_condition(void *condition)
{
    pthread_mutex_lock(&names_static);
    while (!is_ready)
        pthread_cond_wait(condition, &names_static);
    pthread_mutex_unlock(&names_static);
}

static void signal_condition(void)
{
    pthread_t thread;
    wait w = {.name = "condition", .lock = &names_condition, .take = await_condition};
    start_waiter(&w, &thread);
    pthread_mutex_lock(&names_static);
    is_ready = true;
    pthread_cond_signal(&names_condition);
    pthread_mutex_unlock(&names_static);
    pthread_join(thread, NULL);
}

static void await_semaphore(void *semaphore)
{
    sem_wait(semaphore);
}

static void post_semaphore(void)
{
    pthread_t thread;
    wait w = {.name = "semaphore", .lock = &names_semaphore, .take = await_semaphore};
    sem_init(&names_semaphore, 0, 0);
    start_waiter(&w, &thread);
    sem_post(&names_semaphore);
    pthread_join(thread, NULL);
}

/* --- libraries that come and go --------------------------------------------------------------- */

/* The lock of the library at PATH; *LIBRARY is to be closed. */
static pthread_mutex_t *open_plugin(const char *path, void **library)
{
    *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    names_plugin_lock *lock = NULL;
    if (*library)
        *(void **)&lock = dlsym(*library, "names_plugin");
    if (!lock) {
        fprintf(stderr, "%s\n", dlerror());
        exit(1);
    }
    return lock();
}

/* The collector has seen that the library is there before the wait begins, and has named its lock
 * before the library goes. */
static void wait_in_known_plugin(const char *path)
{
    void *library;
    pthread_mutex_t *mutex = open_plugin(path, &library);
    contend_mutex("before", &names_global);
    spanprof_flush(UINT64_MAX);
    contend_mutex("known plugin", mutex);
    spanprof_flush(UINT64_MAX);
    dlclose(library);
}

/* Each is gone before the collector has seen the wait, and the next is often in its place. */
static void wait_in_plugins_that_go(char *const paths[2])
{
    static const char *const names[2] = {"first plugin", "second plugin"};
    for (int i = 0; i < 2 * RELOADS; i++) {
        void *library;
        contend_mutex(names[i % 2], open_plugin(paths[i % 2], &library));
        dlclose(library);
    }
}

/* --- all of them ------------------------------------------------------------------------------ */

/* Memory of which a name does not tell anything. */
static pthread_mutex_t *map_mutex(void)
{
    pthread_mutex_t *mutex =
        mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    pthread_mutex_init(mutex, NULL);
    return mutex;
}

static void wait_for_each(void)
{
    static pthread_mutex_t names_local = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_t on_stack = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_t *on_heap = malloc(sizeof *on_heap);
    pthread_mutex_init(on_heap, NULL);
    mtx_init(&names_mtx, mtx_plain);
    contend_mutex("global", &names_global);
    contend_mutex("static", &names_static);
    contend_mutex("local", &names_local);
    contend_mutex("member", &names_shop.mutex);
    contend_mutex("heap", on_heap);
    contend_mutex("stack", &on_stack);
    contend_mutex("mapped", map_mutex());
    contend("rwlock", &names_rwlock, take_rwlock, give_rwlock);
    contend("mtx", &names_mtx, take_mtx, give_mtx);
    signal_condition();
    post_semaphore();
    free(on_heap);
}

static int print_bias(struct dl_phdr_info *info, size_t size, void *user)
{
    (void)size;
    (void)user;
    printf("bias 0x%lx\n", (unsigned long)info->dlpi_addr);
    return 1; /* the first is the program */
}

static void print_heap(void)
{
    char line[512];
    FILE *maps = fopen("/proc/self/maps", "re");
    while (maps && fgets(line, sizeof line, maps))
        if (strstr(line, "[heap]"))
            printf("heap begins 0x%s\n", strtok(line, "-"));
    if (maps)
        fclose(maps);
}

int main(int argc, char **argv)
{
    spanprof_error error;
    if (argc != 3 || spanprof_start(NULL, &error) != SPANPROF_OK) {
        fprintf(stderr, "%s\n", argc == 3 ? error.message : "names_work FIRST SECOND");
        return 1;
    }
    dl_iterate_phdr(print_bias, NULL);
    print_heap();
    wait_for_each();
    wait_in_known_plugin(argv[1]);
    wait_in_plugins_that_go(argv + 1);
    return spanprof_stop(UINT64_MAX) == SPANPROF_OK ? 0 : 1;
}
