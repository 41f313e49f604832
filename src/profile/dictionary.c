/* SPDX-License-Identifier: Apache-2.0 */
/* Mappings. A mapping is a file, identified by name and build id, so a library that was unloaded
 * and loaded elsewhere is one mapping. Addresses are ELF virtual addresses, because a symbol server
 * looks these up; so are memory_start and memory_limit: the module's range without its load bias.
 * As the first page of a file is mapped first, file_offset is 0. Only a mapping with an unresolved
 * location carries its range; elsewhere it is 0 and 0, which is valid, smaller, and keeps backends
 * that copy mappings for each sample below their limits. */
#include "profile/dictionary.h"

#include <stdlib.h>
#include <string.h>

#include "core/hex.h"
#include "core/utf8.h"
#include "core/reach.h"

/* Longer strings are cut; each byte of one may become three when it is repaired. LARGEST_KEY is
 * enough for such a string, and for the lines of any location. */
enum { LONGEST_STRING = 16 * 1024, LARGEST_KEY = 1024 * 1024 };

/* The keys of the tables. No padding: compared bytewise. */
typedef struct mapping_key {
    uint32_t filename;
    uint32_t attributes;
} mapping_key;

typedef struct function_key {
    uint32_t name, system_name, filename, start_line;
} function_key;

typedef struct line_key {
    uint32_t function, line, column;
} line_key;

typedef struct location_key {
    uint64_t address;
    uint32_t mapping;
    uint32_t attributes;
    line_key lines[];
} location_key;

typedef struct attribute_key {
    int64_t number;
    uint32_t key, unit;
    uint32_t type;
    char text[]; /* to the end of the key, which is followed by a NUL; or a
                    sp_profile_unattributed[] */
} attribute_key;

enum {
    UNATTRIBUTED_THREADS = INT32_MAX
}; /* as a type of attribute_key, beside those of spanprof_attribute_type */

static uint32_t put(sp_dictionary *dictionary, sp_intern *table, const void *key, size_t length)
{
    uint32_t number = sp_intern_put(table, key, length, NULL);
    if (number != SP_INTERN_FAILED)
        return number;
    dictionary->failed = true;
    return 0;
}

/* Put entry 0, which is the zero value, into each table, with the key that a zero value has. */
void sp_dictionary_init(sp_dictionary *dictionary)
{
    static const uint8_t zeros[sizeof(sp_profile_link)];
    dictionary->scratch = (sp_buffer)SP_BUFFER_INIT(LARGEST_KEY);
    dictionary->key = (sp_buffer)SP_BUFFER_INIT(LARGEST_KEY);
    put(dictionary, &dictionary->strings, zeros, 0);
    put(dictionary, &dictionary->mappings, zeros, sizeof(mapping_key));
    put(dictionary, &dictionary->locations, zeros, sizeof(location_key));
    put(dictionary, &dictionary->functions, zeros, sizeof(function_key));
    put(dictionary, &dictionary->links, zeros, sizeof(sp_profile_link));
    put(dictionary, &dictionary->attributes, zeros, offsetof(attribute_key, text));
    put(dictionary, &dictionary->stacks, zeros, 0);
    put(dictionary, &dictionary->lists, zeros, 0);
}

void sp_dictionary_deinit(sp_dictionary *dictionary)
{
    sp_intern *tables[] = {&dictionary->strings,   &dictionary->mappings, &dictionary->locations,
                           &dictionary->functions, &dictionary->links,    &dictionary->attributes,
                           &dictionary->stacks,    &dictionary->lists};
    for (size_t i = 0; i < SP_ARRAY_LENGTH(tables); i++)
        sp_intern_deinit(tables[i]);
    free(dictionary->ranges);
    sp_buffer_deinit(&dictionary->scratch);
    sp_buffer_deinit(&dictionary->key);
}

/* TEXT as valid UTF-8 of a bounded length: itself, or a copy that was repaired and cut, which lives
 * until the next call. */
