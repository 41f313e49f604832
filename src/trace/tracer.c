/* SPDX-License-Identifier: Apache-2.0 */
/* The tracers: one for each instrumentation scope, for the life of the process. Programs have a
 * few, so a list is enough; it only grows at its head, so a search takes no lock. */
#include <stdlib.h>
#include <string.h>

#include "core/lock.h"
#include "trace/struct_read.h"
#include "trace/trace_internal.h"
#include "trace/values.h"

enum { SCOPE_ATTRIBUTES_MAX = 128 };

spanprof_tracer sp_tracer_default = {.scope = {.name = "", .version = "", .schema_url = ""}};

static struct {
    sp_lock lock; /* taken only to add a tracer */
    _Atomic(spanprof_tracer *) newest;
} tracers = {.lock = SP_LOCK_AT(SP_LOCK_TRACERS), .newest = &sp_tracer_default};

/* --- which scopes are the same ---------------------------------------------------------------- */

static bool same_strings(const spanprof_attribute *a, const spanprof_attribute *b)
{
    for (uint32_t i = 0; i < a->count; i++)
        if (strcmp(a->value.string_array[i], b->value.string_array[i]) != 0)
            return false;
    return true;
}

/* A and B are stored attributes. Doubles are the same when their bits are the same. */
static bool same_attribute(const spanprof_attribute *a, const spanprof_attribute *b)
{
    if (strcmp(a->key, b->key) != 0 || a->type != b->type)
        return false;
    switch (a->type) {
    case SPANPROF_ATTRIBUTE_STRING:
        return strcmp(a->value.string_value, b->value.string_value) == 0;
    case SPANPROF_ATTRIBUTE_INT:
        return a->value.int_value == b->value.int_value;
    case SPANPROF_ATTRIBUTE_DOUBLE:
        return memcmp(&a->value, &b->value, sizeof(double)) == 0;
    case SPANPROF_ATTRIBUTE_BOOL:
        return a->value.bool_value == b->value.bool_value;
    case SPANPROF_ATTRIBUTE_STRING_ARRAY:
        return a->count == b->count && same_strings(a, b);
    case SPANPROF_ATTRIBUTE_INT_ARRAY:
    case SPANPROF_ATTRIBUTE_DOUBLE_ARRAY:
        return a->count == b->count &&
               memcmp(a->value.int_array, b->value.int_array, a->count * sizeof(int64_t)) == 0;
    case SPANPROF_ATTRIBUTE_BOOL_ARRAY:
        return a->count == b->count &&
               memcmp(a->value.bool_array, b->value.bool_array, a->count * sizeof(bool)) == 0;
    case SPANPROF_ATTRIBUTE_SIZED_STRING:
        break; /* stored as a string */
    }
    return false;
}

static bool same_scope(const sp_instrumentation_scope *a, const sp_instrumentation_scope *b)
{
    if (strcmp(a->name, b->name) != 0 || strcmp(a->version, b->version) != 0 ||
        strcmp(a->schema_url, b->schema_url) != 0 || a->attribute_count != b->attribute_count ||
        a->dropped_attributes_count != b->dropped_attributes_count)
        return false;
    for (uint32_t i = 0; i < a->attribute_count; i++)
        if (!same_attribute(&a->attributes[i], &b->attributes[i]))
            return false;
    return true;
}

static spanprof_tracer *find(const sp_instrumentation_scope *scope)
{
    spanprof_tracer *tracer = sp_load_acquire(&tracers.newest); /* pairs with the release in add */
    while (tracer && !same_scope(&tracer->scope, scope))
        tracer = tracer->next;
    return tracer;
}

/* --- new ones --------------------------------------------------------------------------------- */

static void destroy(spanprof_tracer *tracer)
{
    if (!tracer)
        return;
    sp_span_memory_deinit(&tracer->memory);
    free(tracer);
}

static int compare_keys(const void *a, const void *b)
{
    return strcmp(((const spanprof_attribute *)a)->key, ((const spanprof_attribute *)b)->key);
}

static void copy_attributes(spanprof_tracer *tracer, const spanprof_attribute *from, uint32_t count)
{
    uint32_t room = from ? (uint32_t)sp_min_u64(count, SCOPE_ATTRIBUTES_MAX) : 0;
    sp_attribute_list list = sp_attribute_list_make(&tracer->memory, room);
    sp_attribute_list_add(&tracer->memory, UINT32_MAX, &list, from, count);
    if (list.count)
        qsort(list.items, list.count, sizeof *list.items, compare_keys);
    tracer->scope.attributes = list.items;
    tracer->scope.attribute_count = list.count;
    tracer->scope.dropped_attributes_count = list.dropped;
}

/* A tracer for a copy of OPTIONS; NULL without memory. */
static spanprof_tracer *create(const spanprof_tracer_options *options)
{
    spanprof_tracer *tracer = calloc(1, sizeof *tracer);
    if (!tracer)
        return NULL;
    sp_instrumentation_scope *scope = &tracer->scope;
    scope->name = sp_text_copy(&tracer->memory, options->name);
    scope->version = sp_text_copy(&tracer->memory, options->version);
    scope->schema_url = sp_text_copy(&tracer->memory, options->schema_url);
    if (scope->name && scope->version && scope->schema_url) {
        copy_attributes(tracer, options->attributes, options->attribute_count);
        return tracer;
    }
    destroy(tracer);
    return NULL;
}

/* Add FRESH and return it. If a tracer with the same scope exists, destroy FRESH and return that
 * one. */
static spanprof_tracer *add(spanprof_tracer *fresh)
{
    sp_lock_take(&tracers.lock);
    spanprof_tracer *tracer = find(&fresh->scope);
    if (!tracer) {
        tracer = fresh;
        tracer->next = sp_load_relaxed(&tracers.newest);
        sp_store_release(&tracers.newest, tracer);
    }
    sp_lock_give(&tracers.lock);
    if (tracer != fresh)
        destroy(fresh);
    return tracer;
}

static spanprof_tracer *get(const spanprof_tracer_options *options)
{
    spanprof_tracer *fresh = create(options);
    return fresh ? add(fresh) : NULL;
}

spanprof_tracer *spanprof_tracer_get(const char *name, const char *version)
{
    const sp_instrumentation_scope scope = {
        .name = name ? name : "", .version = version ? version : "", .schema_url = ""};
    spanprof_tracer *tracer = find(&scope);
    if (tracer)
        return tracer;
    return get(&(spanprof_tracer_options){.name = scope.name, .version = scope.version});
}

spanprof_tracer *spanprof_tracer_get_with(const spanprof_tracer_options *options)
{
    spanprof_tracer_options known;
    if (!options || !SP_STRUCT_READ(&known, options, "spanprof_tracer_options"))
        return &sp_tracer_default;
    return get(&known);
}

void sp_tracer_table_after_fork(void)
{
    sp_lock_init(&tracers.lock, SP_LOCK_TRACERS);
}
