/* SPDX-License-Identifier: Apache-2.0 */
#include "tool/model/merge_tables.h"

#include <stdlib.h>
#include <string.h>

#include "core/reach.h"

static const char *const table_names[SP_MERGE_TABLE_COUNT] = {
    "string_table", "mapping_table",   "location_table", "function_table",
    "link_table",   "attribute_table", "stack_table",
};

/* ---- entries ---- */

static int32_t fail(sp_merger *merger, const char *table, int32_t index)
{
    if (!merger->failed) {
        merger->failed_table = table;
        merger->failed_index = index;
    }
    merger->failed = true;
    return 0;
}

void *sp_merger_copy(sp_merger *merger, const void *message, size_t size)
{
    void *copy = sp_arena_memdup(merger->memory, message, size);
    if (!copy)
        fail(merger, NULL, 0);
    return copy;
}

/* Put ENTRY into the new table, unless an entry with the same KEY is there. Returns its number. */
static int32_t put(sp_merger *merger, sp_merge_table kind, void *entry, const void *key,
                   size_t length)
{
    sp_merged_table *table = &merger->tables[kind];
    bool is_new;
    uint32_t number = sp_intern_put(&table->keys, key, length, &is_new);
    if (number == SP_INTERN_FAILED || number > INT32_MAX ||
        !SP_REACH(table->entries, number, table->capacity, 256))
        return fail(merger, NULL, 0);
    if (is_new)
        table->entries[number] = entry;
    return (int32_t)number;
}

static int32_t put_message(sp_merger *merger, sp_merge_table kind, void *message)
{
    if (!message || merger->failed)
        return 0; /* an incomplete copy must not be packed */
    size_t length = protobuf_c_message_get_packed_size(message);
    uint8_t small[512];
    uint8_t *bytes = length <= sizeof small ? small : malloc(length);
    if (!bytes)
        return fail(merger, NULL, 0);
    protobuf_c_message_pack(message, bytes);
    int32_t number = put(merger, kind, message, bytes, length);
    if (bytes != small)
        free(bytes);
    return number;
}

void *sp_merger_pointers(sp_merger *merger, size_t count)
{
    void *list = sp_arena_array(merger->memory, count + 1, sizeof(void *));
    if (!list)
        fail(merger, NULL, 0);
    return list;
}

int32_t *sp_merger_map_list(sp_merger *merger, sp_merge_table kind, const int32_t *indices,
                            size_t count)
{
    int32_t *list = sp_arena_array(merger->memory, count ? count : 1, sizeof *list);
    if (!list)
        fail(merger, NULL, 0);
    for (size_t i = 0; list && i < count; i++)
        list[i] = sp_merger_map(merger, kind, indices[i]);
    return list;
}

/* ---- values with references to strings ---- */

static const char *text_at(sp_merger *merger, int32_t index)
{
    if (index == 0 && merger->source_counts[SP_MERGE_STRINGS] == 0)
        return "";
    if (index >= 0 && (size_t)index < merger->source_counts[SP_MERGE_STRINGS])
        return merger->sources[SP_MERGE_STRINGS][index];
    fail(merger, table_names[SP_MERGE_STRINGS], index);
    return "";
}

static Sp__Common__AnyValue *plain_value(sp_merger *merger, const Sp__Common__AnyValue *from)
{
    Sp__Common__AnyValue *value = from ? sp_merger_copy(merger, from, sizeof *from) : NULL;
    if (!value)
        return NULL;
    if (value->value_case == SP__COMMON__ANY_VALUE__VALUE_STRING_VALUE_STRINDEX) {
        const char *text = text_at(merger, value->string_value_strindex);
        value->value_case = SP__COMMON__ANY_VALUE__VALUE_STRING_VALUE;
        value->string_value = (char *)text;
    } else if (value->value_case == SP__COMMON__ANY_VALUE__VALUE_ARRAY_VALUE) {
        Sp__Common__ArrayValue *array =
            sp_merger_copy(merger, value->array_value, sizeof *value->array_value);
        Sp__Common__AnyValue **items =
            array ? sp_arena_array(merger->memory, array->n_values + 1, sizeof *items) : NULL;
        for (size_t i = 0; items && i < array->n_values; i++)
            items[i] = plain_value(merger, array->values[i]);
        if (items)
            array->values = items;
        value->array_value = array;
    } else if (value->value_case == SP__COMMON__ANY_VALUE__VALUE_KVLIST_VALUE) {
        Sp__Common__KeyValueList *list =
            sp_merger_copy(merger, value->kvlist_value, sizeof *value->kvlist_value);
        if (list)
            list->values = sp_merger_attributes(merger, list->values, list->n_values);
        value->kvlist_value = list;
    }
    return value;
}

