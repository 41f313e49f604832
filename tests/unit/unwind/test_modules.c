/* SPDX-License-Identifier: Apache-2.0 */
#include <dlfcn.h>
#include <gnu/libc-version.h>
#include <limits.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <pthread.h>
#include <link.h>
#include <sys/auxv.h>
#include <sys/wait.h>
#include <cmocka.h>

#include "unwind/generation_sig.h"
#include "unwind/loader_snapshot.h"
#include "libraries.h"

static sp_modules *modules;
static _Atomic(const sp_generation *) hazard;

static const sp_module *module_of(const void *address)
{
    const sp_generation *generation = sp_generation_enter(modules, &hazard);
    const sp_module *module = sp_generation_find(generation, (uint64_t)(uintptr_t)address);
    sp_generation_leave(&hazard);
    return module;
}

/* An address in libc itself: sanitizers have functions of their own in place of the better known
 * ones. */
static const void *in_libc(void)
{
    return (const void *)(uintptr_t)gnu_get_libc_version;
}

static void modules_created_list_executable_libc_and_vdso(void **state)
{
    (void)state;
    char path[PATH_MAX] = "";
    assert_true(readlink("/proc/self/exe", path, sizeof path - 1) > 0);
    const sp_module *own = module_of((const void *)(uintptr_t)module_of);
    assert_non_null(own);
    assert_string_equal(own->path, path);
    assert_non_null(own->table);
    const sp_module *libc = module_of(in_libc());
    assert_non_null(libc);
    assert_non_null(strstr(libc->path, "/libc.so"));
    assert_true(libc->build_id_length >= 16);
    assert_true(libc->table->row_count > 1000);
    assert_true(libc->start >= libc->bias);
    const void *vdso = (const void *)(uintptr_t)getauxval(AT_SYSINFO_EHDR);
    if (vdso) {
        assert_non_null(module_of(vdso));
        assert_string_equal(module_of(vdso)->path, "[vdso]");
        assert_non_null(module_of(vdso)->table);
    }
}

static void generation_is_sorted_without_overlaps(void **state)
{
    (void)state;
    const sp_generation *generation = sp_generation_enter(modules, &hazard);
    assert_true(generation->module_count >= 3);
    for (uint32_t i = 0; i < generation->module_count; i++) {
        const sp_module *module = generation->modules[i];
        assert_true(module->start < module->end);
        assert_true(i == 0 || generation->modules[i - 1]->end <= module->start);
        assert_ptr_equal(sp_generation_find(generation, module->start), module);
        assert_ptr_equal(sp_generation_find(generation, module->end - 1), module);
    }
    assert_null(sp_generation_find(generation, 0));
    assert_null(sp_generation_find(generation, UINT64_MAX));
    sp_generation_leave(&hazard);
}

static void refresh_without_change_keeps_the_generation(void **state)
{
    (void)state;
    const sp_generation *before = sp_generation_enter(modules, &hazard);
    sp_generation_leave(&hazard);
    for (int i = 0; i < 100; i++)
        assert_false(sp_modules_refresh(modules));
    assert_ptr_equal(sp_generation_enter(modules, &hazard), before);
    sp_generation_leave(&hazard);
}

static void refresh_after_dlopen_adds_the_library(void **state)
{
    (void)state;
    const sp_module *libc = module_of(in_libc());
    void *handle = open_library(SQLITE);
    const void *function = dlsym(handle, "sqlite3_open");
    assert_null(module_of(function));
    assert_true(sp_modules_refresh(modules));
    const sp_module *added = module_of(function);
    assert_non_null(added);
    assert_non_null(strstr(added->path, "libsqlite3"));
    assert_ptr_equal(module_of(in_libc()), libc); /* kept, not compiled again */
    dlclose(handle);
    assert_true(sp_modules_refresh(modules));
    assert_null(module_of(function));
    assert_ptr_equal(module_of(in_libc()), libc);
    sp_modules_reclaim(modules, UINT32_MAX);
}

static void library_loaded_anew_finds_its_table(void **state)
{
    (void)state;
    const sp_unwind_table *tables[2];
    for (int i = 0; i < 2; i++) {
        void *handle = open_library(SQLITE);
        assert_true(sp_modules_refresh(modules));
        tables[i] = module_of(dlsym(handle, "sqlite3_open"))->table;
        assert_non_null(tables[i]);
        dlclose(handle);
        assert_true(sp_modules_refresh(modules));
        sp_modules_reclaim(modules, UINT32_MAX);
    }
    assert_ptr_equal(tables[0], tables[1]);
}

