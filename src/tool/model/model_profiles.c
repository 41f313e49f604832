/* SPDX-License-Identifier: Apache-2.0 */
/* Reads profiles into samples of the model: stacks of a dictionary become arrays of names, links
 * become ids, and values are converted to the unit of the type. An index outside its table ends the
 * reading with an error, because the rest would be a guess. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tool/model/model.h"
#include "tool/model/sum.h"
#include "tool/text/messages.h"
#include "core/compiler.h"
#include "core/hex.h"
#include "core/path.h"
#include "core/reach.h"

/* What an entry of the attribute table says about a wait, a lock, the holder of a lock, a live
 * block or a thread. All zero: nothing. */
typedef struct wait_attribute {
    sp_where where;
    sp_outlived outlived;
    uint32_t descriptor, age, holder_stack; /* strings of the model, plus 1 */
    uint32_t lock_name, lock_address;       /* strings of the model, plus 1 */
    const char *holder_trace, *holder_span; /* hex; NULL: unknown */
    const char *thread;                     /* name of a thread; NULL: unknown */
    bool is_thread_id;
    int64_t thread_id;
} wait_attribute;

/* The frames of a location, once they are known: `count` frames of `known_frames`, from `first` on.
 * They are kept because a location usually occurs in many stacks. */
typedef struct location_frames {
    uint32_t first, count;
    bool is_known;
} location_frames;

/* The state while one message is read. The arrays of numbers have, by index in the dictionary, the
 * model's number plus 1; 0: not looked up yet. */
typedef struct profile_reader {
    sp_model *model;
    const sp_document *document;
    const Sp__Profiles__ProfilesDictionary *dictionary;
    uint32_t *stack_numbers, *link_numbers;
    uint32_t *function_names; /* by entry of the function table: a string, plus 1 */
    wait_attribute *waits;    /* by entry of the attribute table */
    uint32_t *frames;         /* of the stack that is being built */
    size_t frame_count, frame_capacity;
    location_frames *locations; /* by entry of the location table */
    uint32_t *known_frames;
    size_t known_count, known_capacity;
    const char *service, *instance; /* of the resource that is being read */
    const Sp__Resource__Resource *resource;
    bool is_base; /* the profile is the earlier snapshot that the last one is compared with */
    size_t profile, sample; /* the current position, for messages */
    int status;
} profile_reader;

static bool is_silent(const profile_reader *reader)
{
    return reader->model->is_silent;
}

static bool fail_index(profile_reader *reader, const char *table, int32_t index, size_t count)
{
    char name[SP_DOCUMENT_NAME_LENGTH];
    reader->status = SP_TOOL_WRONG;
    if (is_silent(reader))
        return false;
    reader->status = sp_tool_wrong("%s: profile %zu, sample %zu: leads to %s[%" PRId32
                                   "], but that table has %zu entries; "
                                   "`spanprof check` lists all mistakes",
                                   sp_document_name(name, reader->document), reader->profile,
                                   reader->sample, table, index, count);
    return false;
}

static bool fail_memory(profile_reader *reader)
{
    reader->status = is_silent(reader) ? SP_TOOL_WRONG : sp_tool_no_memory();
    return false;
}

/* Index 0 means "none" if the table has no entries at all. */
static bool is_none(int32_t index, size_t count)
{
    return index == 0 && count == 0;
}

/* Returns NULL when INDEX is outside the table. */
static const char *table_string(const Sp__Profiles__ProfilesDictionary *dictionary, int32_t index)
{
    if (is_none(index, dictionary->n_string_table))
        return "";
    return index >= 0 && (size_t)index < dictionary->n_string_table
               ? dictionary->string_table[index]
               : NULL;
}

/* ---- stacks ---- */

static bool push_string(profile_reader *reader, uint32_t string)
{
    if (string == SP_INTERN_FAILED ||
        !SP_REACH(reader->frames, reader->frame_count, reader->frame_capacity, 128))
        return fail_memory(reader);
    reader->frames[reader->frame_count++] = string;
    return true;
}

static bool push_frame(profile_reader *reader, const char *name)
{
    return push_string(reader, sp_model_string(reader->model, name));
}