Sp__Common__KeyValue **sp_merger_attributes(sp_merger *merger, Sp__Common__KeyValue *const *from,
                                            size_t count)
{
    Sp__Common__KeyValue **list = sp_arena_array(merger->memory, count + 1, sizeof *list);
    if (!list)
        fail(merger, NULL, 0);
    for (size_t i = 0; list && i < count; i++) {
        list[i] = sp_merger_copy(merger, from[i], sizeof *from[i]);
        if (!list[i])
            return list;
        list[i]->value = plain_value(merger, from[i]->value);
        if (list[i]->key_strindex != 0 && !(list[i]->key && *list[i]->key))
            list[i]->key = (char *)text_at(merger, list[i]->key_strindex);
        list[i]->key_strindex = 0; /* if both are set, the text counts, as in all our readers */
    }
    return list;
}

/* ---- for each table a function that copies an entry with new indices ---- */

static int32_t map_mapping(sp_merger *merger, const Sp__Profiles__Mapping *from)
{
    Sp__Profiles__Mapping *to = sp_merger_copy(merger, from, sizeof *from);
    if (!to)
        return 0;
    to->filename_strindex = sp_merger_map(merger, SP_MERGE_STRINGS, from->filename_strindex);
    to->attribute_indices = sp_merger_map_list(merger, SP_MERGE_ATTRIBUTES, from->attribute_indices,
                                               from->n_attribute_indices);
    return put_message(merger, SP_MERGE_MAPPINGS, to);
}

static int32_t map_location(sp_merger *merger, const Sp__Profiles__Location *from)
{
    Sp__Profiles__Location *to = sp_merger_copy(merger, from, sizeof *from);
    if (!to)
        return 0;
    to->mapping_index = sp_merger_map(merger, SP_MERGE_MAPPINGS, from->mapping_index);
    to->attribute_indices = sp_merger_map_list(merger, SP_MERGE_ATTRIBUTES, from->attribute_indices,
                                               from->n_attribute_indices);
    to->lines = sp_arena_array(merger->memory, from->n_lines + 1, sizeof *to->lines);
    for (size_t i = 0; to->lines && i < from->n_lines; i++) {
        to->lines[i] = sp_merger_copy(merger, from->lines[i], sizeof *from->lines[i]);
        if (to->lines[i])
            to->lines[i]->function_index =
                sp_merger_map(merger, SP_MERGE_FUNCTIONS, from->lines[i]->function_index);
    }
    if (!to->lines)
        return fail(merger, NULL, 0);
    return put_message(merger, SP_MERGE_LOCATIONS, to);
}

static int32_t map_function(sp_merger *merger, const Sp__Profiles__Function *from)
{
    Sp__Profiles__Function *to = sp_merger_copy(merger, from, sizeof *from);
    if (!to)
        return 0;
    to->name_strindex = sp_merger_map(merger, SP_MERGE_STRINGS, from->name_strindex);
    to->system_name_strindex = sp_merger_map(merger, SP_MERGE_STRINGS, from->system_name_strindex);
    to->filename_strindex = sp_merger_map(merger, SP_MERGE_STRINGS, from->filename_strindex);
    return put_message(merger, SP_MERGE_FUNCTIONS, to);
}

