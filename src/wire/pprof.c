/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes of pprof, from the end to the start (wire_buffer.h). The ids of mappings and functions
 * are their numbers in the dictionary, where 0 means none, as in pprof. The ids of locations are
 * one more than their numbers, because a stack may have the location number 0. In a sequence, ids
 * continue after those of the sources before. */
#include "wire/pprof.h"

#include <string.h>

#include "core/compiler.h"
#include "wire/pprof_tables.h"
#include "wire/wire_buffer.h"

/* The fields of proto/pprof.proto, by message. */
enum {
    PROFILE_SAMPLE_TYPES = 1,
    PROFILE_SAMPLES,
    PROFILE_MAPPINGS,
    PROFILE_LOCATIONS,
    PROFILE_FUNCTIONS,
    PROFILE_STRINGS,
    PROFILE_TIME = 9,
    PROFILE_DURATION,
    PROFILE_PERIOD_TYPE,
    PROFILE_PERIOD,
    PROFILE_COMMENTS,
    PROFILE_DEFAULT_SAMPLE_TYPE
};
enum { VALUE_TYPE_TYPE = 1, VALUE_TYPE_UNIT };
enum { SAMPLE_LOCATIONS = 1, SAMPLE_VALUES, SAMPLE_LABELS };
enum { LABEL_KEY = 1, LABEL_TEXT, LABEL_NUMBER, LABEL_UNIT };
enum {
    MAPPING_ID = 1,
    MAPPING_START,
    MAPPING_LIMIT,
    MAPPING_OFFSET,
    MAPPING_FILENAME,
    MAPPING_BUILD_ID,
    MAPPING_HAS_FUNCTIONS,
    MAPPING_HAS_FILENAMES,
    MAPPING_HAS_LINE_NUMBERS,
    MAPPING_HAS_INLINE_FRAMES
};
enum { LOCATION_ID = 1, LOCATION_MAPPING, LOCATION_ADDRESS, LOCATION_LINES };
enum { LINE_FUNCTION = 1, LINE_LINE, LINE_COLUMN };
enum {
    FUNCTION_ID = 1,
    FUNCTION_NAME,
    FUNCTION_SYSTEM_NAME,
    FUNCTION_FILENAME,
    FUNCTION_START_LINE
};

typedef struct encoder {
    sp_wire wire;
    sp_pprof_tables tables;
    const Sp__Profiles__ProfilesDictionary *dictionary;
    sp_pprof_sequence before; /* used by the sources before this one */
} encoder;

/* The number in pprof's string table of the source's string NUMBER. */
static uint64_t string_at(const encoder *e, uint64_t number)
{
    return number ? number + e->before.strings : 0;
}

/* The id of entry NUMBER of mappings or functions. */
static uint64_t id_of(const encoder *e, uint64_t number)
{
    return number ? number + e->before.ids : 0;
}

static uint64_t location_id(const encoder *e, uint64_t number)
{
    return number + 1 + e->before.ids;
}

static void put_text(encoder *e, const char *text)
{
    size_t length = strlen(text);
    uint8_t *p = sp_wire_room(&e->wire, length + SP_WIRE_FIELD_MAX);
    if (p)
        sp_wire_set(&e->wire, sp_wire_bytes(p, PROFILE_STRINGS, text, length));
}

static uint8_t *put_type(const encoder *e, uint8_t *p, unsigned field, const sp_pprof_type *type)
{
    uint8_t *end = p;
    p = sp_wire_u64(p, VALUE_TYPE_UNIT, string_at(e, type->unit));
    p = sp_wire_u64(p, VALUE_TYPE_TYPE, string_at(e, type->type));
    return sp_wire_head(p, field, end);
}

/* ---- the fields after the strings ---- */

static void put_comments(encoder *e)
{
    uint32_t count = e->tables.comments.count;
    uint64_t first = e->dictionary->n_string_table + e->tables.strings.count;
    uint8_t *p = sp_wire_room(&e->wire, ((size_t)count + 2) * SP_WIRE_FIELD_MAX), *end = p;
    if (!p || count == 0)
        return;
    for (uint32_t i = count; i-- > 0;)
        p = sp_wire_varint(p, string_at(e, first + i));
    sp_wire_set(&e->wire, sp_wire_head(p, PROFILE_COMMENTS, end));
}

