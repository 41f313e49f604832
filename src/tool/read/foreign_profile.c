/* SPDX-License-Identifier: Apache-2.0 */
#include "tool/read/foreign_profile.h"

#include <stdlib.h>
#include <string.h>

#include "core/reach.h"
#include "core/utf8.h"
#include "proto/profiles.pb-c.h"

/* The key of a location is this head, followed by the lines. */
typedef struct location_head {
    uint64_t address;
    int64_t mapping;
} location_head;

/* The limit of a location's key: about 699,000 lines. */
#define MAX_KEY_BYTES ((size_t)16 << 20)

static int32_t put(sp_foreign *foreign, sp_intern *table, const void *key, size_t length)
{
    uint32_t number = sp_intern_put(table, key, length, NULL);
    if (number <= INT32_MAX)
        return (int32_t)number;
    foreign->failed = true;
    return 0;
}

void sp_foreign_init(sp_foreign *foreign, sp_arena *memory)
{
    static const char zeros[64];
    *foreign = (sp_foreign){.memory = memory, .key = SP_BUFFER_INIT(MAX_KEY_BYTES)};
    put(foreign, &foreign->strings, "", 0);
    put(foreign, &foreign->mappings, zeros, sizeof(sp_foreign_mapping));
    put(foreign, &foreign->locations, zeros, sizeof(location_head));
    put(foreign, &foreign->functions, zeros, sizeof(sp_foreign_function));
    put(foreign, &foreign->links, zeros, sizeof(sp_foreign_link));
    put(foreign, &foreign->attributes, zeros, sizeof(sp_foreign_attribute));
    put(foreign, &foreign->stacks, "", 0);
}

void sp_foreign_deinit(sp_foreign *foreign)
{
    sp_intern_deinit(&foreign->strings);
    sp_intern_deinit(&foreign->mappings);
    sp_intern_deinit(&foreign->locations);
    sp_intern_deinit(&foreign->functions);
    sp_intern_deinit(&foreign->links);
    sp_intern_deinit(&foreign->attributes);
    sp_intern_deinit(&foreign->stacks);
    sp_buffer_deinit(&foreign->key);
}

int32_t sp_foreign_string(sp_foreign *foreign, const char *text, size_t length)
{
    if (sp_utf8_valid(text, length))
        return put(foreign, &foreign->strings, text, length);
    char *repaired = malloc(3 * length + 1);
    if (!repaired) {
        foreign->failed = true;
        return 0;
    }
    size_t repaired_length = sp_utf8_repair(repaired, text, length);
    int32_t number = put(foreign, &foreign->strings, repaired, repaired_length);
    free(repaired);
    return number;
}

int32_t sp_foreign_mapping_put(sp_foreign *foreign, const sp_foreign_mapping *mapping)
{
    return put(foreign, &foreign->mappings, mapping, sizeof *mapping);
}

int32_t sp_foreign_function_put(sp_foreign *foreign, const sp_foreign_function *function)
{
    return put(foreign, &foreign->functions, function, sizeof *function);
}

int32_t sp_foreign_location(sp_foreign *foreign, int32_t mapping, uint64_t address,
                            const sp_foreign_line *lines, size_t count)
{
    location_head head = {.address = address, .mapping = mapping};
    sp_buffer_clear(&foreign->key);
    sp_buffer_add(&foreign->key, &head, sizeof head);
    if (count)
        sp_buffer_add(&foreign->key, lines, count * sizeof *lines);
    foreign->failed |= foreign->key.failed;
    return foreign->failed
               ? 0
               : put(foreign, &foreign->locations, foreign->key.data, foreign->key.length);
}

int32_t sp_foreign_stack(sp_foreign *foreign, const int32_t *locations, size_t count)
{
    return put(foreign, &foreign->stacks, count ? (const void *)locations : "",
               count * sizeof *locations);
}