static int32_t map_attribute(sp_merger *merger, const Sp__Profiles__KeyValueAndUnit *from)
{
    Sp__Profiles__KeyValueAndUnit *to = sp_merger_copy(merger, from, sizeof *from);
    if (!to)
        return 0;
    to->key_strindex = sp_merger_map(merger, SP_MERGE_STRINGS, from->key_strindex);
    to->unit_strindex = sp_merger_map(merger, SP_MERGE_STRINGS, from->unit_strindex);
    to->value = plain_value(merger, from->value);
    return put_message(merger, SP_MERGE_ATTRIBUTES, to);
}

static int32_t map_stack(sp_merger *merger, const Sp__Profiles__Stack *from)
{
    Sp__Profiles__Stack *to = sp_merger_copy(merger, from, sizeof *from);
    if (!to)
        return 0;
    to->location_indices = sp_merger_map_list(merger, SP_MERGE_LOCATIONS, from->location_indices,
                                              from->n_location_indices);
    return put_message(merger, SP_MERGE_STACKS, to);
}

/* Copy ENTRY of the document's table, with new indices, into the new table. Returns its number. */
static int32_t map_entry(sp_merger *merger, sp_merge_table kind, void *entry)
{
    switch (kind) {
    case SP_MERGE_STRINGS:
        return put(merger, SP_MERGE_STRINGS, entry, entry, strlen(entry));
    case SP_MERGE_MAPPINGS:
        return map_mapping(merger, entry);
    case SP_MERGE_LOCATIONS:
        return map_location(merger, entry);
    case SP_MERGE_FUNCTIONS:
        return map_function(merger, entry);
    case SP_MERGE_LINKS:
        return put_message(merger, SP_MERGE_LINKS, entry);
    case SP_MERGE_ATTRIBUTES:
        return map_attribute(merger, entry);
    case SP_MERGE_STACKS:
        return map_stack(merger, entry);
    case SP_MERGE_TABLE_COUNT:
        break;
    }
    return 0;
}

/* Whether index 0 means "none", as in a correct file. Some writers put a real entry there, and our
 * commands show it. Then the entry is kept, but not at index 0, where the zero value is. Index 0 of
 * links always means "none", because all readers treat a sample with link 0 as one without a
 * link. */
static bool is_none(const sp_merger *merger, sp_merge_table kind)
{
    if (merger->source_counts[kind] == 0 || kind == SP_MERGE_LINKS)
        return true;
    const void *entry = merger->sources[kind][0];
    return kind == SP_MERGE_STRINGS ? *(const char *)entry == 0
                                    : protobuf_c_message_get_packed_size(entry) == 0;
}

int32_t sp_merger_map(sp_merger *merger, sp_merge_table kind, int32_t index)
{
    if (index == 0 && is_none(merger, kind))
        return 0;
    if (index < 0 || (size_t)index >= merger->source_counts[kind])
        return fail(merger, table_names[kind], index);
    uint32_t *number = &merger->numbers[kind][index];
    if (*number == 0)
        *number = (uint32_t)map_entry(merger, kind, merger->sources[kind][index]) + 1;
    return (int32_t)(*number - 1);
}

/* Make the zero value entry 0 of every table. */
void sp_merger_begin(sp_merger *merger)
{
    static Sp__Profiles__Mapping mapping = SP__PROFILES__MAPPING__INIT;
    static Sp__Profiles__Location location = SP__PROFILES__LOCATION__INIT;
    static Sp__Profiles__Function function = SP__PROFILES__FUNCTION__INIT;
    static Sp__Profiles__Link link = SP__PROFILES__LINK__INIT;
    static Sp__Profiles__KeyValueAndUnit attribute = SP__PROFILES__KEY_VALUE_AND_UNIT__INIT;
    static Sp__Profiles__Stack stack = SP__PROFILES__STACK__INIT;
    static char empty[] = "";
    put(merger, SP_MERGE_STRINGS, empty, "", 0);
    put_message(merger, SP_MERGE_MAPPINGS, &mapping);
    put_message(merger, SP_MERGE_LOCATIONS, &location);
    put_message(merger, SP_MERGE_FUNCTIONS, &function);
    put_message(merger, SP_MERGE_LINKS, &link);
    put_message(merger, SP_MERGE_ATTRIBUTES, &attribute);
    put_message(merger, SP_MERGE_STACKS, &stack);
}