/* An image like libc's, with BUILD_ID_LENGTH bytes of a build id of its own. */
static sp_module_image image_of_libc(const sp_loader_snapshot *snapshot, uint8_t build_id,
                                     uint32_t build_id_length)
{
    sp_module_image image = {0};
    for (size_t i = 0; i < snapshot->image_count; i++)
        if (strstr(snapshot->images[i].path, "/libc.so"))
            image = snapshot->images[i];
    image.build_id_length = build_id_length;
    memset(image.build_id, build_id, sizeof image.build_id);
    return image;
}

static void shelf_shares_tables_by_build_id_and_keeps_few_idle_ones(void **state)
{
    (void)state;
    enum { TABLES = 20 };
    sp_rule_pool pool;
    sp_loader_snapshot snapshot;
    assert_true(sp_rule_pool_init(&pool));
    assert_true(sp_loader_snapshot_take(&snapshot, NULL, (sp_loader_counters){0}));
    sp_table_shelf shelf = {.pool = &pool};
    sp_shelved_table *held[TABLES];
    for (uint8_t i = 0; i < TABLES; i++) {
        sp_module_image image = image_of_libc(&snapshot, i, 20);
        held[i] = sp_table_shelf_take(&shelf, &image);
        assert_non_null(held[i]);
        image.bias += 0x10000;
        image.start += 0x10000; /* elsewhere, as a whole */
        image.end += 0x10000;
        image.section.address += 0x10000;
        assert_ptr_equal(sp_table_shelf_take(&shelf, &image), held[i]);
        image.end += 0x1000;
        sp_shelved_table *longer = sp_table_shelf_take(&shelf, &image);
        assert_ptr_not_equal(longer, held[i]);
        sp_table_shelf_give_back(longer);
        sp_table_shelf_give_back(held[i]);
    }
    size_t one = sp_shelved_table_get(held[0])->bytes;
    assert_true(sp_table_shelf_bytes(&shelf) >= TABLES * one);
    sp_module_image nameless = image_of_libc(&snapshot, 0, 0);
    sp_shelved_table *first = sp_table_shelf_take(&shelf, &nameless);
    sp_shelved_table *second = sp_table_shelf_take(&shelf, &nameless);
    assert_ptr_not_equal(first, second);
    sp_table_shelf_give_back(first);
    sp_table_shelf_give_back(second);
    for (int i = 0; i < TABLES - 1; i++)
        sp_table_shelf_give_back(held[i]);
    assert_in_range(sp_table_shelf_bytes(&shelf), one, SP_SHELF_IDLE_BYTES + one);
    sp_module_image latest = image_of_libc(&snapshot, TABLES - 2, 20);
    assert_ptr_equal(sp_table_shelf_take(&shelf, &latest), held[TABLES - 2]);
    sp_table_shelf_give_back(held[TABLES - 2]);
    sp_table_shelf_deinit(&shelf);
    assert_int_equal(sp_shelved_table_get(held[TABLES - 1])->bytes, one); /* in use: lives on */
    sp_table_shelf_give_back(held[TABLES - 1]);
    sp_loader_snapshot_deinit(&snapshot);
    sp_rule_pool_deinit(&pool);
}

static uint32_t rule_by_table(const sp_generation *generation, uint64_t pc)
{
    const sp_module *module = sp_generation_find(generation, pc);
    uint16_t number =
        module ? sp_unwind_table_find(module->table, pc - module->start) : SP_RULE_NONE;
    return generation->rules->packed[number];
}

static uint32_t rule_by_cache(const sp_generation *generation, uint64_t behind)
{
    return sp_generation_rule(generation, behind) & ((1u << SP_PACKED_BITS) - 1);
}

/* Far more addresses than entries, so that they displace each other; near ones, and ones that share
 * an entry. */
static void rule_cache_answers_as_the_tables_do(void **state)
{
    (void)state;
    const sp_generation *generation = sp_generation_enter(modules, &hazard);
    const sp_module *libc = module_of(in_libc());
    uint64_t random = 1;
    for (int i = 0; i < 400000; i++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        uint64_t offset = (random >> 33) % (libc->end - libc->start);
        uint64_t pc = i % 4 ? libc->start + offset : libc->start + offset / 8192 * 8192;
        uint32_t expected = rule_by_table(generation, pc);
        assert_int_equal(rule_by_cache(generation, pc + 1), expected);
        assert_int_equal(rule_by_cache(generation, pc + 1), expected);
    }
    static const uint64_t outside[] = {
        0, 1, 8192, UINT64_C(1) << 47, UINT64_C(1) << 48, (UINT64_C(1) << 48) + 5, UINT64_MAX};
    for (size_t i = 0; i < SP_ARRAY_LENGTH(outside); i++)
        for (int twice = 0; twice < 2; twice++)
            assert_int_equal(rule_by_cache(generation, outside[i]),
                             sp_packed_of_number(SP_RULE_NONE));
    sp_generation_leave(&hazard);
}

