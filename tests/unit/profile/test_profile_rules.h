/* SPDX-License-Identifier: Apache-2.0 */
/* An assertion that profile data obeys its rules (profile/profile_data.h): entry 0 of each table is
 * zero, no entry is there twice, something refers to each entry, all indices are in range, all
 * strings are UTF-8. Include cmocka.h before this file. */
#ifndef SP_TEST_PROFILE_RULES_H
#define SP_TEST_PROFILE_RULES_H

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/buffer.h"
#include "core/compiler.h"
#include "core/intern.h"
#include "core/utf8.h"
#include "profile/profile_data.h"

static const sp_profile_data *ruled; /* the data that is being checked */

/* Which entries are referred to. */
typedef struct rules_uses {
    uint8_t *strings, *mappings, *locations, *functions, *links, *attributes, *stacks;
} rules_uses;

static void rules_mark(uint8_t *used, uint32_t index, uint32_t count)
{
    assert_true(index < count);
    used[index] = 1;
}

static void rules_use_attributes(const rules_uses *u, sp_index_list list)
{
    for (uint32_t i = 0; i < list.count; i++) {
        int32_t index = ruled->indices[list.offset + i];
        assert_true(index > 0);
        rules_mark(u->attributes, (uint32_t)index, ruled->attribute_count);
        for (uint32_t j = 0; j < i; j++) /* keys are unique in one list */
            assert_int_not_equal(ruled->attributes[index].key_strindex,
                                 ruled->attributes[ruled->indices[list.offset + j]].key_strindex);
    }
}

static void rules_use_location(const rules_uses *u, uint32_t index)
{
    assert_true(index > 0);
    rules_mark(u->locations, index, ruled->location_count);
    const sp_profile_location *location = &ruled->locations[index];
    rules_mark(u->mappings, location->mapping_index, ruled->mapping_count);
    rules_use_attributes(u, location->attributes);
    const sp_profile_mapping *mapping = &ruled->mappings[location->mapping_index];
    if (mapping->memory_limit) {
        assert_true(location->address >= mapping->memory_start);
        assert_true(location->address < mapping->memory_limit);
    }
    assert_true(location->line_count > 0);
    for (uint32_t i = 0; i < location->line_count; i++) {
        const sp_profile_line *line = &ruled->lines[location->first_line + i];
        assert_true(line->function_index > 0);
        rules_mark(u->functions, line->function_index, ruled->function_count);
        assert_true(line->line >= 0 && line->column >= 0);
    }
}

static void rules_use_profile(const rules_uses *u, const sp_profile *profile)
{
    const uint32_t types[] = {profile->sample_type_strindex, profile->sample_unit_strindex,
                              profile->period_type_strindex, profile->period_unit_strindex};
    for (size_t i = 0; i < SP_ARRAY_LENGTH(types); i++)
        rules_mark(u->strings, types[i], ruled->string_count);
    rules_use_attributes(u, profile->attributes);
    assert_true(profile->period > 0);
    assert_true(profile->sample_count > 0);
    for (uint32_t i = 0; i < profile->sample_count; i++) {
        const sp_profile_sample *sample = &profile->samples[i];
        assert_true(sample->value > 0);
        rules_mark(u->stacks, sample->stack_index, ruled->stack_count);
        rules_mark(u->links, sample->link_index, ruled->link_count);
        rules_use_attributes(u, sample->attributes);
        for (uint32_t j = 0; j < i; j++) { /* identities differ; equal lists are stored once */
            const sp_profile_sample *other = &profile->samples[j];
            assert_false(sample->stack_index == other->stack_index &&
                         sample->link_index == other->link_index &&
                         sample->attributes.offset == other->attributes.offset &&
                         sample->attributes.count == other->attributes.count);
        }
    }
}

static void rules_use_all(const rules_uses *u)
{
    for (uint32_t i = 0; i < ruled->profile_count; i++)
        rules_use_profile(u, &ruled->profiles[i]);
    for (uint32_t i = 1; i < ruled->stack_count; i++)
        for (uint32_t j = 0; j < ruled->stacks[i].count; j++)
            rules_use_location(u, (uint32_t)ruled->indices[ruled->stacks[i].offset + j]);
    for (uint32_t i = 0; i < ruled->function_count; i++) {
        rules_mark(u->strings, ruled->functions[i].name_strindex, ruled->string_count);
        rules_mark(u->strings, ruled->functions[i].system_name_strindex, ruled->string_count);
        rules_mark(u->strings, ruled->functions[i].filename_strindex, ruled->string_count);
    }
    for (uint32_t i = 0; i < ruled->mapping_count; i++) {
        const sp_profile_mapping *mapping = &ruled->mappings[i];
        rules_mark(u->strings, mapping->filename_strindex, ruled->string_count);
        rules_use_attributes(u, mapping->attributes);
        assert_true(mapping->memory_start < mapping->memory_limit ||
                    (mapping->memory_start == 0 && mapping->memory_limit == 0));
    }
    for (uint32_t i = 0; i < ruled->attribute_count; i++) {
        rules_mark(u->strings, ruled->attributes[i].key_strindex, ruled->string_count);
        rules_mark(u->strings, ruled->attributes[i].unit_strindex, ruled->string_count);
    }
}

static void rules_assert_no_orphans(const char *table, uint8_t *used, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++)
        if (!used[i])
            fail_msg("%s: nothing refers to entry %u", table, i);
    free(used);
}