static const char *made_fit(sp_dictionary *dictionary, const char *text)
{
    sp_buffer *copy = &dictionary->scratch;
    size_t length = strlen(text), kept = sp_utf8_fit(text, length, LONGEST_STRING);
    if (kept == length && sp_utf8_valid(text, length))
        return text;
    sp_buffer_clear(copy);
    uint8_t *room = sp_buffer_reserve(copy, 3 * kept + strlen(SP_UTF8_CUT));
    if (!room) {
        dictionary->failed = true;
        return "";
    }
    copy->length = sp_utf8_repair((char *)room, text, kept);
    if (kept < length)
        sp_buffer_add_string(copy, SP_UTF8_CUT);
    return (const char *)copy->data;
}

uint32_t sp_dictionary_string(sp_dictionary *dictionary, const char *text)
{
    if (!*text)
        return 0;
    const char *fit = made_fit(dictionary, text);
    return put(dictionary, &dictionary->strings, fit, strlen(fit));
}

/* Put the content of `key` into TABLE as an entry. */
static uint32_t put_key(sp_dictionary *dictionary, sp_intern *table)
{
    if (dictionary->key.failed) {
        dictionary->failed = true;
        return 0;
    }
    return put(dictionary, table, dictionary->key.data, dictionary->key.length);
}

static uint32_t put_attribute(sp_dictionary *dictionary, const attribute_key *header,
                              const char *text)
{
    const char *fit = made_fit(dictionary, text);
    sp_buffer_clear(&dictionary->key);
    sp_buffer_add(&dictionary->key, header, offsetof(attribute_key, text));
    sp_buffer_add(&dictionary->key, fit, strlen(fit));
    return put_key(dictionary, &dictionary->attributes);
}

uint32_t sp_dictionary_string_attribute(sp_dictionary *dictionary, const char *key,
                                        const char *value)
{
    attribute_key header = {.key = sp_dictionary_string(dictionary, key),
                            .type = SPANPROF_ATTRIBUTE_STRING};
    return put_attribute(dictionary, &header, value);
}

uint32_t sp_dictionary_int_attribute(sp_dictionary *dictionary, const char *key, const char *unit,
                                     int64_t value)
{
    attribute_key header = {.number = value,
                            .key = sp_dictionary_string(dictionary, key),
                            .unit = sp_dictionary_string(dictionary, unit),
                            .type = SPANPROF_ATTRIBUTE_INT};
    return put_attribute(dictionary, &header, "");
}

uint32_t
sp_dictionary_unattributed_threads_attribute(sp_dictionary *dictionary, const char *key,
                                             const sp_profile_unattributed *unattributed_threads,
                                             uint32_t count)
{
    attribute_key header = {.number = count,
                            .key = sp_dictionary_string(dictionary, key),
                            .type = UNATTRIBUTED_THREADS};
    sp_buffer_clear(&dictionary->key);
    sp_buffer_add(&dictionary->key, &header, offsetof(attribute_key, text));
    sp_buffer_add(&dictionary->key, unattributed_threads, count * sizeof *unattributed_threads);
    return put_key(dictionary, &dictionary->attributes);
}

uint32_t sp_dictionary_attributes(sp_dictionary *dictionary, const uint32_t *attributes,
                                  uint32_t count)
{
    return put(dictionary, &dictionary->lists, attributes, count * sizeof *attributes);
}

uint32_t sp_dictionary_link(sp_dictionary *dictionary, const uint8_t trace_id[16],
                            const uint8_t span_id[8])
{
    sp_profile_link link;
    memcpy(link.trace_id, trace_id, sizeof link.trace_id);
    memcpy(link.span_id, span_id, sizeof link.span_id);
    return put(dictionary, &dictionary->links, &link, sizeof link);
}