static void put_facts(encoder *e)
{
    const sp_pprof_tables *tables = &e->tables;
    uint8_t *p = sp_wire_room(&e->wire, SP_WIRE_FIELD_MAX);
    if (p)
        sp_wire_set(&e->wire, sp_wire_u64(p, PROFILE_DEFAULT_SAMPLE_TYPE,
                                          string_at(e, tables->default_type)));
    put_comments(e);
    p = sp_wire_room(&e->wire, 6 * SP_WIRE_FIELD_MAX);
    if (!p)
        return;
    p = sp_wire_u64(p, PROFILE_PERIOD, (uint64_t)tables->period);
    if (tables->period_type.type)
        p = put_type(e, p, PROFILE_PERIOD_TYPE, &tables->period_type);
    p = sp_wire_u64(p, PROFILE_DURATION, tables->duration_ns);
    sp_wire_set(&e->wire, sp_wire_u64(p, PROFILE_TIME, tables->time_ns));
}

static void put_interned(encoder *e, const sp_intern *texts)
{
    for (uint32_t i = texts->count; i-- > 0;)
        put_text(e, sp_intern_key(texts, i));
}

static void put_strings(encoder *e)
{
    put_interned(e, &e->tables.comments);
    put_interned(e, &e->tables.strings);
    for (size_t i = e->dictionary->n_string_table; i-- > 0;)
        put_text(e, e->dictionary->string_table[i]);
}

/* ---- tables ---- */

static void put_function(encoder *e, size_t number)
{
    const Sp__Profiles__Function *from = e->dictionary->function_table[number];
    uint8_t *p = sp_wire_room(&e->wire, 6 * SP_WIRE_FIELD_MAX), *end = p;
    if (!p)
        return;
    p = sp_wire_u64(p, FUNCTION_START_LINE, (uint64_t)from->start_line);
    p = sp_wire_u64(p, FUNCTION_FILENAME, string_at(e, (uint64_t)from->filename_strindex));
    p = sp_wire_u64(p, FUNCTION_SYSTEM_NAME, string_at(e, (uint64_t)from->system_name_strindex));
    p = sp_wire_u64(p, FUNCTION_NAME, string_at(e, (uint64_t)from->name_strindex));
    p = sp_wire_u64(p, FUNCTION_ID, id_of(e, number));
    sp_wire_set(&e->wire, sp_wire_head(p, PROFILE_FUNCTIONS, end));
}

/* A line without a function is left out: Go's reader refuses the whole file for one. */
static uint8_t *put_line(const encoder *e, uint8_t *p, const Sp__Profiles__Line *from)
{
    uint8_t *end = p;
    if (!from->function_index)
        return p;
    p = sp_wire_u64(p, LINE_COLUMN, (uint64_t)from->column);
    p = sp_wire_u64(p, LINE_LINE, (uint64_t)from->line);
    p = sp_wire_u64(p, LINE_FUNCTION, id_of(e, (uint64_t)from->function_index));
    return sp_wire_head(p, LOCATION_LINES, end);
}

static void put_location(encoder *e, size_t number)
{
    const Sp__Profiles__Location *from = e->dictionary->location_table[number];
    uint8_t *p = sp_wire_room(&e->wire, (4 + 4 * from->n_lines) * SP_WIRE_FIELD_MAX), *end = p;
    if (!p)
        return;
    for (size_t i = from->n_lines; i-- > 0;)
        p = put_line(e, p, from->lines[i]);
    p = sp_wire_u64(p, LOCATION_ADDRESS, from->address);
    p = sp_wire_u64(p, LOCATION_MAPPING, id_of(e, (uint64_t)from->mapping_index));
    p = sp_wire_u64(p, LOCATION_ID, location_id(e, number));
    sp_wire_set(&e->wire, sp_wire_head(p, PROFILE_LOCATIONS, end));
}

/* The mapping's build id, as the number of a string: GNU's where there is one; else another kind,
 * because readers compare only the texts. */
static uint32_t build_id_of(encoder *e, const Sp__Profiles__Mapping *from)
{
    static const char prefix[] = "process.executable.build_id.";
    const char *found = "";
    for (size_t i = 0; i < from->n_attribute_indices; i++) {
        const Sp__Profiles__KeyValueAndUnit *attribute =
            e->dictionary->attribute_table[from->attribute_indices[i]];
        const char *key = e->dictionary->string_table[attribute->key_strindex];
        bool is_id = strncmp(key, prefix, sizeof prefix - 1) == 0 && attribute->value &&
                     attribute->value->value_case == SP__COMMON__ANY_VALUE__VALUE_STRING_VALUE;
        if (is_id && (!*found || strcmp(key + sizeof prefix - 1, "gnu") == 0))
            found = attribute->value->string_value;
    }
    return sp_pprof_string(&e->tables, found);
}

