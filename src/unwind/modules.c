/* SPDX-License-Identifier: Apache-2.0 */
/* Makes, publishes, retires and frees generations, on the collector thread. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "core/log.h"
#include "unwind/generation_sig.h"
#include "unwind/loader_snapshot.h"

void sp_module_acquire(sp_module *module)
{
    module->references++;
}

void sp_module_release(sp_module *module)
{
    if (--module->references)
        return;
    sp_table_shelf_give_back(module->shelved);
    free(module);
}

static sp_module *create_module(sp_modules *modules, const sp_module_image *image)
{
    size_t path_bytes = strlen(image->path) + 1, name_bytes = strlen(image->loader_name) + 1;
    sp_module *module = calloc(1, sizeof *module + path_bytes + name_bytes);
    if (!module)
        return NULL;
    module->start = image->start;
    module->end = image->end;
    module->bias = image->bias;
    module->file_offset = image->file_offset;
    module->frame_header = image->section.header_address;
    module->id = ++modules->next_module_id;
    module->is_from_start = modules->newest == NULL;
    module->build_id_length = image->build_id_length;
    memcpy(module->build_id, image->build_id, image->build_id_length);
    module->origin = image->origin;
    memcpy(module->path, image->path, path_bytes);
    module->loader_name = memcpy(module->path + path_bytes, image->loader_name, name_bytes);
    module->shelved = sp_table_shelf_take(&modules->shelf, image);
    module->table = sp_shelved_table_get(module->shelved);
    if (!module->table)
        sp_log_info("module", "compiling the unwind table of %s: no usable frame information",
                    module->path);
    return module;
}

#define CACHE_BYTES (SP_RULE_CACHE_ENTRIES * sizeof(uint64_t))

/* Mapped separately, because it lives as long as its generation, and many of its pages may never be
 * touched. NULL: memory is short. */
static _Atomic uint64_t *map_cache(void)
{
    void *cache =
        mmap(NULL, CACHE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return cache == MAP_FAILED ? NULL : cache;
}

static void destroy_generation(sp_generation *generation)
{
    if (!generation)
        return;
    for (uint32_t i = 0; i < generation->module_count; i++)
        sp_module_release(generation->modules[i]);
    if (generation->rule_cache)
        munmap((void *)generation->rule_cache, CACHE_BYTES);
    free(generation);
}

static int compare_modules(const void *left, const void *right)
{
    const sp_module *a = *(sp_module *const *)left, *b = *(sp_module *const *)right;
    return a->start < b->start ? -1 : a->start > b->start;
}

/* Lookup requires ranges that do not overlap. The loader never makes overlapping ones; a module
 * that overlaps is left out. */
static void drop_overlapping(sp_generation *generation)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < generation->module_count; i++) {
        sp_module *module = generation->modules[i];
        if (kept && module->start < generation->modules[kept - 1]->end)
            sp_module_release(module);
        else
            generation->modules[kept++] = module;
    }
    generation->module_count = kept;
}

static sp_generation *create_generation(sp_modules *modules, const sp_loader_snapshot *snapshot)
{
    sp_generation *generation =
        calloc(1, sizeof *generation + snapshot->image_count * sizeof(sp_module *));
    if (!generation)
        return NULL;
    generation->rules = &modules->rules;
    generation->rule_cache = map_cache();
    if (!generation->rule_cache) {
        destroy_generation(generation);
        return NULL;
    }
    for (size_t i = 0; i < snapshot->image_count; i++) {
        const sp_module_image *image = &snapshot->images[i];
        sp_module *module = image->known ? image->known : create_module(modules, image);
        if (!module) {
            destroy_generation(generation);
            return NULL;
        }
        sp_module_acquire(module);
        generation->modules[generation->module_count++] = module;
    }
    qsort(generation->modules, generation->module_count, sizeof(sp_module *), compare_modules);
    drop_overlapping(generation);
    generation->number = ++modules->next_number;
    generation->subs = snapshot->counters.subs;
    return generation;
}

/* Retire before publishing: a number in a ring must always lead to its generation. */
static void publish(sp_modules *modules, sp_generation *generation)
{
    if (modules->newest) {
        modules->newest->next = modules->retired;
        modules->retired = modules->newest;
    }
    modules->newest = generation;
    atomic_store(&modules->current, generation);
}

static bool make_generation(sp_modules *modules)
{
    sp_loader_counters before = {.adds = modules->adds, .subs = modules->subs};
    sp_loader_snapshot snapshot;
    sp_generation *generation = NULL;
    if (sp_loader_snapshot_take(&snapshot, modules->newest, before)) {
        generation = create_generation(modules, &snapshot);
        if (generation) {
            modules->adds = snapshot.counters.adds;
            modules->subs = snapshot.counters.subs;
            publish(modules, generation);
        }
        sp_loader_snapshot_deinit(&snapshot);
    }
    if (!generation)
        sp_log_warn("module", "listing the loaded libraries: out of memory; stacks through new "
                              "libraries will be cut short");
    return generation != NULL;
}