/* Note what the function with the name STRING is called in each style. */
static bool note_names(sp_model *model, uint32_t string, const char *name, const char *symbol,
                       const char *file)
{
    sp_buffer shown = SP_BUFFER_INIT(1 << 29);
    bool done = true;
    for (int i = 0; done && i < SP_NAMES_STYLES; i++) {
        sp_demangle_style style = (sp_demangle_style)i;
        done = sp_names_show(&model->names, style, name, symbol, file, &shown) &&
               sp_model_note_name(model, string, style, (const char *)shown.data);
    }
    sp_buffer_deinit(&shown);
    return done;
}

/* The name of a function in the style that was asked for, else the recorded name. */
static uint32_t rename_function(sp_model *model, const char *name, const char *symbol,
                                const char *file)
{
    sp_buffer shown = SP_BUFFER_INIT(1 << 29);
    uint32_t string = SP_INTERN_FAILED;
    if (!model->options.renames)
        return sp_model_string(model, name);
    if (sp_names_show(&model->names, model->options.style, name, symbol, file, &shown))
        string = sp_model_string(model, (const char *)shown.data);
    sp_buffer_deinit(&shown);
    if (string != SP_INTERN_FAILED && model->options.all_styles &&
        !note_names(model, string, name, symbol, file))
        return SP_INTERN_FAILED;
    return string;
}

/* Note the place of the frame that was pushed last. */
static bool note_place(profile_reader *reader, const char *file, const char *module, int64_t line)
{
    uint32_t string = reader->frames[reader->frame_count - 1];
    return sp_model_note_place(reader->model, string, file, module, line) || fail_memory(reader);
}

/* The path of the module of LOCATION; "": it has no file. NULL: its index is outside the table of
 * mappings. */
static const char *module_path(profile_reader *reader, const Sp__Profiles__Location *location)
{
    const Sp__Profiles__ProfilesDictionary *d = reader->dictionary;
    int32_t index = location->mapping_index;
    if (is_none(index, d->n_mapping_table))
        return "";
    if (index < 0 || (size_t)index >= d->n_mapping_table)
        return NULL;
    const char *file = table_string(d, d->mapping_table[index]->filename_strindex);
    return file ? file : "";
}

/* Push a frame without a symbol. Its name has the form that our symbolizer writes. */
static bool push_address(profile_reader *reader, const Sp__Profiles__Location *location)
{
    const char *path = module_path(reader, location);
    if (!path)
        return fail_index(reader, "mapping_table", location->mapping_index,
                          reader->dictionary->n_mapping_table);
    char name[320];
    snprintf(name, sizeof name, "%.280s+0x%" PRIx64, *path ? sp_path_base(path) : "[unknown]",
             location->address);
    return push_frame(reader, name) && note_place(reader, "", sp_path_base(path), 0);
}

static bool push_line(profile_reader *reader, const Sp__Profiles__Location *location,
                      const Sp__Profiles__Line *line)
{
    const Sp__Profiles__ProfilesDictionary *d = reader->dictionary;
    if (is_none(line->function_index, d->n_function_table))
        return push_address(reader, location);
    if (line->function_index < 0 || (size_t)line->function_index >= d->n_function_table)
        return fail_index(reader, "function_table", line->function_index, d->n_function_table);
    const Sp__Profiles__Function *function = d->function_table[line->function_index];
    const char *name = table_string(d, function->name_strindex);
    if (!name)
        return fail_index(reader, "string_table", function->name_strindex, d->n_string_table);
    if (!*name)
        name = table_string(d, function->system_name_strindex);
    if (!name || !*name)
        return push_address(reader, location);
    const char *file = table_string(d, function->filename_strindex);
    const char *symbol = table_string(d, function->system_name_strindex);
    const char *module = module_path(reader, location);
    uint32_t *known = &reader->function_names[line->function_index];
    if (!*known)
        *known = rename_function(reader->model, name, symbol ? symbol : "", file ? file : "") + 1;
    return push_string(reader, *known - 1) &&
           note_place(reader, file ? file : "", module ? sp_path_base(module) : "", line->line);
}

static bool push_lines(profile_reader *reader, const Sp__Profiles__Location *location)
{
    if (location->n_lines == 0)
        return push_address(reader, location);
    for (size_t i = 0; i < location->n_lines; i++)
        if (!push_line(reader, location, location->lines[i]))
            return false;
    return true;
}

