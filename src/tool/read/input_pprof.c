/* SPDX-License-Identifier: Apache-2.0 */
/* Reads pprof. Each sample type becomes an OTLP profile. Labels that name a span become links;
 * other labels become attributes of the sample. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/env.h"
#include "core/hex.h"
#include "core/reach.h"
#include "proto/pprof.pb-c.h"
#include "tool/read/foreign_profile.h"
#include "tool/read/wire.h"
#include "tool/text/messages.h"
#include "wire/unpack.h"

#define MAX_MEMORY_BYTES ((uint64_t)8 << 30)

sp_input_likeness sp_input_is_pprof(const uint8_t *data, size_t length)
{
    enum { SAMPLE_TYPE = 1, STRING_TABLE = 6 };
    uint32_t needed = 1u << SAMPLE_TYPE | 1u << STRING_TABLE;
    sp_wire_report report =
        sp_wire_check(&sp__pprof__profile__descriptor, data, 0, SP_WIRE_TO_THE_END, length);
    bool has_types = report.top_level_set & 1u << SAMPLE_TYPE;
    if (report.memory_bytes > MAX_MEMORY_BYTES)
        return SP_INPUT_OTHER;
    if (report.result == SP_WIRE_CUT && has_types && report.unknown == 0 && report.fields > 8)
        return SP_INPUT_CUT;
    return report.result == SP_WIRE_FINE && (report.top_level_set & needed) == needed
               ? SP_INPUT_LIKE
               : SP_INPUT_OTHER;
}

/* Maps an id to an index of a table: pprof's ids may be any numbers. */
typedef struct id_index {
    uint64_t id;
    int32_t index;
} id_index;

typedef struct id_map {
    id_index *items;
    size_t count;
} id_map;

typedef struct reader {
    sp_foreign foreign;
    const Sp__Pprof__Profile *from;
    const char *path;
    id_map mappings, functions, locations;
    sp_foreign_profile *profiles; /* one for each sample type; `type` is 0 if it is left out */
    sp_foreign_line *lines;
    int32_t *stack, *attributes;
    size_t line_capacity, stack_capacity, attribute_capacity;
    size_t sample; /* the index of the sample that is being read, for messages */
    int status;
} reader;

/* Report that INDEX of TABLE does not exist. Only the first mistake is reported, because reading
 * ends soon after it. */
static bool fail(reader *reader, const char *table, int64_t index)
{
    if (reader->status != SP_TOOL_DONE)
        return false;
    reader->status = sp_tool_wrong("%s: pprof, sample %zu: leads to %s %" PRId64
                                   ", which is not there; the file is damaged, record it again",
                                   reader->path, reader->sample, table, index);
    return false;
}

static bool fail_memory(reader *reader)
{
    reader->status = sp_tool_no_memory();
    return false;
}

/* ---- ids ---- */

static int by_id(const void *a, const void *b)
{
    const id_index *x = a, *y = b;
    if (x->id != y->id)
        return x->id < y->id ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

static bool open_map(id_map *map, size_t count)
{
    map->items = calloc(count + 1, sizeof *map->items);
    return map->items;
}

static void close_map(id_map *map)
{
    qsort(map->items, map->count, sizeof *map->items, by_id);
}

static void map_add(id_map *map, uint64_t id, int32_t index)
{
    map->items[map->count++] = (id_index){.id = id, .index = index};
}

static bool map_find(const id_map *map, uint64_t id, int32_t *out)
{
    size_t low = 0, high = map->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (map->items[middle].id < id)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == map->count || map->items[low].id != id)
        return false;
    *out = map->items[low].index;
    return true;
}

/* ---- tables ---- */

static const char *text_of(reader *reader, int64_t index)
{
    if (index >= 0 && (uint64_t)index < reader->from->n_string_table)
        return reader->from->string_table[index];
    fail(reader, "string", index);
    return "";
}

static int32_t put_text(reader *reader, int64_t index)
{
    const char *text = text_of(reader, index);
    return sp_foreign_string(&reader->foreign, text, strlen(text));
}

static int32_t put_word(reader *reader, const char *word)
{
    return sp_foreign_string(&reader->foreign, word, strlen(word));
}