static void put_mapping(encoder *e, size_t number, uint32_t build_id)
{
    const Sp__Profiles__Mapping *from = e->dictionary->mapping_table[number];
    const sp_pprof_names *names = &e->tables.mapping_names[number];
    uint8_t *p = sp_wire_room(&e->wire, 11 * SP_WIRE_FIELD_MAX), *end = p;
    if (!p)
        return;
    p = sp_wire_u64(p, MAPPING_HAS_INLINE_FRAMES, names->inlined);
    p = sp_wire_u64(p, MAPPING_HAS_LINE_NUMBERS, names->lines);
    p = sp_wire_u64(p, MAPPING_HAS_FILENAMES, names->files);
    p = sp_wire_u64(p, MAPPING_HAS_FUNCTIONS, names->functions);
    p = sp_wire_u64(p, MAPPING_BUILD_ID, string_at(e, build_id));
    p = sp_wire_u64(p, MAPPING_FILENAME, string_at(e, (uint64_t)from->filename_strindex));
    p = sp_wire_u64(p, MAPPING_OFFSET, from->file_offset);
    p = sp_wire_u64(p, MAPPING_LIMIT, from->memory_limit);
    p = sp_wire_u64(p, MAPPING_START, from->memory_start);
    p = sp_wire_u64(p, MAPPING_ID, id_of(e, number));
    sp_wire_set(&e->wire, sp_wire_head(p, PROFILE_MAPPINGS, end));
}

/* The program's path from the resource, or "". */
static const char *program_of(const sp_pprof_source *source)
{
    const Sp__Resource__Resource *resource = source->part_count ? source->parts[0].resource : NULL;
    for (size_t i = 0; resource && i < resource->n_attributes; i++) {
        const Sp__Common__KeyValue *attribute = resource->attributes[i];
        if (attribute->key && strcmp(attribute->key, "process.executable.path") == 0 &&
            attribute->value &&
            attribute->value->value_case == SP__COMMON__ANY_VALUE__VALUE_STRING_VALUE)
            return attribute->value->string_value;
    }
    return "";
}

/* The number of the program's mapping, or 0. */
static size_t main_mapping(const encoder *e)
{
    const Sp__Profiles__ProfilesDictionary *d = e->dictionary;
    const char *program = program_of(e->tables.from);
    for (size_t i = 1; *program && i < d->n_mapping_table; i++)
        if (strcmp(d->string_table[d->mapping_table[i]->filename_strindex], program) == 0)
            return i;
    return 0;
}

/* The program's mapping must be the first one in pprof. Bytes are written from the end to the
 * start, so it is written last. */
static void put_mappings(encoder *e, const uint32_t *build_ids)
{
    size_t first = main_mapping(e);
    for (size_t i = e->dictionary->n_mapping_table; i-- > 1;)
        if (i != first)
            put_mapping(e, i, build_ids[i]);
    if (first)
        put_mapping(e, first, build_ids[first]);
}

static void put_tables(encoder *e, const uint32_t *build_ids)
{
    for (size_t i = e->dictionary->n_function_table; i-- > 1;)
        put_function(e, i);
    for (size_t i = e->dictionary->n_location_table; i-- > !e->tables.has_location_0;)
        put_location(e, i);
    put_mappings(e, build_ids);
}

/* ---- samples ---- */

static uint8_t *put_label(const encoder *e, uint8_t *p, const sp_pprof_label *label)
{
    uint8_t *end = p;
    if (!label->key)
        return p;
    p = sp_wire_u64(p, LABEL_UNIT, string_at(e, label->unit));
    p = sp_wire_u64(p, LABEL_NUMBER, (uint64_t)label->number);
    p = sp_wire_u64(p, LABEL_TEXT, string_at(e, label->text));
    p = sp_wire_u64(p, LABEL_KEY, string_at(e, label->key));
    return sp_wire_head(p, SAMPLE_LABELS, end);
}

static uint8_t *put_values(uint8_t *p, const int64_t *values, size_t count)
{
    uint8_t *end = p;
    for (size_t i = count; i-- > 0;)
        p = sp_wire_varint(p, (uint64_t)values[i]);
    return sp_wire_head(p, SAMPLE_VALUES, end);
}