/* Keep the frames from number FIRST on as the frames of the location that OUT describes. */
static bool keep_frames(profile_reader *reader, size_t first, location_frames *out)
{
    size_t count = reader->frame_count - first;
    if (!SP_REACH(reader->known_frames, reader->known_count + count, reader->known_capacity, 1024))
        return fail_memory(reader);
    *out = (location_frames){(uint32_t)reader->known_count, (uint32_t)count, true};
    memcpy(reader->known_frames + reader->known_count, reader->frames + first,
           count * sizeof *reader->frames);
    reader->known_count += count;
    return true;
}

static bool push_known(profile_reader *reader, const location_frames *known)
{
    for (uint32_t i = 0; i < known->count; i++)
        if (!push_string(reader, reader->known_frames[known->first + i]))
            return false;
    return true;
}

static bool push_location(profile_reader *reader, int32_t index)
{
    static const Sp__Profiles__Location none = SP__PROFILES__LOCATION__INIT;
    const Sp__Profiles__ProfilesDictionary *d = reader->dictionary;
    if (is_none(index, d->n_location_table))
        return push_address(reader, &none);
    if (index < 0 || (size_t)index >= d->n_location_table)
        return fail_index(reader, "location_table", index, d->n_location_table);
    location_frames *known = &reader->locations[index];
    if (known->is_known)
        return push_known(reader, known);
    size_t first = reader->frame_count;
    return push_lines(reader, d->location_table[index]) && keep_frames(reader, first, known);
}

/* Store the model's number of the dictionary's stack INDEX in *OUT. */
static bool find_stack(profile_reader *reader, int32_t index, uint32_t *out)
{
    static const Sp__Profiles__Stack none = SP__PROFILES__STACK__INIT;
    const Sp__Profiles__ProfilesDictionary *d = reader->dictionary;
    bool is_there = index >= 0 && (size_t)index < d->n_stack_table;
    if (!is_there && !is_none(index, d->n_stack_table))
        return fail_index(reader, "stack_table", index, d->n_stack_table);
    if (reader->stack_numbers[index] == 0) {
        const Sp__Profiles__Stack *stack = is_there ? d->stack_table[index] : &none;
        reader->frame_count = 0;
        for (size_t i = 0; i < stack->n_location_indices; i++)
            if (!push_location(reader, stack->location_indices[i]))
                return false;
        uint32_t number =
            sp_intern_put(&reader->model->stacks, reader->frame_count ? (void *)reader->frames : "",
                          reader->frame_count * sizeof *reader->frames, NULL);
        if (number == SP_INTERN_FAILED)
            return fail_memory(reader);
        reader->stack_numbers[index] = number + 1;
    }
    *out = reader->stack_numbers[index] - 1;
    return true;
}

/* Links made from labels of another profiler may be like this. */
static bool has_span_id_only(const sp_model_link *link)
{
    static const sp_model_link none;
    return memcmp(link->trace_id, none.trace_id, sizeof none.trace_id) == 0 &&
           memcmp(link->span_id, none.span_id, sizeof none.span_id) != 0;
}

uint32_t sp_model_put_link(sp_model *model, const sp_model_link *link)
{
    sp_model_link key = *link;
    if (!model->whole && has_span_id_only(&key) && !sp_model_complete_link(model, &key))
        return SP_INTERN_FAILED;
    return sp_intern_put(&model->links, &key, sizeof key, NULL);
}

static bool find_link(profile_reader *reader, int32_t index, uint32_t *out)
{
    const Sp__Profiles__ProfilesDictionary *d = reader->dictionary;
    *out = 0;
    if (index == 0)
        return true;
    if (index < 0 || (size_t)index >= d->n_link_table)
        return fail_index(reader, "link_table", index, d->n_link_table);
    if (reader->link_numbers[index] == 0) {
        const Sp__Profiles__Link *link = d->link_table[index];
        sp_model_link key = {0};
        if (link->trace_id.len == sizeof key.trace_id)
            memcpy(key.trace_id, link->trace_id.data, sizeof key.trace_id);
        if (link->span_id.len == sizeof key.span_id)
            memcpy(key.span_id, link->span_id.data, sizeof key.span_id);
        uint32_t number = sp_model_put_link(reader->model, &key);
        if (number == SP_INTERN_FAILED)
            return fail_memory(reader);
        reader->link_numbers[index] = number + 1;
    }
    *out = reader->link_numbers[index] - 1;
    return true;
}

/* ---- waits ---- */

/* Put TEXT into the model's strings, and its number plus 1 into *OUT. */
static bool put_text(profile_reader *reader, const char *text, uint32_t *out)
{
    uint32_t string = sp_model_string(reader->model, text);
    *out = string + 1;
    return string != SP_INTERN_FAILED || fail_memory(reader);
}

