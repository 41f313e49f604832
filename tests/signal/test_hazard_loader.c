/* SPDX-License-Identifier: Apache-2.0 */
/* Ticks inside the loader, the allocator, and the first touch of thread-local storage: code with
 * locks that a handler must not want. */
#include "hazard.h"

#include <dlfcn.h>
#include <link.h>
#include <malloc.h>
#include <stdatomic.h>
#include <sys/wait.h>

static atomic_bool stopping;

static int visit(struct dl_phdr_info *info, size_t size, void *user)
{
    (void)info;
    (void)size;
    (void)user;
    spin(0.00002); /* with the loader's lock held */
    return 0;
}

/* The pause lets the loading thread have the lock: whether it gets it otherwise is a matter of
 * luck, and may take half a minute. */
static void *list_libraries(void *unused)
{
    while (!atomic_load(&stopping)) {
        SPANPROF_SPAN("listing")
            dl_iterate_phdr(visit, NULL);
        usleep(1);
    }
    return unused;
}

static void load_work_unload(void)
{
    void *handle = dlopen(HAZARD_PLUGIN, RTLD_NOW);
    CHECK(handle != NULL);
    int (*work)(int) = (int (*)(int))(uintptr_t)dlsym(handle, "hazard_plugin_work");
    CHECK(work != NULL);
    SPANPROF_SPAN("plugin")
        work(20000);
    CHECK_EQUAL(dlclose(handle), 0);
}

/* A flush each so many times: a collector that gets no core would have them all pile up. */
enum { LOADS_A_FLUSH = 100 };

static void load_many_times(unsigned count)
{
    for (unsigned i = 1; i <= count; i++) {
        load_work_unload();
        if (i % LOADS_A_FLUSH == 0)
            hazard_flushed_stats();
    }
}

static void load_flush_unload(unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        load_work_unload();
        hazard_flushed_stats();
    }
}

/* Each flush makes a generation of tables, with 128 KiB mapped for it: 200 that stay would be more
 * than the bound. Without wall time, whose thread holds generations, too. */
static int generations_are_freed(void)
{
    hazard_start(1000);
    load_flush_unload(20);
    long before = hazard_mapped_kib();
    load_flush_unload(200);
    long growth = hazard_mapped_kib() - before;
    hazard_stop();
    printf("%ld KiB more are mapped\n", growth);
    CHECK(growth < 20 * 1024);
    return 0;
}

/* Samples of the library outlive it, its unwind tables must outlive the samples, and neither may
 * pile up: a generation of tables has tens of KiB, so 1,000 that stay would be more than the bound.
 */
static int load_and_unload_many_times(void)
{
    unsigned count = hazard_many(1500, 1500, 200000);
    hazard_start(10000);
    pthread_t lister = hazard_thread(list_libraries, NULL);
    load_many_times(count / 3);
    long before = hazard_resident_kib();
    load_many_times(count - count / 3);
    long growth = hazard_resident_kib() - before;
    for (hazard_work work = hazard_work_of(0, 21); hazard_work_goes_on(&work);)
        load_work_unload();
    atomic_store(&stopping, true);
    pthread_join(lister, NULL);
    spanprof_stats stats = hazard_stop();
    printf("%llu ticks, %ld KiB grown\n", (unsigned long long)stats.ticks, growth);
    if (!HAZARD_ASAN) /* which keeps what was freed */
        hazard_within("KiB grown", growth > 0 ? (double)growth : 0, 0, 16 * 1024, 4 * 1024);
    return 0;
}

static void *touch_first(void *touch)
{
    CHECK(((int (*)(void))(uintptr_t)touch)() > 0);
    return NULL;
}

/* __tls_get_addr allocates a megabyte and copies the initial image into it, on each thread, with
 * ticks in the middle. */
