/* SPDX-License-Identifier: Apache-2.0 */
/* Entries get new numbers in the order of their first use. Tables are written in the order in which
 * they refer to each other, so that a table is complete before it is written: samples use stacks,
 * stacks use locations, and so on; strings are last. */
#include "profile/profile_part.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "core/buffer.h"
#include "core/clock.h"
#include "core/compiler.h"
#include "core/intern.h"

/* The entries of one table that the part uses. Entry 0 is always there. */
typedef struct used_entries {
    uint32_t *new_number; /* by number in the whole; 0: not used yet */
    uint32_t *old_number; /* by number in the part */
    uint32_t count;
} used_entries;

typedef struct part_maker {
    sp_profile_data *part;
    const sp_profile_data *whole;
    used_entries strings, mappings, locations, functions, links, attributes, stacks;
    sp_buffer indices;
} part_maker;

void sp_profile_id_make(uint8_t id[16])
{
    if (getrandom(id, 16, 0) == 16)
        return;
    uint64_t now[2] = {sp_clock_realtime_ns(), sp_clock_process_cpu_ns()};
    uint64_t halves[2] = {sp_hash_bytes(now, sizeof now), now[0]};
    memcpy(id, halves, sizeof halves);
}

uint32_t sp_profile_sample_total(const sp_profile_data *data)
{
    uint32_t total = 0;
    for (uint32_t i = 0; i < data->profile_count; i++)
        total += data->profiles[i].sample_count;
    return total;
}

/* The part of RANGE in a profile of COUNT samples, the first of which has number START. The result
 * is relative to START. */
static sp_sample_range share_of_profile(sp_sample_range range, uint32_t start, uint32_t count)
{
    uint32_t from = range.first > start ? range.first - start : 0;
    uint64_t end = (uint64_t)range.first + range.count;
    uint64_t to = end > start ? end - start : 0;
    to = to < count ? to : count;
    return (sp_sample_range){from, from < to ? (uint32_t)to - from : 0};
}

uint32_t sp_profile_largest_share(const sp_profile_data *data, sp_sample_range range)
{
    uint32_t largest = 0, start = 0;
    for (uint32_t i = 0; i < data->profile_count; i++) {
        uint32_t count = data->profiles[i].sample_count;
        uint32_t share = share_of_profile(range, start, count).count;
        largest = share > largest ? share : largest;
        start += count;
    }
    return largest;
}

static bool allocate(part_maker *m, used_entries *used, uint32_t whole_count)
{
    used->new_number = calloc((size_t)whole_count + 1, sizeof *used->new_number);
    used->old_number = calloc((size_t)whole_count + 1, sizeof *used->old_number);
    used->count = 1;
    if (used->new_number && used->old_number)
        return true;
    m->part->memory.failed = true;
    return false;
}

/* The number in the part of the whole's entry OLD, which is used from now on. */
static uint32_t use(used_entries *used, uint32_t old)
{
    if (old == 0)
        return 0;
    if (!used->new_number[old]) {
        used->old_number[used->count] = old;
        used->new_number[old] = used->count++;
    }
    return used->new_number[old];
}

static void add_index(part_maker *m, used_entries *used, int32_t old)
{
    int32_t index = (int32_t)use(used, (uint32_t)old);
    sp_buffer_add(&m->indices, &index, sizeof index);
}

static uint32_t next_index(const part_maker *m)
{
    return (uint32_t)(m->indices.length / sizeof(int32_t));
}

/* Copy FROM, a list of entries of the table of USED, to the part's indices. */
static sp_index_list use_list(part_maker *m, used_entries *used, sp_index_list from)
{
    sp_index_list list = {.offset = from.count ? next_index(m) : 0, .count = from.count};
    for (uint32_t i = 0; i < from.count; i++)
        add_index(m, used, m->whole->indices[from.offset + i]);
    return list;
}

static bool is_text(const sp_profile_attribute *attribute)
{
    return attribute->type == SPANPROF_ATTRIBUTE_STRING && !attribute->unattributed_threads;
}

/* The same for a profile's attributes, but only texts, because numbers count for the whole profile.
 */