static sp_outlived outlived_of_word(const char *word)
{
    return strcmp(word, "request") == 0 ? SP_OUTLIVED_REQUEST
           : strcmp(word, "span") == 0  ? SP_OUTLIVED_SPAN
                                        : SP_OUTLIVED_NONE;
}

/* An unknown word of SP_WHERE_KEY still means a wait: SP_WHERE_OTHER. */
static bool read_attribute(profile_reader *reader, const char *key, const char *text,
                           wait_attribute *out)
{
    if (strcmp(key, SP_WHERE_KEY) == 0) {
        sp_where where = sp_where_of_word(text);
        out->where = where == SP_WHERE_CPU ? SP_WHERE_OTHER : where;
    } else if (strcmp(key, SP_LIVE_OUTLIVED_KEY) == 0) {
        out->outlived = outlived_of_word(text);
    } else if (strcmp(key, SP_WHERE_DESCRIPTOR_KEY) == 0) {
        return put_text(reader, text, &out->descriptor);
    } else if (strcmp(key, SP_LIVE_AGE_KEY) == 0) {
        return put_text(reader, text, &out->age);
    } else if (strcmp(key, SP_HOLDER_TRACE_KEY) == 0) {
        out->holder_trace = text;
    } else if (strcmp(key, SP_HOLDER_SPAN_KEY) == 0) {
        out->holder_span = text;
    } else if (strcmp(key, SP_HOLDER_STACK_KEY) == 0) {
        return put_text(reader, text, &out->holder_stack);
    } else if (strcmp(key, SP_LOCK_NAME_KEY) == 0) {
        return put_text(reader, text, &out->lock_name);
    } else if (strcmp(key, SP_LOCK_ADDRESS_KEY) == 0) {
        return put_text(reader, text, &out->lock_address);
    } else if (strcmp(key, "thread.name") == 0) {
        out->thread = text;
    }
    return true;
}

static void read_thread_id(const char *key, const Sp__Common__AnyValue *value, wait_attribute *out)
{
    out->is_thread_id = value && value->value_case == SP__COMMON__ANY_VALUE__VALUE_INT_VALUE &&
                        strcmp(key, "thread.id") == 0;
    if (out->is_thread_id)
        out->thread_id = value->int_value;
}

static bool read_wait_attributes(profile_reader *reader)
{
    const Sp__Profiles__ProfilesDictionary *d = reader->dictionary;
    for (size_t i = 0; i < d->n_attribute_table; i++) {
        const char *key = table_string(d, d->attribute_table[i]->key_strindex);
        const char *text = sp_value_text(d->attribute_table[i]->value, d);
        if (key)
            read_thread_id(key, d->attribute_table[i]->value, &reader->waits[i]);
        if (key && *text && !read_attribute(reader, key, text, &reader->waits[i]))
            return false;
    }
    return true;
}

/* Find the number of the holder's link. Texts that are not a pair of ids name no holder. */
static bool find_holder(profile_reader *reader, const char *trace, const char *span, uint32_t *out)
{
    sp_model_link key;
    if (!trace || !span || strlen(trace) != 2 * sizeof key.trace_id ||
        strlen(span) != 2 * sizeof key.span_id ||
        !sp_hex_decode(key.trace_id, trace, sizeof key.trace_id, true) ||
        !sp_hex_decode(key.span_id, span, sizeof key.span_id, true))
        return true;
    *out = sp_model_put_link(reader->model, &key);
    return *out != SP_INTERN_FAILED || fail_memory(reader);
}

static void take_attribute(const wait_attribute *attribute, sp_model_sample *sample,
                           sp_model_lock *lock)
{
    if (attribute->where != SP_WHERE_CPU)
        sample->where = attribute->where;
    if (attribute->descriptor)
        sample->descriptor = attribute->descriptor - 1;
    if (attribute->outlived != SP_OUTLIVED_NONE)
        sample->outlived = attribute->outlived;
    if (attribute->age)
        sample->age = attribute->age - 1;
    if (attribute->holder_stack)
        sample->holder_stack = attribute->holder_stack - 1;
    if (attribute->lock_name)
        lock->name = attribute->lock_name - 1;
    if (attribute->lock_address)
        lock->address = attribute->lock_address - 1;
}