static int32_t put_build_id(reader *reader, int64_t index)
{
    if (!*text_of(reader, index))
        return 0;
    sp_foreign_attribute attribute = {.key = put_word(reader, "process.executable.build_id.gnu"),
                                      .text = put_text(reader, index),
                                      .is_text = true};
    return sp_foreign_attribute_put(&reader->foreign, &attribute);
}

static void read_mappings(reader *reader)
{
    for (size_t i = 0; i < reader->from->n_mapping; i++) {
        const Sp__Pprof__Mapping *from = reader->from->mapping[i];
        sp_foreign_mapping mapping = {.start = from->memory_start,
                                      .limit = from->memory_limit,
                                      .offset = from->file_offset,
                                      .file = put_text(reader, from->filename),
                                      .build_id = put_build_id(reader, from->build_id)};
        map_add(&reader->mappings, from->id, sp_foreign_mapping_put(&reader->foreign, &mapping));
    }
    close_map(&reader->mappings);
}

static void read_functions(reader *reader)
{
    for (size_t i = 0; i < reader->from->n_function; i++) {
        const Sp__Pprof__Function *from = reader->from->function[i];
        sp_foreign_function function = {.start_line = from->start_line,
                                        .name = put_text(reader, from->name),
                                        .system_name = put_text(reader, from->system_name),
                                        .file = put_text(reader, from->filename)};
        map_add(&reader->functions, from->id, sp_foreign_function_put(&reader->foreign, &function));
    }
    close_map(&reader->functions);
}

static bool read_location(reader *reader, const Sp__Pprof__Location *from)
{
    int32_t mapping = 0;
    if (from->mapping_id && !map_find(&reader->mappings, from->mapping_id, &mapping))
        return fail(reader, "mapping", (int64_t)from->mapping_id);
    for (size_t i = 0; i < from->n_line; i++) {
        int32_t function = 0;
        if (from->line[i]->function_id &&
            !map_find(&reader->functions, from->line[i]->function_id, &function))
            return fail(reader, "function", (int64_t)from->line[i]->function_id);
        if (!SP_REACH(reader->lines, i, reader->line_capacity, 16))
            return fail_memory(reader);
        reader->lines[i] = (sp_foreign_line){
            .function = function, .line = from->line[i]->line, .column = from->line[i]->column};
    }
    map_add(
        &reader->locations, from->id,
        sp_foreign_location(&reader->foreign, mapping, from->address, reader->lines, from->n_line));
    return true;
}

static void read_locations(reader *reader)
{
    for (size_t i = 0; reader->status == SP_TOOL_DONE && i < reader->from->n_location; i++)
        read_location(reader, reader->from->location[i]);
    close_map(&reader->locations);
}

/* ---- labels ---- */

/* What the labels of a sample say about its span. */
typedef struct span_labels {
    sp_foreign_link link;
    unsigned rank; /* of the label that gave the span id; 0: none yet */
} span_labels;

static void id_of_number(uint8_t out[8], uint64_t number)
{
    for (int i = 7; i >= 0; i--, number >>= 8)
        out[i] = (uint8_t)number;
}

/* Parse TEXT as an id of COUNT bytes: two hex digits for each byte, optionally after 0x. */
static bool parse_hex(const char *text, uint8_t *out, size_t count)
{
    const char *digits = strncmp(text, "0x", 2) == 0 ? text + 2 : text;
    return strlen(digits) == 2 * count && sp_hex_decode(out, digits, count, true);
}

/* Parse a span id of Datadog: a number, a text of decimal digits, or a text of 16 hex digits. */
static bool parse_datadog(const Sp__Pprof__Label *label, const char *text, uint8_t out[8])
{
    uint64_t number = (uint64_t)label->num;
    if (!label->str || sp_parse_u64(text, &number)) {
        id_of_number(out, number);
        return true;
    }
    return parse_hex(text, out, 8);
}

/* Put what LABEL says about the sample's span into LABELS. The innermost span counts rather than
 * the local root. False: the label becomes an attribute; so does a local root's label when another
 * label has already named the span. */