static uint32_t build_id_attribute(sp_dictionary *dictionary, const sp_module *module)
{
    char hex[2 * SP_BUILD_ID_MAX + 1];
    sp_hex_encode(hex, module->build_id, module->build_id_length);
    return sp_dictionary_string_attribute(dictionary, "process.executable.build_id.gnu", hex);
}

/* Widen the range of mapping INDEX to MODULE's. */
static void add_range(sp_dictionary *dictionary, uint32_t index, const sp_module *module)
{
    size_t old = dictionary->range_capacity;
    if (!SP_REACH(dictionary->ranges, index, dictionary->range_capacity, 32)) {
        dictionary->failed = true;
        return;
    }
    memset(dictionary->ranges + old, 0,
           (dictionary->range_capacity - old) * sizeof *dictionary->ranges);
    sp_dictionary_range *range = &dictionary->ranges[index];
    uint64_t start = module->start - module->bias;
    bool fresh = range->limit == 0;
    range->start = fresh ? start : sp_min_u64(range->start, start);
    range->limit = sp_max_u64(range->limit, module->end - module->bias);
}

static uint32_t put_mapping(sp_dictionary *dictionary, const sp_module *module)
{
    if (module == dictionary->last_module)
        return dictionary->last_mapping;
    mapping_key key = {.filename = sp_dictionary_string(dictionary, module->path)};
    if (module->build_id_length) {
        uint32_t attribute = build_id_attribute(dictionary, module);
        key.attributes = sp_dictionary_attributes(dictionary, &attribute, 1);
    }
    dictionary->last_mapping = put(dictionary, &dictionary->mappings, &key, sizeof key);
    dictionary->last_module = module;
    add_range(dictionary, dictionary->last_mapping, module);
    return dictionary->last_mapping;
}

/* FILE is compared by its address, because the symbolizer's strings live longer than this
 * dictionary. */
static uint32_t put_file(sp_dictionary *dictionary, const char *file)
{
    if (file != dictionary->last_file) {
        dictionary->last_file_strindex = sp_dictionary_string(dictionary, file);
        dictionary->last_file = file;
    }
    return dictionary->last_file_strindex;
}

static uint32_t put_function(sp_dictionary *dictionary, const sp_frame *frame)
{
    function_key key = {
        .name = sp_dictionary_string(dictionary, frame->name),
        .system_name = sp_dictionary_string(dictionary, frame->system_name),
        .filename = put_file(dictionary, frame->file),
        .start_line = frame->start_line,
    };
    return put(dictionary, &dictionary->functions, &key, sizeof key);
}

static uint32_t put_location(sp_dictionary *dictionary, const location_key *header,
                             const sp_frame *frames, uint32_t count)
{
    sp_buffer_clear(&dictionary->key);
    sp_buffer_add(&dictionary->key, header, sizeof *header);
    for (uint32_t i = 0; i < count; i++) {
        line_key line = {put_function(dictionary, &frames[i]), frames[i].line, frames[i].column};
        sp_buffer_add(&dictionary->key, &line, sizeof line);
    }
    return put_key(dictionary, &dictionary->locations);
}

static bool any_unresolved(const sp_frame *frames, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (frames[i].unresolved)
            return true;
    return false;
}

static uint32_t put_native(sp_dictionary *dictionary)
{
    if (!dictionary->native) {
        uint32_t type = sp_dictionary_string_attribute(dictionary, "profile.frame.type", "native");
        dictionary->native = sp_dictionary_attributes(dictionary, &type, 1) + 1;
    }
    return dictionary->native - 1;
}

uint32_t sp_dictionary_location(sp_dictionary *dictionary, const sp_module *module,
                                uint64_t address, const sp_frame *frames, uint32_t count)
{
    location_key header = {
        .address = address,
        .mapping = module ? put_mapping(dictionary, module) : 0,
        .attributes = put_native(dictionary),
    };
    if (header.mapping && header.mapping < dictionary->range_capacity &&
        any_unresolved(frames, count))
        dictionary->ranges[header.mapping].used = true;
    return put_location(dictionary, &header, frames, count);
}