static void packed_rule_expands_to_what_it_was(void **state)
{
    (void)state;
    const sp_generation *generation = sp_generation_enter(modules, &hazard);
    const sp_rule_pool *pool = generation->rules;
    uint32_t packed = 0;
    for (uint32_t number = 0; number < pool->numbers.count; number++) {
        sp_unwind_rule rule;
        if (pool->packed[number] & SP_PACKED_FLAG) {
            sp_packed_expand(pool->packed[number], &rule);
            assert_memory_equal(&rule, &pool->rules[number], sizeof rule);
            packed++;
        } else {
            assert_int_equal(sp_packed_number(pool->packed[number]), number);
        }
    }
    printf("%u of %u rules are packed\n", packed, pool->numbers.count);
    assert_true(packed > pool->numbers.count / 2);
    sp_generation_leave(&hazard);
}

static void reclaim_keeps_what_a_hazard_or_number_holds(void **state)
{
    (void)state;
    const sp_generation *held = sp_generation_enter(modules, &hazard);
    uint32_t number = held->number;
    void *handle = open_library(SQLITE);
    assert_true(sp_modules_refresh(modules));
    assert_int_equal(sp_modules_hazard_number(modules, &hazard), number);
    sp_modules_reclaim(modules, sp_modules_hazard_number(modules, &hazard));
    assert_ptr_equal(sp_modules_generation(modules, number), held);
    assert_true(held->module_count >= 3);
    sp_generation_leave(&hazard);
    assert_int_equal(sp_modules_hazard_number(modules, &hazard), UINT32_MAX);
    sp_modules_reclaim(modules, UINT32_MAX);
    assert_null(sp_modules_generation(modules, number));
    assert_non_null(sp_modules_generation(modules, number + 1));
    dlclose(handle);
    sp_modules_refresh(modules);
    sp_modules_reclaim(modules, UINT32_MAX);
}

static void hazard_that_shows_a_freed_generation_counts_as_none(void **state)
{
    (void)state;
    sp_store_relaxed(&hazard, (const sp_generation *)(uintptr_t)0xdead0);
    assert_int_equal(sp_modules_hazard_number(modules, &hazard), UINT32_MAX);
    sp_generation_leave(&hazard);
}

static void acquired_module_outlives_its_generations(void **state)
{
    (void)state;
    void *handle = open_library(SQLITE);
    assert_true(sp_modules_refresh(modules));
    sp_module *module = (sp_module *)module_of(dlsym(handle, "sqlite3_open"));
    assert_non_null(module);
    sp_module_acquire(module);
    dlclose(handle);
    assert_true(sp_modules_refresh(modules));
    sp_modules_reclaim(modules, UINT32_MAX);
    assert_int_equal(module->references, 1);
    assert_non_null(strstr(module->path, "libsqlite3"));
    sp_module_release(module);
}

/* A reader as a handler is, but on a thread of its own: it holds a generation while the main thread
 * makes and frees others. */
static atomic_bool reader_stop;
static atomic_uint reader_rounds;
static _Atomic(const sp_generation *) reader_hazard;

/* As a handler's code, this is not instrumented: the order that makes it right is in functions that
 * are not either. */
SP_SIGSAFE static bool read_generation(uint64_t pc)
{
    const sp_generation *generation = sp_generation_enter(modules, &reader_hazard);
    const sp_module *module = sp_generation_find(generation, pc);
    bool is_right = module && module->table;
    for (uint32_t i = 0; i < generation->module_count; i++)
        is_right &= generation->modules[i]->start < generation->modules[i]->end;
    sp_generation_leave(&reader_hazard);
    return is_right;
}

static void *read_generations(void *unused)
{
    (void)unused;
    while (!atomic_load(&reader_stop)) {
        if (!read_generation((uint64_t)(uintptr_t)read_generations))
            abort();
        atomic_fetch_add(&reader_rounds, 1);
    }
    return NULL;
}