static bool take_span_label(span_labels *labels, const Sp__Pprof__Label *label, const char *key,
                            const char *text)
{
    static const struct {
        const char *key;
        bool datadog;
        unsigned rank;
    } keys[] = {{"span_id", false, 4},
                {"span id", true, 3},
                {"profile_id", false, 2},
                {"local root span id", true, 1}};
    if (strcmp(key, "trace_id") == 0)
        return parse_hex(text, labels->link.trace_id, 16);
    for (size_t i = 0; i < SP_ARRAY_LENGTH(keys); i++) {
        uint8_t id[8];
        if (strcmp(key, keys[i].key) != 0)
            continue;
        if (!(keys[i].datadog ? parse_datadog(label, text, id) : parse_hex(text, id, 8)))
            return false;
        if (keys[i].rank < labels->rank)
            return keys[i].rank != 1;
        memcpy(labels->link.span_id, id, sizeof id);
        labels->rank = keys[i].rank;
        return true;
    }
    return false;
}

/* Whether LABEL is a thread id; *OUT is the id. pprof has it as a text (docs/formats/files.md). */
static bool is_thread_id(reader *reader, const Sp__Pprof__Label *label, uint64_t *out)
{
    return label->str && strcmp(text_of(reader, label->key), "thread.id") == 0 &&
           sp_parse_u64(text_of(reader, label->str), out) && *out <= INT64_MAX;
}

static int32_t put_label(reader *reader, const Sp__Pprof__Label *label)
{
    uint64_t thread = 0;
    bool is_thread = is_thread_id(reader, label, &thread), is_text = label->str && !is_thread;
    int64_t number = is_thread ? (int64_t)thread : label->num;
    sp_foreign_attribute attribute = {.key = put_text(reader, label->key),
                                      .unit = put_text(reader, label->num_unit),
                                      .number = is_text ? 0 : number,
                                      .text = is_text ? put_text(reader, label->str) : 0,
                                      .is_text = is_text};
    return sp_foreign_attribute_put(&reader->foreign, &attribute);
}

static bool read_labels(reader *reader, const Sp__Pprof__Sample *from, sp_foreign_sample *to)
{
    span_labels labels = {0};
    for (size_t i = 0; i < from->n_label; i++) {
        const Sp__Pprof__Label *label = from->label[i];
        if (take_span_label(&labels, label, text_of(reader, label->key),
                            text_of(reader, label->str)))
            continue;
        if (!SP_REACH(reader->attributes, to->attribute_count, reader->attribute_capacity, 16))
            return fail_memory(reader);
        reader->attributes[to->attribute_count++] = put_label(reader, label);
    }
    to->link = sp_foreign_link_put(&reader->foreign, &labels.link);
    to->attributes = to->attribute_count
                         ? sp_arena_memdup(reader->foreign.memory, reader->attributes,
                                           to->attribute_count * sizeof *reader->attributes)
                         : NULL;
    return true;
}

/* ---- samples ---- */

static bool read_stack(reader *reader, const Sp__Pprof__Sample *from, int32_t *out)
{
    for (size_t i = 0; i < from->n_location_id; i++) {
        if (!SP_REACH(reader->stack, i, reader->stack_capacity, 64))
            return fail_memory(reader);
        if (!map_find(&reader->locations, from->location_id[i], &reader->stack[i]))
            return fail(reader, "location", (int64_t)from->location_id[i]);
    }
    *out = sp_foreign_stack(&reader->foreign, reader->stack, from->n_location_id);
    return true;
}

static bool read_sample(reader *reader, const Sp__Pprof__Sample *from)
{
    sp_foreign_sample sample = {0};
    if (!read_stack(reader, from, &sample.stack) || !read_labels(reader, from, &sample))
        return false;
    for (size_t i = 0; i < reader->from->n_sample_type && i < from->n_value; i++) {
        sample.value = from->value[i];
        if (sample.value && reader->profiles[i].type)
            sp_foreign_add(&reader->foreign, &reader->profiles[i], &sample);
    }
    return true;
}

/* ---- types ---- */

static bool is_type(reader *reader, const Sp__Pprof__ValueType *type, const char *name,
                    const char *unit)
{
    return strcmp(text_of(reader, type->type), name) == 0 &&
           strcmp(text_of(reader, type->unit), unit) == 0;
}