/* Write a text that is equal for equal entries of TABLE. */
static void rules_describe(sp_buffer *text, const char *table, uint32_t i)
{
    sp_buffer_clear(text);
    sp_buffer_printf(text, "%s ", table);
    if (strcmp(table, "string") == 0)
        sp_buffer_add_string(text, ruled->strings[i]);
    if (strcmp(table, "mapping") == 0)
        sp_buffer_printf(text, "%u %u+%u %" PRIu64, ruled->mappings[i].filename_strindex,
                         ruled->mappings[i].attributes.offset, ruled->mappings[i].attributes.count,
                         ruled->mappings[i].memory_start);
    if (strcmp(table, "function") == 0)
        sp_buffer_add(text, &ruled->functions[i], sizeof ruled->functions[i]);
    if (strcmp(table, "link") == 0)
        sp_buffer_add(text, &ruled->links[i], sizeof ruled->links[i]);
    if (strcmp(table, "stack") == 0)
        sp_buffer_add(text, ruled->indices + ruled->stacks[i].offset,
                      ruled->stacks[i].count * sizeof(int32_t));
    if (strcmp(table, "location") == 0) {
        const sp_profile_location *location = &ruled->locations[i];
        sp_buffer_printf(text, "%u %" PRIx64 " %u ", location->mapping_index, location->address,
                         location->attributes.count);
        sp_buffer_add(text, ruled->lines + location->first_line,
                      location->line_count * sizeof(sp_profile_line));
    }
    if (strcmp(table, "attribute") == 0) {
        const sp_profile_attribute *attribute = &ruled->attributes[i];
        sp_buffer_printf(text, "%u %u %d ", attribute->key_strindex, attribute->unit_strindex,
                         attribute->type);
        if (attribute->unattributed_threads)
            sp_buffer_add(text, attribute->unattributed_threads,
                          attribute->unattributed_count * sizeof *attribute->unattributed_threads);
        else if (attribute->type == SPANPROF_ATTRIBUTE_STRING)
            sp_buffer_add_string(text, attribute->value.string_value ? attribute->value.string_value
                                                                     : "");
        else
            sp_buffer_printf(text, "%" PRId64, attribute->value.int_value);
    }
}

static void rules_assert_no_duplicates(void)
{
    const struct {
        const char *name;
        uint32_t count;
    } tables[] = {{"string", ruled->string_count},      {"mapping", ruled->mapping_count},
                  {"location", ruled->location_count},  {"function", ruled->function_count},
                  {"link", ruled->link_count},          {"stack", ruled->stack_count},
                  {"attribute", ruled->attribute_count}};
    sp_intern seen = {0};
    sp_buffer text = SP_BUFFER_INIT(1 << 20);
    for (size_t t = 0; t < SP_ARRAY_LENGTH(tables); t++) {
        assert_true(tables[t].count >= 1); /* entry 0 */
        for (uint32_t i = 0; i < tables[t].count; i++) {
            bool is_new;
            rules_describe(&text, tables[t].name, i);
            sp_intern_put(&seen, text.data, text.length, &is_new);
            if (!is_new)
                fail_msg("%s: entry %u is there twice", tables[t].name, i);
        }
    }
    sp_intern_deinit(&seen);
    sp_buffer_deinit(&text);
}

static void rules_assert_zero_entries(void)
{
    static const sp_profile_link no_link;
    assert_string_equal(ruled->strings[0], "");
    assert_int_equal(ruled->mappings[0].filename_strindex, 0);
    assert_int_equal(ruled->mappings[0].attributes.count, 0);
    assert_int_equal(ruled->mappings[0].memory_limit, 0);
    assert_int_equal(ruled->locations[0].line_count, 0);
    assert_int_equal(ruled->functions[0].name_strindex, 0);
    assert_memory_equal(&ruled->links[0], &no_link, sizeof no_link);
    assert_int_equal(ruled->attributes[0].key_strindex, 0);
    assert_int_equal(ruled->stacks[0].count, 0);
}

/* Fail unless DATA obeys all rules. */
static void assert_profile_rules(const sp_profile_data *data)
{
    ruled = data;
    rules_uses u = {calloc(ruled->string_count, 1),   calloc(ruled->mapping_count, 1),
                    calloc(ruled->location_count, 1), calloc(ruled->function_count, 1),
                    calloc(ruled->link_count, 1),     calloc(ruled->attribute_count, 1),
                    calloc(ruled->stack_count, 1)};
    rules_assert_zero_entries();
    rules_use_all(&u);
    for (uint32_t i = 0; i < ruled->string_count; i++)
        assert_true(sp_utf8_valid(ruled->strings[i], strlen(ruled->strings[i])));
    rules_assert_no_orphans("string", u.strings, ruled->string_count);
    rules_assert_no_orphans("mapping", u.mappings, ruled->mapping_count);
    rules_assert_no_orphans("location", u.locations, ruled->location_count);
    rules_assert_no_orphans("function", u.functions, ruled->function_count);
    rules_assert_no_orphans("link", u.links, ruled->link_count);
    rules_assert_no_orphans("attribute", u.attributes, ruled->attribute_count);
    rules_assert_no_orphans("stack", u.stacks, ruled->stack_count);
    rules_assert_no_duplicates();
}

#endif