static sp_index_list use_texts(part_maker *m, sp_index_list from)
{
    sp_index_list list = {.offset = next_index(m)};
    for (uint32_t i = 0; i < from.count; i++) {
        int32_t index = m->whole->indices[from.offset + i];
        if (!is_text(&m->whole->attributes[index]))
            continue;
        add_index(m, &m->attributes, index);
        list.count++;
    }
    return list.count ? list : (sp_index_list){0};
}

static void make_samples(part_maker *m, sp_profile *profile, sp_sample_range range)
{
    const sp_profile_sample *from = profile->samples + range.first;
    profile->samples = sp_arena_array(&m->part->memory, range.count, sizeof *profile->samples);
    profile->sample_count = profile->samples ? range.count : 0;
    for (uint32_t i = 0; i < profile->sample_count; i++) {
        profile->samples[i] = from[i];
        profile->samples[i].stack_index = use(&m->stacks, from[i].stack_index);
        profile->samples[i].link_index = use(&m->links, from[i].link_index);
        profile->samples[i].attributes = use_list(m, &m->attributes, from[i].attributes);
    }
}

static void make_profile(part_maker *m, const sp_profile *from, sp_sample_range range)
{
    sp_profile *profile = &m->part->profiles[m->part->profile_count++];
    *profile = *from;
    profile->sample_type_strindex = use(&m->strings, from->sample_type_strindex);
    profile->sample_unit_strindex = use(&m->strings, from->sample_unit_strindex);
    profile->period_type_strindex = use(&m->strings, from->period_type_strindex);
    profile->period_unit_strindex = use(&m->strings, from->period_unit_strindex);
    bool is_first = range.first == 0;
    profile->attributes =
        is_first ? use_list(m, &m->attributes, from->attributes) : use_texts(m, from->attributes);
    if (!is_first)
        sp_profile_id_make(profile->profile_id);
    make_samples(m, profile, range);
}

static void make_profiles(part_maker *m, sp_sample_range range)
{
    const sp_profile_data *whole = m->whole;
    m->part->profiles =
        sp_arena_array(&m->part->memory, whole->profile_count, sizeof *m->part->profiles);
    uint32_t start = 0;
    for (uint32_t i = 0; i < whole->profile_count && m->part->profiles; i++) {
        uint32_t count = whole->profiles[i].sample_count;
        sp_sample_range share = share_of_profile(range, start, count);
        if (share.count)
            make_profile(m, &whole->profiles[i], share);
        start += count;
    }
}

static void make_links(part_maker *m)
{
    sp_profile_data *part = m->part;
    part->link_count = m->links.count;
    part->links = sp_arena_array(&part->memory, part->link_count, sizeof *part->links);
    for (uint32_t i = 0; i < part->link_count && part->links; i++)
        part->links[i] = m->whole->links[m->links.old_number[i]];
}

static void make_stacks(part_maker *m)
{
    sp_profile_data *part = m->part;
    part->stack_count = m->stacks.count;
    part->stacks = sp_arena_array(&part->memory, part->stack_count, sizeof *part->stacks);
    for (uint32_t i = 0; i < part->stack_count && part->stacks; i++)
        part->stacks[i] = use_list(m, &m->locations, m->whole->stacks[m->stacks.old_number[i]]);
}

static const sp_profile_location *old_location(const part_maker *m, uint32_t number)
{
    return &m->whole->locations[m->locations.old_number[number]];
}

static void make_lines(part_maker *m, sp_profile_location *location, uint32_t *at)
{
    const sp_profile_line *from = m->whole->lines + location->first_line;
    location->first_line = location->line_count ? *at : 0;
    for (uint32_t i = 0; i < location->line_count; i++) {
        sp_profile_line *line = &m->part->lines[(*at)++];
        *line = from[i];
        line->function_index = use(&m->functions, from[i].function_index);
    }
}

static void make_locations(part_maker *m)
{
    sp_profile_data *part = m->part;
    uint32_t lines = 0, at = 0;
    part->location_count = m->locations.count;
    for (uint32_t i = 0; i < part->location_count; i++)
        lines += old_location(m, i)->line_count;
    part->locations = sp_arena_array(&part->memory, part->location_count, sizeof *part->locations);
    part->lines = sp_arena_array(&part->memory, lines, sizeof *part->lines);
    for (uint32_t i = 0; i < part->location_count && part->locations && part->lines; i++) {
        sp_profile_location *location = &part->locations[i];
        *location = *old_location(m, i);
        location->mapping_index = use(&m->mappings, location->mapping_index);
        location->attributes = use_list(m, &m->attributes, location->attributes);
        make_lines(m, location, &at);
    }
}