/* Whether TYPE only counts the samples whose value another sample type has, in the period's type
 * and unit. The command would take both for the same measurement and add them up. */
static bool counts_another(reader *reader, const Sp__Pprof__ValueType *type)
{
    const Sp__Pprof__ValueType *period = reader->from->period_type;
    if (!period || !is_type(reader, type, "samples", "count"))
        return false;
    for (size_t i = 0; i < reader->from->n_sample_type; i++)
        if (is_type(reader, reader->from->sample_type[i], text_of(reader, period->type),
                    text_of(reader, period->unit)))
            return true;
    return false;
}

static void read_types(reader *reader)
{
    const Sp__Pprof__Profile *from = reader->from;
    for (size_t i = 0; i < from->n_sample_type; i++) {
        if (counts_another(reader, from->sample_type[i]))
            continue;
        sp_foreign_profile *to = &reader->profiles[i];
        to->type = put_text(reader, from->sample_type[i]->type);
        to->unit = put_text(reader, from->sample_type[i]->unit);
        to->period = from->period;
        to->time_ns = (uint64_t)from->time_nanos;
        to->duration_ns = (uint64_t)from->duration_nanos;
        if (from->period_type) {
            to->period_type = put_text(reader, from->period_type->type);
            to->period_unit = put_text(reader, from->period_type->unit);
        }
    }
}

/* Move the profiles that are not left out to the front. Returns how many they are. */
static size_t keep_profiles(reader *reader)
{
    size_t kept = 0;
    for (size_t i = 0; i < reader->from->n_sample_type; i++) {
        sp_foreign_profile profile = reader->profiles[i];
        if (!profile.type)
            continue;
        reader->profiles[i] = (sp_foreign_profile){0};
        reader->profiles[kept++] = profile;
    }
    return kept;
}

static ProtobufCMessage *read_all(reader *reader)
{
    const Sp__Pprof__Profile *from = reader->from;
    reader->profiles = calloc(from->n_sample_type + 1, sizeof *reader->profiles);
    if (!reader->profiles || !open_map(&reader->mappings, from->n_mapping) ||
        !open_map(&reader->functions, from->n_function) ||
        !open_map(&reader->locations, from->n_location)) {
        fail_memory(reader);
        return NULL;
    }
    read_types(reader);
    read_mappings(reader);
    read_functions(reader);
    read_locations(reader);
    for (size_t i = 0; reader->status == SP_TOOL_DONE && i < from->n_sample; i++) {
        reader->sample = i;
        read_sample(reader, from->sample[i]);
    }
    if (reader->status != SP_TOOL_DONE)
        return NULL;
    size_t kept = keep_profiles(reader);
    ProtobufCMessage *made = sp_foreign_take(&reader->foreign, reader->profiles, kept);
    if (!made)
        fail_memory(reader);
    return made;
}

static void forget(reader *reader)
{
    sp_foreign_deinit(&reader->foreign);
    for (size_t i = 0; reader->profiles && i < reader->from->n_sample_type; i++)
        free(reader->profiles[i].samples);
    free(reader->profiles);
    free(reader->mappings.items);
    free(reader->functions.items);
    free(reader->locations.items);
    free(reader->lines);
    free(reader->stack);
    free(reader->attributes);
}

int sp_input_read_pprof(sp_input *input, const char *path, const uint8_t *data, size_t length)
{
    ProtobufCMessage *message = sp_otlp_unpack(&sp__pprof__profile__descriptor, data, length);
    if (!message)
        return sp_tool_wrong("%s: the pprof profile cannot be unpacked: memory is short, or it is "
                             "damaged",
                             path);
    reader reader = {.from = (const Sp__Pprof__Profile *)message, .path = path};
    sp_foreign_init(&reader.foreign, &input->memory);
    ProtobufCMessage *made = read_all(&reader);
    int status = made ? sp_input_add(input, path, SP_SIGNAL_PROFILES, length, made) : reader.status;
    forget(&reader);
    protobuf_c_message_free_unpacked(message, NULL);
    return status;
}