static void dlopen_loop_frees_generations_under_a_reader(void **state)
{
    (void)state;
    pthread_t reader;
    uint32_t last = 0;
    assert_int_equal(pthread_create(&reader, NULL, read_generations, NULL), 0);
    while (atomic_load(&reader_rounds) == 0)
        sched_yield();
    for (int i = 0; i < 40; i++) {
        void *handle = open_library(SQLITE);
        assert_true(sp_modules_refresh(modules));
        sp_modules_reclaim(modules, sp_modules_hazard_number(modules, &reader_hazard));
        dlclose(handle);
        assert_true(sp_modules_refresh(modules));
        sp_modules_reclaim(modules, sp_modules_hazard_number(modules, &reader_hazard));
        const sp_generation *now = sp_generation_enter(modules, &hazard);
        assert_true(now->number > last);
        last = now->number;
        sp_generation_leave(&hazard);
    }
    atomic_store(&reader_stop, true);
    pthread_join(reader, NULL);
    sp_modules_reclaim(modules, UINT32_MAX);
    for (uint32_t number = 1; number < last; number++)
        assert_null(sp_modules_generation(modules, number));
}

/* A first generation that was made before has number 1; what has come since made a second one. */
static void prepared_modules_are_taken_once_by_the_next_create_or_a_childs(void **state)
{
    (void)state;
    assert_true(sp_modules_prepare());
    void *handle = open_library(SQLITE);
    pid_t child = fork();
    if (child == 0) {
        sp_modules *own = sp_modules_create();
        _exit(own && sp_modules_newest_number(own) == 2 ? 0 : 1);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    sp_modules *own = sp_modules_create();
    assert_int_equal(sp_modules_newest_number(own), 2);
    sp_modules_destroy(own);
    own = sp_modules_create();
    assert_int_equal(sp_modules_newest_number(own), 1);
    sp_modules_destroy(own);
    dlclose(handle);
}

static void *destroy_modules(void *argument)
{
    sp_modules_destroy(argument);
    return NULL;
}

/* So an abandoned collector does while the next run begins. */
static void modules_destroyed_by_another_thread_while_others_are_created_are_used_once(void **state)
{
    (void)state;
    for (int round = 0; round < 20; round++) {
        pthread_t thread;
        sp_modules *old = sp_modules_create();
        assert_int_equal(pthread_create(&thread, NULL, destroy_modules, old), 0);
        sp_modules *first = sp_modules_create();
        sp_modules *second = sp_modules_create();
        assert_true(first && second && first != second);
        pthread_join(thread, NULL);
        sp_modules_destroy(first);
        sp_modules_destroy(second);
    }
}

static int set_up(void **state)
{
    (void)state;
    modules = sp_modules_create();
    return modules ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    sp_modules_destroy(modules);
    return 0;
}

static _Atomic bool stop_looking;

static void *look_at_loader(void *unused)
{
    (void)unused;
    while (!sp_load_relaxed(&stop_looking))
        sp_loader_counters_read();
    return NULL;
}

static int visit_nothing(struct dl_phdr_info *info, size_t size, void *user)
{
    (void)info;
    (void)size;
    (void)user;
    return 0;
}

/* Without the guard a handful of these children hang. */
static void fork_while_the_loader_is_looked_at_leaves_no_lock_behind(void **state)
{
    (void)state;
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, look_at_loader, NULL), 0);
    for (int i = 0; i < 300; i++) {
        sp_loader_fork_prepare();
        pid_t child = fork();
        sp_loader_fork_done();
        if (child == 0) {
            alarm(300);
            dl_iterate_phdr(visit_nothing, NULL);
            sp_loader_counters_read();
            _exit(0);
        }
        int status = -1;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
    }
    sp_store_relaxed(&stop_looking, true);
    pthread_join(thread, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        /* First, because a fork takes the longer the more memory there is, most of all ASan's. */
        cmocka_unit_test(fork_while_the_loader_is_looked_at_leaves_no_lock_behind),
        cmocka_unit_test(modules_created_list_executable_libc_and_vdso),
        cmocka_unit_test(generation_is_sorted_without_overlaps),
        cmocka_unit_test(refresh_without_change_keeps_the_generation),
        cmocka_unit_test(refresh_after_dlopen_adds_the_library),
        cmocka_unit_test(library_loaded_anew_finds_its_table),
        cmocka_unit_test(shelf_shares_tables_by_build_id_and_keeps_few_idle_ones),
        cmocka_unit_test(rule_cache_answers_as_the_tables_do),
        cmocka_unit_test(packed_rule_expands_to_what_it_was),
        cmocka_unit_test(reclaim_keeps_what_a_hazard_or_number_holds),
        cmocka_unit_test(hazard_that_shows_a_freed_generation_counts_as_none),
        cmocka_unit_test(acquired_module_outlives_its_generations),
        cmocka_unit_test(dlopen_loop_frees_generations_under_a_reader),
        cmocka_unit_test(prepared_modules_are_taken_once_by_the_next_create_or_a_childs),
        cmocka_unit_test(
            modules_destroyed_by_another_thread_while_others_are_created_are_used_once),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
