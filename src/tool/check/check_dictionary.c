/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tool/check/check.h"

const char *const sp_table_names[SP_TABLE_COUNT] = {
    "string_table", "mapping_table",   "location_table", "function_table",
    "link_table",   "attribute_table", "stack_table",
};

/* ---- indices ---- */

bool sp_tables_use(sp_tables *tables, sp_table table, int32_t index, const sp_place *place)
{
    if (index >= 0 && (size_t)index < tables->counts[table]) {
        tables->used[table][index] = true;
        return true;
    }
    /* Index 0 means none. A missing entry 0 is reported once, for the table. */
    if (index != 0)
        sp_check_violation(tables->checker, "index-range", place,
                           "leads to %s[%" PRId32 "], which has %zu entries", sp_table_names[table],
                           index, tables->counts[table]);
    return false;
}

const char *sp_tables_string(const sp_tables *tables, int32_t index)
{
    return index >= 0 && (size_t)index < tables->counts[SP_TABLE_STRING]
               ? tables->dictionary->string_table[index]
               : NULL;
}

void sp_tables_use_attributes(sp_tables *tables, const int32_t *indices, size_t count,
                              const sp_place *place)
{
    sp_checker *checker = tables->checker;
    sp_intern_clear(&checker->keys);
    for (size_t i = 0; i < count; i++) {
        if (!sp_tables_use(tables, SP_TABLE_ATTRIBUTE, indices[i], place))
            continue;
        const char *key =
            sp_tables_string(tables, tables->dictionary->attribute_table[indices[i]]->key_strindex);
        bool is_new = true;
        if (key && sp_intern_put(&checker->keys, key, strlen(key), &is_new) == SP_INTERN_FAILED)
            checker->failed = true;
        if (key && !*key)
            sp_check_violation(checker, "attribute-key", place,
                               "has attribute %" PRId32 ", which has no key", indices[i]);
        else if (!is_new)
            sp_check_violation(checker, "attribute-unique", place,
                               "has two attributes with the key %.100s", key);
    }
}

/* ---- entries ---- */

static void check_mapping(sp_tables *tables, const Sp__Profiles__Mapping *mapping,
                          const sp_place *place)
{
    static const char prefix[] = "process.executable.build_id.";
    const Sp__Profiles__ProfilesDictionary *d = tables->dictionary;
    bool has_build_id = false;
    sp_tables_use(tables, SP_TABLE_STRING, mapping->filename_strindex, place);
    sp_tables_use_attributes(tables, mapping->attribute_indices, mapping->n_attribute_indices,
                             place);
    if (mapping->memory_start >= mapping->memory_limit &&
        (mapping->memory_start || mapping->memory_limit))
        sp_check_violation(tables->checker, "mapping-range", place,
                           "its start, 0x%" PRIx64 ", has to be below its limit, 0x%" PRIx64
                           ", or both 0",
                           mapping->memory_start, mapping->memory_limit);
    for (size_t i = 0; i < mapping->n_attribute_indices; i++) {
        int32_t index = mapping->attribute_indices[i];
        if (index < 0 || (size_t)index >= tables->counts[SP_TABLE_ATTRIBUTE])
            continue;
        const char *key = sp_tables_string(tables, d->attribute_table[index]->key_strindex);
        has_build_id = has_build_id || (key && strncmp(key, prefix, strlen(prefix)) == 0);
    }
    if (!has_build_id)
        sp_check_violation(tables->checker, "mapping-build-id", place,
                           "has none of the attributes %sgnu, .go, .htlhash", prefix);
}

static void check_location(sp_tables *tables, const Sp__Profiles__Location *location,
                           const sp_place *place)
{
    if (sp_tables_use(tables, SP_TABLE_MAPPING, location->mapping_index, place) &&
        location->address) {
        const Sp__Profiles__Mapping *mapping =
            tables->dictionary->mapping_table[location->mapping_index];
        if (mapping->memory_limit && (location->address < mapping->memory_start ||
                                      location->address > mapping->memory_limit))
            sp_check_warning(tables->checker, "address-in-mapping", place,
                             "0x%" PRIx64 " lies outside its mapping", location->address);
    }
    sp_tables_use_attributes(tables, location->attribute_indices, location->n_attribute_indices,
                             place);
    for (size_t i = 0; i < location->n_lines; i++) {
        const Sp__Profiles__Line *line = location->lines[i];
        sp_place own = sp_place_of("%s.lines[%zu]", place->text, i);
        sp_tables_use(tables, SP_TABLE_FUNCTION, line->function_index, &own);
        if (line->line < 0 || line->column < 0)
            sp_check_violation(tables->checker, "line-number", &own, "line or column is negative");
    }
}

static void check_function(sp_tables *tables, const Sp__Profiles__Function *function,
                           const sp_place *place)
{
    sp_tables_use(tables, SP_TABLE_STRING, function->name_strindex, place);
    sp_tables_use(tables, SP_TABLE_STRING, function->system_name_strindex, place);
    sp_tables_use(tables, SP_TABLE_STRING, function->filename_strindex, place);
    if (!function->name_strindex && !function->system_name_strindex && !function->filename_strindex)
        sp_check_violation(tables->checker, "function-name", place,
                           "has neither name, nor system name, nor file");
    if (function->start_line < 0)
        sp_check_violation(tables->checker, "line-number", place, "the start line is negative");
}

static void check_link(sp_tables *tables, const Sp__Profiles__Link *link, const sp_place *place)
{
    if (!sp_id_is_good(&link->trace_id, 16) || !sp_id_is_good(&link->span_id, 8))
        sp_check_violation(tables->checker, "link-id", place,
                           "has a trace id of %zu bytes and a span id of %zu; 16 and 8 are needed, "
                           "not all zero",
                           link->trace_id.len, link->span_id.len);
}