static void make_mappings(part_maker *m)
{
    sp_profile_data *part = m->part;
    part->mapping_count = m->mappings.count;
    part->mappings = sp_arena_array(&part->memory, part->mapping_count, sizeof *part->mappings);
    for (uint32_t i = 0; i < part->mapping_count && part->mappings; i++) {
        sp_profile_mapping *mapping = &part->mappings[i];
        *mapping = m->whole->mappings[m->mappings.old_number[i]];
        mapping->filename_strindex = use(&m->strings, mapping->filename_strindex);
        mapping->attributes = use_list(m, &m->attributes, mapping->attributes);
    }
}

static void make_functions(part_maker *m)
{
    sp_profile_data *part = m->part;
    part->function_count = m->functions.count;
    part->functions = sp_arena_array(&part->memory, part->function_count, sizeof *part->functions);
    for (uint32_t i = 0; i < part->function_count && part->functions; i++) {
        sp_profile_function *function = &part->functions[i];
        *function = m->whole->functions[m->functions.old_number[i]];
        function->name_strindex = use(&m->strings, function->name_strindex);
        function->system_name_strindex = use(&m->strings, function->system_name_strindex);
        function->filename_strindex = use(&m->strings, function->filename_strindex);
    }
}

static void make_attributes(part_maker *m)
{
    sp_profile_data *part = m->part;
    part->attribute_count = m->attributes.count;
    part->attributes =
        sp_arena_array(&part->memory, part->attribute_count, sizeof *part->attributes);
    for (uint32_t i = 0; i < part->attribute_count && part->attributes; i++) {
        sp_profile_attribute *attribute = &part->attributes[i];
        *attribute = m->whole->attributes[m->attributes.old_number[i]];
        attribute->key_strindex = use(&m->strings, attribute->key_strindex);
        attribute->unit_strindex = use(&m->strings, attribute->unit_strindex);
    }
}

static void make_strings(part_maker *m)
{
    sp_profile_data *part = m->part;
    part->string_count = m->strings.count;
    part->strings = sp_arena_array(&part->memory, part->string_count, sizeof *part->strings);
    for (uint32_t i = 0; i < part->string_count && part->strings; i++)
        part->strings[i] = m->whole->strings[m->strings.old_number[i]];
}

/* The order is that of the references, see above. */
static bool make_tables(part_maker *m)
{
    sp_profile_data *part = m->part;
    make_links(m);
    make_stacks(m);
    make_locations(m);
    make_mappings(m);
    make_functions(m);
    make_attributes(m);
    make_strings(m);
    part->indices = sp_arena_memdup(&part->memory, m->indices.data, m->indices.length);
    return !m->indices.failed && !part->memory.failed;
}

static void part_maker_deinit(part_maker *m)
{
    used_entries *all[] = {&m->strings, &m->mappings,   &m->locations, &m->functions,
                           &m->links,   &m->attributes, &m->stacks};
    for (size_t i = 0; i < SP_ARRAY_LENGTH(all); i++) {
        free(all[i]->new_number);
        free(all[i]->old_number);
    }
    sp_buffer_deinit(&m->indices);
}

bool sp_profile_part(sp_profile_data *part, const sp_profile_data *whole, sp_sample_range range)
{
    part_maker m = {.part = part, .whole = whole, .indices = SP_BUFFER_INIT(UINT32_MAX)};
    memset(part, 0, sizeof *part);
    part->timestamps = whole->timestamps;
    bool done = allocate(&m, &m.strings, whole->string_count) &&
                allocate(&m, &m.mappings, whole->mapping_count) &&
                allocate(&m, &m.locations, whole->location_count) &&
                allocate(&m, &m.functions, whole->function_count) &&
                allocate(&m, &m.links, whole->link_count) &&
                allocate(&m, &m.attributes, whole->attribute_count) &&
                allocate(&m, &m.stacks, whole->stack_count);
    if (done) {
        make_profiles(&m, range);
        done = make_tables(&m);
    }
    part_maker_deinit(&m);
    return done;
}