int32_t sp_foreign_attribute_put(sp_foreign *foreign, const sp_foreign_attribute *attribute)
{
    return put(foreign, &foreign->attributes, attribute, sizeof *attribute);
}

int32_t sp_foreign_link_put(sp_foreign *foreign, const sp_foreign_link *link)
{
    static const uint8_t none[8];
    if (memcmp(link->span_id, none, sizeof none) == 0)
        return 0;
    return put(foreign, &foreign->links, link, sizeof *link);
}

void sp_foreign_add(sp_foreign *foreign, sp_foreign_profile *profile,
                    const sp_foreign_sample *sample)
{
    if (SP_REACH(profile->samples, profile->count, profile->capacity, 256))
        profile->samples[profile->count++] = *sample;
    else
        foreign->failed = true;
}

/* ---- the request ---- */

/* Make COUNT messages of SIZE bytes, each a copy of INITIAL. Returns an array of pointers to them,
 * or NULL. */
static void *make(sp_foreign *foreign, size_t count, size_t size, const void *initial)
{
    void **pointers = sp_arena_array(foreign->memory, count ? count : 1, sizeof *pointers);
    char *items = sp_arena_array(foreign->memory, count ? count : 1, size);
    for (size_t i = 0; pointers && items && i < count; i++)
        pointers[i] = memcpy(items + i * size, initial, size);
    return items ? pointers : NULL;
}

#define MAKE(type, INIT, count) (type **)make(foreign, (count), sizeof(type), &(const type)INIT)

static ProtobufCBinaryData id_bytes(const uint8_t *id, size_t length)
{
    return (ProtobufCBinaryData){.len = length, .data = (uint8_t *)(uintptr_t)id};
}

/* A copy of TABLE's key NUMBER in the request's memory. */
static void *keep_key(sp_foreign *foreign, const sp_intern *table, uint32_t number)
{
    const sp_intern_entry *entry = &table->entries[number];
    return sp_arena_memdup(foreign->memory, entry->key, (size_t)entry->length + 1);
}

static char **make_strings(sp_foreign *foreign)
{
    uint32_t count = foreign->strings.count;
    char **strings = sp_arena_array(foreign->memory, count, sizeof *strings);
    for (uint32_t i = 0; strings && i < count; i++)
        strings[i] = keep_key(foreign, &foreign->strings, i);
    return strings;
}

static Sp__Profiles__Mapping **make_mappings(sp_foreign *foreign)
{
    uint32_t count = foreign->mappings.count;
    Sp__Profiles__Mapping **all = MAKE(Sp__Profiles__Mapping, SP__PROFILES__MAPPING__INIT, count);
    for (uint32_t i = 0; all && i < count; i++) {
        sp_foreign_mapping *key = keep_key(foreign, &foreign->mappings, i);
        if (!key)
            return NULL;
        all[i]->memory_start = key->start;
        all[i]->memory_limit = key->limit;
        all[i]->file_offset = key->offset;
        all[i]->filename_strindex = key->file;
        all[i]->attribute_indices = &key->build_id;
        all[i]->n_attribute_indices = key->build_id != 0;
    }
    return all;
}

static Sp__Profiles__Function **make_functions(sp_foreign *foreign)
{
    uint32_t count = foreign->functions.count;
    Sp__Profiles__Function **all =
        MAKE(Sp__Profiles__Function, SP__PROFILES__FUNCTION__INIT, count);
    for (uint32_t i = 0; all && i < count; i++) {
        const sp_foreign_function *key = sp_intern_key(&foreign->functions, i);
        all[i]->name_strindex = key->name;
        all[i]->system_name_strindex = key->system_name;
        all[i]->filename_strindex = key->file;
        all[i]->start_line = key->start_line;
    }
    return all;
}