static bool find_lock(profile_reader *reader, const sp_model_lock *lock, sp_model_sample *sample)
{
    if (lock->name == SP_MODEL_NONE && lock->address == SP_MODEL_NONE)
        return true;
    sample->lock = sp_intern_put(&reader->model->locks, lock, sizeof *lock, NULL);
    reader->model->types[sample->type].has_locks = true;
    return sample->lock != SP_INTERN_FAILED || fail_memory(reader);
}

/* Fill SAMPLE with what the attributes of MESSAGE say. */
static bool find_wait(profile_reader *reader, const Sp__Profiles__Sample *message,
                      sp_model_sample *sample)
{
    sp_model_type *type = &reader->model->types[sample->type];
    bool tells = type->is_wall || type->is_snapshot || type->is_wait;
    sp_model_lock lock = {SP_MODEL_NONE, SP_MODEL_NONE};
    const char *holder_trace = NULL, *holder_span = NULL;
    for (size_t i = 0; tells && i < message->n_attribute_indices; i++) {
        int32_t index = message->attribute_indices[i];
        if (index < 0 || (size_t)index >= reader->dictionary->n_attribute_table)
            return fail_index(reader, "attribute_table", index,
                              reader->dictionary->n_attribute_table);
        const wait_attribute *attribute = &reader->waits[index];
        take_attribute(attribute, sample, &lock);
        holder_trace = attribute->holder_trace ? attribute->holder_trace : holder_trace;
        holder_span = attribute->holder_span ? attribute->holder_span : holder_span;
    }
    if (sample->where == SP_WHERE_LOCK)
        sample->where = sp_model_lock_kind(reader->model, sample->stack);
    type->has_waiting_samples = type->has_waiting_samples || sample->where != SP_WHERE_CPU;
    type->has_ages = type->has_ages || sample->age != SP_MODEL_NONE;
    return find_lock(reader, &lock, sample) &&
           (!type->is_contention ||
            find_holder(reader, holder_trace, holder_span, &sample->holder));
}

/* ---- threads ---- */

/* Add a frame to the stack of SAMPLE: the name of the thread that MESSAGE names, or else its
 * number. */
static bool part_by_thread(profile_reader *reader, const Sp__Profiles__Sample *message,
                           sp_model_sample *sample)
{
    const char *name = NULL;
    char number[40] = "[unknown thread]";
    for (size_t i = 0; i < message->n_attribute_indices; i++) {
        int32_t index = message->attribute_indices[i];
        if (index < 0 || (size_t)index >= reader->dictionary->n_attribute_table)
            return fail_index(reader, "attribute_table", index,
                              reader->dictionary->n_attribute_table);
        const wait_attribute *attribute = &reader->waits[index];
        if (attribute->thread)
            name = attribute->thread;
        if (attribute->is_thread_id)
            snprintf(number, sizeof number, "thread %" PRId64, attribute->thread_id);
    }
    sample->stack = sp_model_add_root(reader->model, sample->stack, name ? name : number);
    return sample->stack != SP_INTERN_FAILED || fail_memory(reader);
}

/* ---- types and values ---- */

/* Whether NAME is one of the COUNT NAMES, also with "_innermost" at its end. */
static bool is_one_of(const char *name, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        size_t length = strlen(names[i]);
        const char *rest = strncmp(name, names[i], length) == 0 ? name + length : "-";
        if (!*rest || strcmp(rest, "_innermost") == 0)
            return true;
    }
    return false;
}

/* Whether the type NAME is about waits for locks. */
static bool is_contention_name(const char *name)
{
    static const char *const names[] = {"delay", "contentions"};
    return is_one_of(name, names, SP_ARRAY_LENGTH(names));
}

/* Whether the type NAME is about waits for conditions or semaphores, which no thread holds. */
static bool is_condition_or_semaphore_name(const char *name)
{
    static const char *const names[] = {"condition_delay", "condition_waits", "semaphore_delay",
                                        "semaphore_waits"};
    return is_one_of(name, names, SP_ARRAY_LENGTH(names));
}

/* How the values of a profile are converted to the unit of the type. */
typedef struct type_rule {
    const char *name, *unit;
    const char *period_unit; /* see sp_model_type */
    int64_t factor;
    bool counts;   /* the values are counts of events */
    int64_t event; /* the value of one event in this unit; 0: unknown */
} type_rule;