bool sp_modules_replace(sp_modules *modules, const sp_loader_snapshot *snapshot)
{
    sp_generation *generation = create_generation(modules, snapshot);
    if (generation)
        publish(modules, generation);
    return generation != NULL;
}

bool sp_modules_refresh(sp_modules *modules)
{
    sp_loader_counters now = sp_loader_counters_read();
    if (now.adds == modules->adds && now.subs == modules->subs)
        return false;
    return make_generation(modules);
}

/* A late signal reads `current` before it can detect that the run is over. So the struct is never
 * freed, only reused; the handler then acts on the value of `current` and on `armed`
 * (cpu/handler_sig.c). Only setup takes from the list, so no struct can be taken and put back while
 * another take is under way (no A-B-A problem). An abandoned collector may put at any moment. The
 * list has no lock, because a forked child could inherit a locked one. */
static _Atomic(sp_modules *) spare;

static sp_modules *take_spare(void)
{
    sp_modules *first = sp_load_acquire(&spare); /* pairs with put_spare */
    while (first && !atomic_compare_exchange_weak(&spare, &first, first->next_spare))
        ;
    return first;
}

static void put_spare(sp_modules *modules)
{
    modules->next_spare = sp_load_relaxed(&spare);
    while (!atomic_compare_exchange_weak(&spare, &modules->next_spare, modules))
        ;
}

static sp_modules *allocate_modules(void)
{
    sp_modules *modules = take_spare();
    if (!modules)
        return calloc(1, sizeof *modules);
    memset((char *)modules + sizeof modules->current, 0, sizeof *modules - sizeof modules->current);
    return modules;
}

/* MODULES has no generation any more. */
static void free_modules(sp_modules *modules)
{
    atomic_store(&modules->current, NULL);
    sp_table_shelf_deinit(&modules->shelf);
    sp_rule_pool_deinit(&modules->rules);
    put_spare(modules);
}

/* Made in advance by sp_modules_prepare, and taken by the next start. */
static sp_modules *prepared;

static void catch_up(sp_modules *modules)
{
    sp_modules_refresh(modules);
    sp_modules_reclaim(modules, UINT32_MAX); /* no handler has used the older ones */
}

bool sp_modules_prepare(void)
{
    if (prepared)
        catch_up(prepared);
    else
        prepared = sp_modules_create();
    return prepared != NULL;
}

static sp_modules *take_prepared(void)
{
    sp_modules *modules = prepared;
    prepared = NULL;
    catch_up(modules);
    return modules;
}

sp_modules *sp_modules_create(void)
{
    if (prepared)
        return take_prepared();
    sp_modules *modules = allocate_modules();
    if (!modules)
        return NULL;
    modules->shelf.pool = &modules->rules;
    if (sp_rule_pool_init(&modules->rules) && make_generation(modules))
        return modules;
    free_modules(modules);
    return NULL;
}

sp_modules *sp_modules_create_from(const sp_loader_snapshot *snapshot)
{
    sp_modules *modules = allocate_modules();
    if (!modules)
        return NULL;
    modules->shelf.pool = &modules->rules;
    if (sp_rule_pool_init(&modules->rules) && sp_modules_replace(modules, snapshot))
        return modules;
    free_modules(modules);
    return NULL;
}

void sp_modules_destroy(sp_modules *modules)
{
    if (!modules)
        return;
    sp_modules_reclaim(modules, UINT32_MAX);
    destroy_generation(modules->newest);
    free_modules(modules);
}

uint32_t sp_modules_newest_number(const sp_modules *modules)
{
    return modules->newest->number;
}

bool sp_modules_has_stayed(const sp_modules *modules, const sp_generation *generation,
                           const sp_module *module)
{
    return sp_generation_find(modules->newest, module->start) == module &&
           (module->is_from_start || modules->newest->subs == generation->subs);
}

const sp_generation *sp_modules_generation(const sp_modules *modules, uint32_t number)
{
    if (modules->newest->number == number)
        return modules->newest;
    for (const sp_generation *old = modules->retired; old; old = old->next)
        if (old->number == number)
            return old;
    return NULL;
}

uint32_t sp_modules_hazard_number(const sp_modules *modules, _Atomic(const sp_generation *) *hazard)
{
    const sp_generation *shown = atomic_load(hazard);
    if (shown == modules->newest)
        return modules->newest->number;
    for (const sp_generation *old = modules->retired; old; old = old->next)
        if (old == shown)
            return old->number;
    return UINT32_MAX;
}

void sp_modules_reclaim(sp_modules *modules, uint32_t oldest_in_use)
{
    sp_generation **link = &modules->retired;
    while (*link) {
        sp_generation *old = *link;
        if (old->number < oldest_in_use) {
            *link = old->next;
            destroy_generation(old);
        } else {
            link = &old->next;
        }
    }
}