static bool make_lines(sp_foreign *foreign, Sp__Profiles__Location *location,
                       const sp_intern_entry *entry)
{
    const sp_foreign_line *lines = (const void *)((const char *)entry->key + sizeof(location_head));
    location->n_lines = (entry->length - sizeof(location_head)) / sizeof *lines;
    location->lines = MAKE(Sp__Profiles__Line, SP__PROFILES__LINE__INIT, location->n_lines);
    for (size_t i = 0; location->lines && i < location->n_lines; i++) {
        location->lines[i]->function_index = (int32_t)lines[i].function;
        location->lines[i]->line = lines[i].line;
        location->lines[i]->column = lines[i].column;
    }
    return location->lines;
}

static Sp__Profiles__Location **make_locations(sp_foreign *foreign)
{
    uint32_t count = foreign->locations.count;
    Sp__Profiles__Location **all =
        MAKE(Sp__Profiles__Location, SP__PROFILES__LOCATION__INIT, count);
    for (uint32_t i = 0; all && i < count; i++) {
        const sp_intern_entry *entry = &foreign->locations.entries[i];
        const location_head *head = entry->key;
        all[i]->address = head->address;
        all[i]->mapping_index = (int32_t)head->mapping;
        if (!make_lines(foreign, all[i], entry))
            return NULL;
    }
    return all;
}

static Sp__Profiles__Link **make_links(sp_foreign *foreign)
{
    uint32_t count = foreign->links.count;
    Sp__Profiles__Link **all = MAKE(Sp__Profiles__Link, SP__PROFILES__LINK__INIT, count);
    for (uint32_t i = 1; all && i < count; i++) {
        const sp_foreign_link *key = keep_key(foreign, &foreign->links, i);
        if (!key)
            return NULL;
        all[i]->trace_id = id_bytes(key->trace_id, sizeof key->trace_id);
        all[i]->span_id = id_bytes(key->span_id, sizeof key->span_id);
    }
    return all;
}

static Sp__Profiles__Stack **make_stacks(sp_foreign *foreign)
{
    uint32_t count = foreign->stacks.count;
    Sp__Profiles__Stack **all = MAKE(Sp__Profiles__Stack, SP__PROFILES__STACK__INIT, count);
    for (uint32_t i = 0; all && i < count; i++) {
        all[i]->location_indices = keep_key(foreign, &foreign->stacks, i);
        all[i]->n_location_indices = foreign->stacks.entries[i].length / sizeof(int32_t);
    }
    return all;
}

static Sp__Profiles__KeyValueAndUnit **make_attributes(sp_foreign *foreign, char *const *strings)
{
    uint32_t count = foreign->attributes.count;
    Sp__Profiles__KeyValueAndUnit **all =
        MAKE(Sp__Profiles__KeyValueAndUnit, SP__PROFILES__KEY_VALUE_AND_UNIT__INIT, count);
    Sp__Common__AnyValue **values = MAKE(Sp__Common__AnyValue, SP__COMMON__ANY_VALUE__INIT, count);
    for (uint32_t i = 1; strings && all && values && i < count; i++) {
        const sp_foreign_attribute *key = sp_intern_key(&foreign->attributes, i);
        all[i]->key_strindex = key->key;
        all[i]->unit_strindex = key->unit;
        all[i]->value = values[i];
        values[i]->value_case = key->is_text ? SP__COMMON__ANY_VALUE__VALUE_STRING_VALUE
                                             : SP__COMMON__ANY_VALUE__VALUE_INT_VALUE;
        if (key->is_text)
            values[i]->string_value = strings[key->text];
        else
            values[i]->int_value = key->number;
    }
    return values ? all : NULL;
}