static bool find_rule(profile_reader *reader, const Sp__Profiles__Profile *profile, type_rule *rule)
{
    const Sp__Profiles__ProfilesDictionary *d = reader->dictionary;
    const Sp__Profiles__ValueType *value = profile->sample_type, *period = profile->period_type;
    *rule = (type_rule){.name = "", .unit = "", .period_unit = "", .factor = 1};
    if (value) {
        rule->name = table_string(d, value->type_strindex);
        rule->unit = table_string(d, value->unit_strindex);
    }
    if (!rule->name || !rule->unit)
        return fail_index(reader, "string_table",
                          rule->name ? value->unit_strindex : value->type_strindex,
                          d->n_string_table);
    const char *period_name = period ? table_string(d, period->type_strindex) : NULL;
    const char *period_unit = period ? table_string(d, period->unit_strindex) : NULL;
    rule->counts = strcmp(rule->name, "samples") == 0 || strcmp(rule->unit, "count") == 0;
    if (strcmp(rule->name, "samples") == 0 && strcmp(rule->unit, "count") == 0 && period_name &&
        period_unit && *period_name && profile->period > 0) {
        rule->name = period_name;
        rule->unit = period_unit;
        rule->factor = profile->period;
    }
    if (period_name && period_unit && strcmp(period_name, rule->name) == 0 &&
        strcmp(period_unit, rule->unit) == 0 && profile->period > 0)
        rule->event = profile->period;
    else if (period_unit)
        rule->period_unit = period_unit;
    return true;
}

bool sp_model_find_type(sp_model *model, const sp_model_type *like, uint32_t *out)
{
    uint32_t name = sp_model_string(model, like->name), unit = sp_model_string(model, like->unit);
    uint32_t period_unit = sp_model_string(model, like->period_unit);
    if (name == SP_INTERN_FAILED || unit == SP_INTERN_FAILED || period_unit == SP_INTERN_FAILED)
        return false;
    const char *name_text = sp_model_text(model, name), *unit_text = sp_model_text(model, unit);
    for (size_t i = 0; i < model->type_count; i++)
        if (strcmp(model->types[i].name, name_text) == 0 &&
            strcmp(model->types[i].unit, unit_text) == 0) {
            *out = (uint32_t)i;
            return true;
        }
    if (!SP_REACH(model->types, model->type_count, model->type_capacity, 8))
        return false;
    *out = (uint32_t)model->type_count;
    model->types[model->type_count++] = (sp_model_type){
        .name = name_text,
        .unit = unit_text,
        .period = like->period,
        .period_unit = sp_model_text(model, period_unit),
        .is_snapshot = sp_is_snapshot_name(name_text),
        .is_contention = is_contention_name(name_text),
        .is_wait = is_contention_name(name_text) || is_condition_or_semaphore_name(name_text),
        .is_wall = strcmp(unit_text, "nanoseconds") == 0 &&
                   (strcmp(name_text, "wall") == 0 || strcmp(name_text, "wall_innermost") == 0)};
    return true;
}

static bool find_type(profile_reader *reader, const type_rule *rule, int64_t period, uint32_t *out)
{
    const sp_model_type like = {
        .name = rule->name, .unit = rule->unit, .period = period, .period_unit = rule->period_unit};
    return sp_model_find_type(reader->model, &like, out) || fail_memory(reader);
}

/* Store the sum of a sample's values in *SUM, or the number of its timestamps if it has no values.
 * *VALUE gets this sum times the rule's factor. */
static bool sum_values(profile_reader *reader, const type_rule *rule,
                       const Sp__Profiles__Sample *sample, uint64_t *sum, uint64_t *value)
{
    uint64_t total = sample->n_values ? 0 : sample->n_timestamps_unix_nano;
    bool fine = true;
    for (size_t i = 0; i < sample->n_values; i++)
        fine = fine && sample->values[i] >= 0 &&
               !__builtin_add_overflow(total, (uint64_t)sample->values[i], &total);
    fine = fine && total <= INT64_MAX &&
           !__builtin_mul_overflow(total, (uint64_t)rule->factor, value) && *value <= INT64_MAX;
    *sum = total;
    if (fine)
        return true;
    char name[SP_DOCUMENT_NAME_LENGTH];
    reader->status = SP_TOOL_WRONG;
    if (is_silent(reader))
        return false;
    reader->status = sp_tool_wrong(
        "%s: profile %zu, sample %zu: has a value that is negative or too large; drop it",
        sp_document_name(name, reader->document), reader->profile, reader->sample);
    return false;
}