uint32_t sp_dictionary_marker(sp_dictionary *dictionary, const char *name)
{
    sp_frame frame = {.name = name, .system_name = "", .file = ""};
    return put_location(dictionary, &(location_key){0}, &frame, 1);
}

uint32_t sp_dictionary_stack(sp_dictionary *dictionary, const uint32_t *locations, uint32_t count)
{
    return put(dictionary, &dictionary->stacks, locations, count * sizeof *locations);
}

sp_index_list sp_dictionary_list(const sp_dictionary *dictionary, uint32_t number)
{
    uint32_t count = dictionary->lists.entries[number].length / sizeof(uint32_t);
    return (sp_index_list){.offset = count ? dictionary->list_offsets[number] : 0, .count = count};
}

static uint32_t total_length(const sp_intern *table)
{
    uint32_t sum = 0;
    for (uint32_t i = 0; i < table->count; i++)
        sum += table->entries[i].length / sizeof(uint32_t);
    return sum;
}

static void write_strings(const sp_dictionary *dictionary, sp_profile_data *data)
{
    data->string_count = dictionary->strings.count;
    data->strings = sp_arena_array(&data->memory, data->string_count, sizeof *data->strings);
    for (uint32_t i = 0; i < data->string_count && data->strings; i++)
        data->strings[i] = sp_arena_strndup(&data->memory, sp_intern_key(&dictionary->strings, i),
                                            dictionary->strings.entries[i].length);
}

static void write_value(sp_profile_data *data, sp_profile_attribute *out, const attribute_key *key)
{
    switch (key->type) {
    case SPANPROF_ATTRIBUTE_STRING:
        out->value.string_value = sp_arena_strdup(&data->memory, key->text);
        return;
    case UNATTRIBUTED_THREADS:
        out->unattributed_count = (uint32_t)key->number;
        out->unattributed_threads = sp_arena_memdup(
            &data->memory, key->text, out->unattributed_count * sizeof *out->unattributed_threads);
        return;
    default:
        out->value.int_value = key->number;
    }
}

static void write_attributes(const sp_dictionary *dictionary, sp_profile_data *data)
{
    data->attribute_count = dictionary->attributes.count;
    data->attributes =
        sp_arena_array(&data->memory, data->attribute_count, sizeof *data->attributes);
    for (uint32_t i = 0; i < data->attribute_count && data->attributes; i++) {
        const attribute_key *key = sp_intern_key(&dictionary->attributes, i);
        sp_profile_attribute *out = &data->attributes[i];
        out->key_strindex = key->key;
        out->unit_strindex = key->unit;
        out->type = key->type;
        write_value(data, out, key);
    }
}

static void write_mappings(const sp_dictionary *dictionary, sp_profile_data *data)
{
    data->mapping_count = dictionary->mappings.count;
    data->mappings = sp_arena_array(&data->memory, data->mapping_count, sizeof *data->mappings);
    for (uint32_t i = 0; i < data->mapping_count && data->mappings; i++) {
        const mapping_key *key = sp_intern_key(&dictionary->mappings, i);
        sp_profile_mapping *out = &data->mappings[i];
        out->filename_strindex = key->filename;
        out->attributes = sp_dictionary_list(dictionary, key->attributes);
        if (i < dictionary->range_capacity && dictionary->ranges[i].used) {
            out->memory_start = dictionary->ranges[i].start;
            out->memory_limit = dictionary->ranges[i].limit;
        }
    }
}

static void write_functions(const sp_dictionary *dictionary, sp_profile_data *data)
{
    data->function_count = dictionary->functions.count;
    data->functions = sp_arena_array(&data->memory, data->function_count, sizeof *data->functions);
    for (uint32_t i = 0; i < data->function_count && data->functions; i++) {
        const function_key *key = sp_intern_key(&dictionary->functions, i);
        data->functions[i] =
            (sp_profile_function){key->name, key->system_name, key->filename, key->start_line};
    }
}