static Sp__Profiles__ProfilesDictionary *make_dictionary(sp_foreign *foreign)
{
    Sp__Profiles__ProfilesDictionary **made =
        MAKE(Sp__Profiles__ProfilesDictionary, SP__PROFILES__PROFILES_DICTIONARY__INIT, 1);
    if (!made)
        return NULL;
    Sp__Profiles__ProfilesDictionary *d = made[0];
    d->string_table = make_strings(foreign);
    d->n_string_table = foreign->strings.count;
    d->mapping_table = make_mappings(foreign);
    d->n_mapping_table = foreign->mappings.count;
    d->location_table = make_locations(foreign);
    d->n_location_table = foreign->locations.count;
    d->function_table = make_functions(foreign);
    d->n_function_table = foreign->functions.count;
    d->link_table = make_links(foreign);
    d->n_link_table = foreign->links.count;
    d->attribute_table = make_attributes(foreign, d->string_table);
    d->n_attribute_table = foreign->attributes.count;
    d->stack_table = make_stacks(foreign);
    d->n_stack_table = foreign->stacks.count;
    return d;
}

static Sp__Profiles__ValueType *make_type(sp_foreign *foreign, int32_t type, int32_t unit)
{
    Sp__Profiles__ValueType **made =
        MAKE(Sp__Profiles__ValueType, SP__PROFILES__VALUE_TYPE__INIT, 1);
    if (!made)
        return NULL;
    made[0]->type_strindex = type;
    made[0]->unit_strindex = unit;
    return made[0];
}

static bool make_samples(sp_foreign *foreign, Sp__Profiles__Profile *to,
                         const sp_foreign_profile *from)
{
    int64_t *values = sp_arena_array(foreign->memory, from->count + 1, sizeof *values);
    to->samples = MAKE(Sp__Profiles__Sample, SP__PROFILES__SAMPLE__INIT, from->count);
    to->n_samples = from->count;
    for (size_t i = 0; values && to->samples && i < from->count; i++) {
        const sp_foreign_sample *sample = &from->samples[i];
        values[i] = sample->value;
        to->samples[i]->stack_index = sample->stack;
        to->samples[i]->link_index = sample->link;
        to->samples[i]->attribute_indices = sample->attributes;
        to->samples[i]->n_attribute_indices = sample->attribute_count;
        to->samples[i]->values = &values[i];
        to->samples[i]->n_values = 1;
    }
    return values && to->samples;
}

static bool make_profile(sp_foreign *foreign, Sp__Profiles__Profile *to,
                         const sp_foreign_profile *from)
{
    to->time_unix_nano = from->time_ns;
    to->duration_nano = from->duration_ns;
    to->period = from->period;
    to->sample_type = make_type(foreign, from->type, from->unit);
    if (from->period_type)
        to->period_type = make_type(foreign, from->period_type, from->period_unit);
    return make_samples(foreign, to, from);
}

ProtobufCMessage *sp_foreign_take(sp_foreign *foreign, const sp_foreign_profile *profiles,
                                  size_t count)
{
    if (foreign->failed)
        return NULL;
    Sp__Profiles__ProfilesData **data =
        MAKE(Sp__Profiles__ProfilesData, SP__PROFILES__PROFILES_DATA__INIT, 1);
    Sp__Profiles__ResourceProfiles **resource =
        MAKE(Sp__Profiles__ResourceProfiles, SP__PROFILES__RESOURCE_PROFILES__INIT, 1);
    Sp__Profiles__ScopeProfiles **scope =
        MAKE(Sp__Profiles__ScopeProfiles, SP__PROFILES__SCOPE_PROFILES__INIT, 1);
    Sp__Profiles__Profile **made = MAKE(Sp__Profiles__Profile, SP__PROFILES__PROFILE__INIT, count);
    if (!data || !resource || !scope || !made)
        return NULL;
    for (size_t i = 0; i < count; i++)
        if (!make_profile(foreign, made[i], &profiles[i]))
            return NULL;
    scope[0]->profiles = made;
    scope[0]->n_profiles = count;
    resource[0]->scope_profiles = scope;
    resource[0]->n_scope_profiles = 1;
    data[0]->resource_profiles = resource;
    data[0]->n_resource_profiles = 1;
    data[0]->dictionary = make_dictionary(foreign);
    return data[0]->dictionary && !foreign->memory->failed ? &data[0]->base : NULL;
}