static void check_attribute(sp_tables *tables, const Sp__Profiles__KeyValueAndUnit *attribute,
                            const sp_place *place)
{
    Sp__Common__KeyValue as_list_item = SP__COMMON__KEY_VALUE__INIT;
    Sp__Common__KeyValue *list[] = {&as_list_item};
    sp_tables_use(tables, SP_TABLE_STRING, attribute->key_strindex, place);
    sp_tables_use(tables, SP_TABLE_STRING, attribute->unit_strindex, place);
    if (attribute->key_strindex == 0)
        sp_check_violation(tables->checker, "attribute-key", place, "has no key");
    as_list_item.key = (char *)"key"; /* any text: the real key was just checked */
    as_list_item.value = attribute->value;
    sp_check_attributes(tables->checker, tables, list, 1, place);
    sp_check_wait(tables, attribute, place);
}

static void check_stack(sp_tables *tables, const Sp__Profiles__Stack *stack, const sp_place *place)
{
    for (size_t i = 0; i < stack->n_location_indices; i++)
        sp_tables_use(tables, SP_TABLE_LOCATION, stack->location_indices[i], place);
}

static void check_entry(sp_tables *tables, sp_table table, const void *entry, const sp_place *place)
{
    switch (table) {
    case SP_TABLE_MAPPING:
        check_mapping(tables, entry, place);
        break;
    case SP_TABLE_LOCATION:
        check_location(tables, entry, place);
        break;
    case SP_TABLE_FUNCTION:
        check_function(tables, entry, place);
        break;
    case SP_TABLE_LINK:
        check_link(tables, entry, place);
        break;
    case SP_TABLE_ATTRIBUTE:
        check_attribute(tables, entry, place);
        break;
    case SP_TABLE_STACK:
        check_stack(tables, entry, place);
        break;
    case SP_TABLE_STRING:
    case SP_TABLE_COUNT:
        break;
    }
}

/* ---- tables ---- */

static bool all_zero(const ProtobufCBinaryData *id)
{
    for (size_t i = 0; i < id->len; i++)
        if (id->data[i])
            return false;
    return true;
}

/* Whether ENTRY is a zero value. A link has two forms of it: the empty message, and ids of full
 * length that are all zero. */
static bool is_zero_entry(sp_table table, const void *entry)
{
    if (table == SP_TABLE_STRING)
        return *(const char *)entry == 0;
    if (protobuf_c_message_get_packed_size(entry) == 0)
        return true;
    const Sp__Profiles__Link *link = entry;
    return table == SP_TABLE_LINK && link->trace_id.len == 16 && link->span_id.len == 8 &&
           all_zero(&link->trace_id) && all_zero(&link->span_id);
}

static void check_zero_entry(sp_tables *tables, sp_table table)
{
    sp_place place = sp_place_of("%s[0]", sp_table_names[table]);
    if (tables->counts[table] == 0)
        sp_check_violation(tables->checker, "zero-entry", &place,
                           "is missing: the table has to begin with the zero value");
    else if (!is_zero_entry(table, tables->entries[table][0]))
        sp_check_violation(tables->checker, "zero-entry", &place,
                           "is not the zero value, which index 0 stands for");
}

/* Entries are compared by their bytes, so two entries that refer to equal entries of another table
 * are not equal here. Those equal entries are found in the check of the other table. */
static void check_duplicates(sp_tables *tables, sp_table table)
{
    sp_intern seen = {0};
    sp_buffer bytes = SP_BUFFER_INIT(SIZE_MAX / 4);
    for (size_t i = 0; i < tables->counts[table]; i++) {
        const void *entry = tables->entries[table][i], *key = entry;
        size_t length =
            table == SP_TABLE_STRING ? strlen(entry) : protobuf_c_message_get_packed_size(entry);
        bool is_new = true;
        if (table != SP_TABLE_STRING) {
            sp_buffer_clear(&bytes);
            key = sp_buffer_reserve(&bytes, length);
            if (key)
                protobuf_c_message_pack(entry, (uint8_t *)key);
        }
        uint32_t first = key ? sp_intern_put(&seen, key, length, &is_new) : SP_INTERN_FAILED;
        if (first == SP_INTERN_FAILED)
            tables->checker->failed = true;
        sp_place place = sp_place_of("%s[%zu]", sp_table_names[table], i);
        if (!is_new)
            sp_check_violation(tables->checker, "duplicate", &place,
                               "is equal to entry %" PRIu32 " of the table", first);
    }
    sp_buffer_deinit(&bytes);
    sp_intern_deinit(&seen);
}

void sp_check_dictionary(sp_tables *tables)
{
    for (int table = 0; table < SP_TABLE_COUNT; table++) {
        check_zero_entry(tables, (sp_table)table);
        check_duplicates(tables, (sp_table)table);
        for (size_t i = 1; i < tables->counts[table]; i++) {
            sp_place place = sp_place_of("%s[%zu]", sp_table_names[table], i);
            check_entry(tables, (sp_table)table, tables->entries[table][i], &place);
        }
    }
}

void sp_check_orphans(sp_tables *tables)
{
    for (int table = 0; table < SP_TABLE_COUNT; table++) {
        for (size_t i = 1; i < tables->counts[table]; i++) {
            sp_place place = sp_place_of("%s[%zu]", sp_table_names[table], i);
            if (!tables->used[table][i])
                sp_check_violation(tables->checker, "orphan", &place, "nothing refers to it");
        }
    }
}