bool sp_merger_enter(sp_merger *merger, const sp_document *document)
{
    static const Sp__Profiles__ProfilesDictionary empty = SP__PROFILES__PROFILES_DICTIONARY__INIT;
    const Sp__Profiles__ProfilesData *data = (const Sp__Profiles__ProfilesData *)document->message;
    const Sp__Profiles__ProfilesDictionary *d = data->dictionary ? data->dictionary : &empty;
    void *const *sources[SP_MERGE_TABLE_COUNT] = {
        (void *const *)d->string_table,   (void *const *)d->mapping_table,
        (void *const *)d->location_table, (void *const *)d->function_table,
        (void *const *)d->link_table,     (void *const *)d->attribute_table,
        (void *const *)d->stack_table};
    size_t counts[SP_MERGE_TABLE_COUNT] = {
        d->n_string_table, d->n_mapping_table,   d->n_location_table, d->n_function_table,
        d->n_link_table,   d->n_attribute_table, d->n_stack_table};
    merger->document = document;
    for (int kind = 0; kind < SP_MERGE_TABLE_COUNT; kind++) {
        merger->sources[kind] = sources[kind];
        merger->source_counts[kind] = counts[kind];
        merger->numbers[kind] =
            sp_arena_array(merger->memory, counts[kind] + 1, sizeof **merger->numbers);
        if (!merger->numbers[kind])
            fail(merger, NULL, 0);
    }
    return !merger->failed;
}

/* Return the new tables as a dictionary in the merger's arena. */
Sp__Profiles__ProfilesDictionary *sp_merger_take(sp_merger *merger)
{
    static const Sp__Profiles__ProfilesDictionary empty = SP__PROFILES__PROFILES_DICTIONARY__INIT;
    Sp__Profiles__ProfilesDictionary *d = sp_merger_copy(merger, &empty, sizeof empty);
    void *lists[SP_MERGE_TABLE_COUNT];
    for (int kind = 0; kind < SP_MERGE_TABLE_COUNT; kind++) {
        sp_merged_table *table = &merger->tables[kind];
        lists[kind] = sp_merger_copy(merger, table->entries, table->keys.count * sizeof(void *));
    }
    if (merger->failed)
        return NULL;
    d->string_table = lists[SP_MERGE_STRINGS];
    d->n_string_table = merger->tables[SP_MERGE_STRINGS].keys.count;
    d->mapping_table = lists[SP_MERGE_MAPPINGS];
    d->n_mapping_table = merger->tables[SP_MERGE_MAPPINGS].keys.count;
    d->location_table = lists[SP_MERGE_LOCATIONS];
    d->n_location_table = merger->tables[SP_MERGE_LOCATIONS].keys.count;
    d->function_table = lists[SP_MERGE_FUNCTIONS];
    d->n_function_table = merger->tables[SP_MERGE_FUNCTIONS].keys.count;
    d->link_table = lists[SP_MERGE_LINKS];
    d->n_link_table = merger->tables[SP_MERGE_LINKS].keys.count;
    d->attribute_table = lists[SP_MERGE_ATTRIBUTES];
    d->n_attribute_table = merger->tables[SP_MERGE_ATTRIBUTES].keys.count;
    d->stack_table = lists[SP_MERGE_STACKS];
    d->n_stack_table = merger->tables[SP_MERGE_STACKS].keys.count;
    return d;
}

void sp_merger_deinit(sp_merger *merger)
{
    for (int kind = 0; kind < SP_MERGE_TABLE_COUNT; kind++) {
        sp_intern_deinit(&merger->tables[kind].keys);
        free(merger->tables[kind].entries);
    }
}