static int first_touch_of_thread_local_storage(void)
{
    void *handle = dlopen(HAZARD_PLUGIN, RTLD_NOW);
    CHECK(handle != NULL);
    void *touch = dlsym(handle, "hazard_plugin_touch");
    CHECK(touch != NULL);
    hazard_start(10000);
    for (unsigned round = 0; round < hazard_many(100, 300, 20000); round++) {
        pthread_t threads[4];
        for (int i = 0; i < 4; i++)
            threads[i] = hazard_thread(touch_first, touch);
        for (int i = 0; i < 4; i++)
            pthread_join(threads[i], NULL);
    }
    hazard_stop();
    CHECK_EQUAL(dlclose(handle), 0);
    return 0;
}

/* The same on a thread that is known and armed, so that it is sampled all through: many libraries'
 * storage, one after the other. */
static void *touch_after_attach(void *touch)
{
    SPANPROF_SPAN("touching")
        return touch_first(touch);
    return NULL;
}

static int first_touch_under_a_span(void)
{
    hazard_start(10000);
    hazard_work work = hazard_work_of(0, 1);
    for (unsigned round = 0; round < hazard_many(100, 300, 20000) || hazard_work_goes_on(&work);
         round++) {
        void *handle = dlopen(HAZARD_PLUGIN, RTLD_NOW); /* a module id of its own each time */
        CHECK(handle != NULL);
        void *touch = dlsym(handle, "hazard_plugin_touch");
        pthread_join(hazard_thread(touch_after_attach, touch), NULL);
        CHECK_EQUAL(dlclose(handle), 0);
    }
    spanprof_stats stats = hazard_stop();
    printf("%llu ticks\n", (unsigned long long)stats.ticks);
    return 0;
}

static void *allocate_and_free(void *seed)
{
    void *blocks[64] = {NULL};
    uint64_t x = (uintptr_t)seed;
    while (!atomic_load(&stopping))
        SPANPROF_SPAN("allocating")
            for (int i = 0; i < 200; i++) {
                x = x * 6364136223846793005u + 1442695040888963407u;
                free(blocks[x >> 58]);
                blocks[x >> 58] = malloc(2000 + (x >> 40) % 60000); /* past the thread caches */
            }
    for (int i = 0; i < 64; i++)
        free(blocks[i]);
    return NULL;
}

/* One arena: its lock is nearly always held by one of them, and most ticks fall where it is. Forks
 * wait for it, and their children allocate. */
static int malloc_lock_is_held(void)
{
    if (HAZARD_ASAN)
        return hazard_skip("ASan has an allocator of its own, whose locks no fork gives back");
    mallopt(M_ARENA_MAX, 1);
    hazard_start(10000);
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        threads[i] = hazard_thread(allocate_and_free, (void *)(uintptr_t)(i + 1));
    for (unsigned round = 0; round < hazard_many(20, 100, 5000); round++) {
        pid_t child = fork();
        if (child == 0) {
            free(malloc(100000));
            _exit(0);
        }
        CHECK(child > 0);
        hazard_wait_well(child, HAZARD_PATIENCE_S);
    }
    hazard_burn_to_ticks(hazard_sized(0.05, 0.3), 51);
    atomic_store(&stopping, true);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    spanprof_stats stats = hazard_stop();
    printf("%llu ticks\n", (unsigned long long)stats.ticks);
    return 0;
}

int main(int argc, char **argv)
{
    static const hazard_case cases[] = {
        {"libraries_loaded_and_unloaded_under_ticks", load_and_unload_many_times, false},
        {"generations_are_freed", generations_are_freed, false},
        {"first_touch_of_thread_local_storage_on_new_threads", first_touch_of_thread_local_storage,
         false},
        {"first_touch_of_thread_local_storage_under_a_span", first_touch_under_a_span, false},
        {"malloc_lock_held_while_ticks_and_forks_come", malloc_lock_is_held, false},
    };
    return hazard_main(argc, argv, cases, sizeof cases / sizeof *cases);
}