/* ---- samples ---- */

/* The number of events of a sample whose values sum to SUM, which is VALUE in the unit of the
 * type. */
static uint64_t count_events(const type_rule *rule, const Sp__Profiles__Sample *message,
                             uint64_t sum, uint64_t value)
{
    if (rule->counts)
        return sum;
    if (message->n_timestamps_unix_nano)
        return message->n_timestamps_unix_nano;
    uint64_t event = (uint64_t)rule->event;
    uint64_t events = event ? (value + event / 2) / event : 0;
    return events ? events : 1;
}

/* Add SAMPLE to the model of a part. Samples with equal keys stay separate here, and are added up
 * when the part is added to the whole model. */
static bool append_sample(sp_model *model, const sp_model_sample *sample, uint32_t *number)
{
    *number = model->sample_index.count;
    if (*number == SP_INTERN_FAILED - 1 ||
        !SP_REACH(model->samples, *number, model->sample_capacity, 1024))
        return false;
    model->samples[*number] = *sample;
    model->sample_index.count++;
    return true;
}

bool sp_model_add_sample(sp_model *model, const sp_model_sample *sample, uint32_t *number)
{
    bool is_new;
    if (model->whole)
        return append_sample(model, sample, number);
    *number = sp_sample_index_put(&model->sample_index, model->samples, sample, &is_new);
    if (*number == SP_INTERN_FAILED ||
        !SP_REACH(model->samples, *number, model->sample_capacity, 1024))
        return false;
    if (is_new) {
        model->samples[*number] = *sample;
    } else {
        sp_sum_add(&model->samples[*number].value, sample->value);
        sp_sum_add(&model->samples[*number].count, sample->count);
    }
    return true;
}

static bool add_sample(profile_reader *reader, const sp_model_sample *sample, uint32_t *out)
{
    if (!sp_model_add_sample(reader->model, sample, out))
        return fail_memory(reader);
    sp_sum_add(&reader->model->types[sample->type].samples, sample->count);
    return true;
}

static bool add_to_base(profile_reader *reader, const sp_model_sample *sample)
{
    return sp_model_add_to_base(reader->model, sample) || fail_memory(reader);
}

static bool make_sample(profile_reader *reader, const Sp__Profiles__Sample *message,
                        const type_rule *rule, uint32_t type, sp_model_sample *sample)
{
    uint64_t sum = 0;
    *sample = (sp_model_sample){.type = type,
                                .descriptor = SP_MODEL_NONE,
                                .age = SP_MODEL_NONE,
                                .holder_stack = SP_MODEL_NONE,
                                .lock = SP_MODEL_NONE};
    if (!find_stack(reader, message->stack_index, &sample->stack) ||
        !find_link(reader, message->link_index, &sample->link) ||
        !find_wait(reader, message, sample) ||
        (reader->model->options.by_thread && !part_by_thread(reader, message, sample)) ||
        !sum_values(reader, rule, message, &sum, &sample->value))
        return false;
    sample->count = count_events(rule, message, sum, sample->value);
    return true;
}

/* Samples are made in batches, and looked up afterwards. The index is far larger than a CPU cache,
 * so its cache lines are fetched while the other samples of the batch are made. */
enum { BATCH_SAMPLES = 16 };

static bool make_batch(profile_reader *reader, const Sp__Profiles__Profile *profile,
                       const type_rule *rule, uint32_t type, size_t first, sp_model_sample *batch)
{
    size_t left = profile->n_samples - first, count = left < BATCH_SAMPLES ? left : BATCH_SAMPLES;
    for (size_t i = 0; i < count; i++) {
        reader->sample = first + i;
        if (!make_sample(reader, profile->samples[first + i], rule, type, &batch[i]))
            return false;
        sp_sample_index_prefetch(&reader->model->sample_index, &batch[i]);
    }
    return true;
}

static bool add_samples(profile_reader *reader, const Sp__Profiles__Profile *profile,
                        const type_rule *rule, uint32_t type)
{
    sp_model_sample batch[BATCH_SAMPLES];
    uint32_t *numbers =
        sp_arena_array(&reader->model->memory, profile->n_samples + 1, sizeof *numbers);
    if (!numbers)
        return fail_memory(reader);
    for (size_t i = 0; i < profile->n_samples; i++) {
        const sp_model_sample *sample = &batch[i % BATCH_SAMPLES];
        if (i % BATCH_SAMPLES == 0 && !make_batch(reader, profile, rule, type, i, batch))
            return false;
        if (!(reader->is_base ? add_to_base(reader, sample)
                              : add_sample(reader, sample, &numbers[i])))
            return false;
    }
    if (!reader->is_base)
        reader->model->profiles[reader->model->profile_count - 1].sample_numbers = numbers;
    return true;
}