static uint8_t *put_stack(const encoder *e, uint8_t *p, const Sp__Profiles__Stack *stack)
{
    uint8_t *end = p;
    if (stack->n_location_indices == 0)
        return p;
    for (size_t i = stack->n_location_indices; i-- > 0;)
        p = sp_wire_varint(p, location_id(e, (uint64_t)stack->location_indices[i]));
    return sp_wire_head(p, SAMPLE_LOCATIONS, end);
}

static void put_sample(encoder *e, uint32_t number)
{
    const sp_pprof_tables *tables = &e->tables;
    const sp_intern_entry *entry = &tables->samples.entries[number];
    const sp_pprof_key *key = entry->key;
    const int32_t *attributes = (const int32_t *)(key + 1);
    size_t attribute_count = (entry->length - sizeof *key) / sizeof *attributes;
    const Sp__Profiles__Stack *stack = e->dictionary->stack_table[key->stack];
    size_t fields = 3 + tables->type_count + stack->n_location_indices +
                    5 * (attribute_count + SP_PPROF_LINK_LABELS);
    uint8_t *p = sp_wire_room(&e->wire, fields * SP_WIRE_FIELD_MAX), *end = p;
    if (!p)
        return;
    for (size_t i = attribute_count; i-- > 0;)
        p = put_label(e, p, &tables->attribute_labels[attributes[i]]);
    for (size_t i = SP_PPROF_LINK_LABELS; i-- > 0;)
        p = put_label(e, p, &tables->link_labels[key->link][i]);
    p = put_values(p, tables->values + number * tables->type_count, tables->type_count);
    p = put_stack(e, p, stack);
    sp_wire_set(&e->wire, sp_wire_head(p, PROFILE_SAMPLES, end));
}

static void put_types(encoder *e)
{
    uint8_t *p = sp_wire_room(&e->wire, 3 * e->tables.type_count * SP_WIRE_FIELD_MAX);
    for (size_t i = e->tables.type_count; p && i-- > 0;)
        p = put_type(e, p, PROFILE_SAMPLE_TYPES, &e->tables.types[i]);
    if (p)
        sp_wire_set(&e->wire, p);
}

/* Find the build ids of all mappings before anything is written: they are strings, and the string
 * table is written before the mappings. */
static uint32_t *find_build_ids(encoder *e)
{
    size_t count = e->dictionary->n_mapping_table;
    uint32_t *ids = sp_arena_array(&e->tables.memory, count + 1, sizeof *ids);
    for (size_t i = 1; ids && i < count; i++)
        ids[i] = build_id_of(e, e->dictionary->mapping_table[i]);
    return e->tables.failed ? NULL : ids;
}

/* Set the times of E's source as a part of a sequence. Only the first source with a profile writes
 * the start. Each later one writes the duration of the whole so far, because readers use the last
 * value of a field that is written twice. */
static void take_turn(encoder *e)
{
    sp_pprof_tables *tables = &e->tables;
    if (!e->before.start_ns || !tables->from->part_count)
        return;
    tables->duration_ns = tables->time_ns + tables->duration_ns - e->before.start_ns;
    tables->time_ns = 0;
}

/* Count all strings of E as used, and as many ids as its largest table has entries. */
static void end_turn(const encoder *e, sp_pprof_sequence *sequence)
{
    const Sp__Profiles__ProfilesDictionary *d = e->dictionary;
    if (!sequence->start_ns)
        sequence->start_ns = e->tables.time_ns;
    sequence->has_begun = true;
    sequence->strings += d->n_string_table + e->tables.strings.count + e->tables.comments.count;
    sequence->ids +=
        sp_max_u64(d->n_location_table + 1, sp_max_u64(d->n_mapping_table, d->n_function_table));
}

bool sp_pprof_write(sp_buffer *out, const sp_pprof_source *source)
{
    encoder e = {.wire.maximum = out->maximum, .dictionary = source->dictionary};
    if (source->sequence)
        e.before = *source->sequence;
    bool filled = sp_pprof_tables_fill(&e.tables, source);
    const uint32_t *build_ids = filled ? find_build_ids(&e) : NULL;
    if (build_ids) {
        take_turn(&e);
        put_facts(&e);
        put_strings(&e);
        put_tables(&e, build_ids);
        for (uint32_t i = e.tables.samples.count; i-- > 0;)
            put_sample(&e, i);
        if (!e.before.has_begun)
            put_types(&e);
    }
    bool done = build_ids && sp_wire_finish(&e.wire, out);
    if (done && source->sequence)
        end_turn(&e, source->sequence);
    out->failed |= !done;
    sp_wire_deinit(&e.wire);
    sp_pprof_tables_deinit(&e.tables);
    return done;
}