static uint32_t line_count(const sp_dictionary *dictionary, uint32_t location)
{
    return (uint32_t)((dictionary->locations.entries[location].length - sizeof(location_key)) /
                      sizeof(line_key));
}

static void write_locations(const sp_dictionary *dictionary, sp_profile_data *data)
{
    uint32_t lines = 0;
    data->location_count = dictionary->locations.count;
    for (uint32_t i = 0; i < data->location_count; i++)
        lines += line_count(dictionary, i);
    data->locations = sp_arena_array(&data->memory, data->location_count, sizeof *data->locations);
    data->lines = sp_arena_array(&data->memory, lines, sizeof *data->lines);
    uint32_t at = 0;
    for (uint32_t i = 0; i < data->location_count && data->locations && data->lines; i++) {
        const location_key *key = sp_intern_key(&dictionary->locations, i);
        uint32_t count = line_count(dictionary, i);
        data->locations[i] = (sp_profile_location){
            .mapping_index = key->mapping,
            .address = key->address,
            .first_line = count ? at : 0,
            .line_count = count,
            .attributes = sp_dictionary_list(dictionary, key->attributes),
        };
        for (uint32_t j = 0; j < count; j++)
            data->lines[at++] =
                (sp_profile_line){key->lines[j].function, key->lines[j].line, key->lines[j].column};
    }
}

/* Copy TABLE's keys, which are arrays of indices, to data->indices from *AT on, and the place of
 * each to OFFSETS. */
static void append_indices(const sp_intern *table, sp_profile_data *data, uint32_t *at,
                           uint32_t *offsets)
{
    for (uint32_t i = 0; i < table->count; i++) {
        offsets[i] = *at;
        memcpy(&data->indices[*at], table->entries[i].key, table->entries[i].length);
        *at += table->entries[i].length / sizeof(uint32_t);
    }
}

/* data->indices has the lists one after the other, then the stacks. */
static bool write_lists_and_stacks(sp_dictionary *dictionary, sp_profile_data *data)
{
    const sp_intern *lists = &dictionary->lists, *stacks = &dictionary->stacks;
    uint32_t at = 0;
    data->stack_count = stacks->count;
    data->stacks = sp_arena_array(&data->memory, stacks->count, sizeof *data->stacks);
    data->indices = sp_arena_array(&data->memory, total_length(lists) + total_length(stacks),
                                   sizeof *data->indices);
    dictionary->list_offsets = sp_arena_array(&data->memory, lists->count, sizeof(uint32_t));
    uint32_t *stack_offsets = sp_arena_array(&data->memory, stacks->count, sizeof(uint32_t));
    if (data->memory.failed)
        return false;
    append_indices(lists, data, &at, dictionary->list_offsets);
    append_indices(stacks, data, &at, stack_offsets);
    for (uint32_t i = 0; i < stacks->count; i++) {
        uint32_t count = stacks->entries[i].length / sizeof(uint32_t);
        data->stacks[i] = (sp_index_list){.offset = count ? stack_offsets[i] : 0, .count = count};
    }
    return true;
}

static void write_links(const sp_dictionary *dictionary, sp_profile_data *data)
{
    data->link_count = dictionary->links.count;
    data->links = sp_arena_array(&data->memory, data->link_count, sizeof *data->links);
    for (uint32_t i = 0; i < data->link_count && data->links; i++)
        memcpy(&data->links[i], sp_intern_key(&dictionary->links, i), sizeof data->links[i]);
}

bool sp_dictionary_finish(sp_dictionary *dictionary, sp_profile_data *data)
{
    if (dictionary->failed || !write_lists_and_stacks(dictionary, data))
        return false;
    write_strings(dictionary, data);
    write_attributes(dictionary, data);
    write_mappings(dictionary, data);
    write_functions(dictionary, data);
    write_locations(dictionary, data);
    write_links(dictionary, data);
    return !data->memory.failed;
}