static bool note_profile(profile_reader *reader, const Sp__Profiles__Profile *profile,
                         uint32_t type)
{
    sp_model *model = reader->model;
    if (!SP_REACH(model->profiles, model->profile_count, model->profile_capacity, 64))
        return fail_memory(reader);
    model->types[type].profiles++;
    model->profiles[model->profile_count++] = (sp_model_profile){.type = type,
                                                                 .service = reader->service,
                                                                 .instance = reader->instance,
                                                                 .document = reader->document,
                                                                 .resource = reader->resource,
                                                                 .message = profile,
                                                                 .dictionary = reader->dictionary};
    return true;
}

static bool add_profile(profile_reader *reader, const Sp__Profiles__Profile *profile)
{
    type_rule rule;
    uint32_t type;
    reader->sample = 0;
    bool is_old =
        sp_model_is_old_snapshot(reader->model, profile, reader->resource, reader->dictionary);
    reader->is_base =
        is_old && sp_model_is_base(reader->model, profile, reader->resource, reader->dictionary);
    is_old = is_old && !reader->is_base;
    bool added = find_rule(reader, profile, &rule) &&
                 find_type(reader, &rule, profile->period, &type) &&
                 note_profile(reader, profile, type) &&
                 (is_old || add_samples(reader, profile, &rule, type));
    reader->profile++;
    return added;
}

/* Store the text of the attribute KEY of RESOURCE in *OUT, as a string of the model. */
static bool take_text(profile_reader *reader, const Sp__Resource__Resource *resource,
                      const char *key, const char **out)
{
    uint32_t string =
        sp_model_string(reader->model, sp_resource_text(resource, reader->dictionary, key));
    if (string == SP_INTERN_FAILED)
        return fail_memory(reader);
    *out = sp_model_text(reader->model, string);
    return true;
}

static bool add_resource(profile_reader *reader, const Sp__Profiles__ResourceProfiles *resource)
{
    if (!take_text(reader, resource->resource, "service.name", &reader->service) ||
        !take_text(reader, resource->resource, "service.instance.id", &reader->instance))
        return false;
    reader->resource = resource->resource;
    for (size_t s = 0; s < resource->n_scope_profiles; s++)
        for (size_t i = 0; i < resource->scope_profiles[s]->n_profiles; i++)
            if (!add_profile(reader, resource->scope_profiles[s]->profiles[i]))
                return false;
    return true;
}

int sp_model_add_profiles(sp_model *model, const sp_document *document)
{
    static const Sp__Profiles__ProfilesDictionary empty = SP__PROFILES__PROFILES_DICTIONARY__INIT;
    const Sp__Profiles__ProfilesData *data = (const Sp__Profiles__ProfilesData *)document->message;
    profile_reader reader = {.model = model, .document = document, .status = SP_TOOL_DONE};
    reader.dictionary = data->dictionary ? data->dictionary : &empty;
    reader.stack_numbers = calloc(reader.dictionary->n_stack_table + 1, sizeof(uint32_t));
    reader.link_numbers = calloc(reader.dictionary->n_link_table + 1, sizeof(uint32_t));
    reader.waits = calloc(reader.dictionary->n_attribute_table + 1, sizeof *reader.waits);
    reader.function_names = calloc(reader.dictionary->n_function_table + 1, sizeof(uint32_t));
    reader.locations = calloc(reader.dictionary->n_location_table + 1, sizeof *reader.locations);
    if (!reader.stack_numbers || !reader.link_numbers || !reader.waits || !reader.function_names ||
        !reader.locations)
        fail_memory(&reader);
    else
        read_wait_attributes(&reader);
    for (size_t i = 0; reader.status == SP_TOOL_DONE && i < data->n_resource_profiles; i++)
        add_resource(&reader, data->resource_profiles[i]);
    free(reader.stack_numbers);
    free(reader.link_numbers);
    free(reader.waits);
    free(reader.function_names);
    free(reader.locations);
    free(reader.known_frames);
    free(reader.frames);
    return reader.status;
}
