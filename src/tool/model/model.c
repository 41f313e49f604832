/* SPDX-License-Identifier: Apache-2.0 */
#include "tool/model/model.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/utf8.h"
#include "tool/text/messages.h"
#include "tool/text/progress.h"

static int note_snapshots(sp_model *model, const sp_input *input)
{
    int status = SP_TOOL_DONE;
    for (size_t i = 0; i < input->count && status == SP_TOOL_DONE; i++)
        if (input->documents[i].signal != SP_SIGNAL_TRACES)
            status = sp_model_note_snapshots(model, &input->documents[i]);
    for (size_t i = 0; i < input->count && status == SP_TOOL_DONE && model->since.is_asked; i++)
        if (input->documents[i].signal != SP_SIGNAL_TRACES)
            status = sp_model_note_bases(model, &input->documents[i]);
    return status;
}

static int add_documents(sp_model *model, sp_signal signal, bool shows_progress,
                         int (*add)(sp_model *model, const sp_document *document))
{
    const sp_input *input = model->input;
    int status = SP_TOOL_DONE;
    uint64_t done = 0, all = 0;
    for (size_t i = 0; i < input->count; i++)
        all += input->documents[i].signal == signal ? input->documents[i].bytes : 0;
    for (size_t i = 0; i < input->count && status == SP_TOOL_DONE; i++) {
        if (input->documents[i].signal != signal)
            continue;
        if (shows_progress)
            sp_progress_step(signal == SP_SIGNAL_TRACES ? "taking in spans" : "taking in samples",
                             NULL, done, all);
        status = add(model, &input->documents[i]);
        done += input->documents[i].bytes;
    }
    return status;
}

int sp_model_add_all_traces(sp_model *model, bool shows_progress)
{
    return add_documents(model, SP_SIGNAL_TRACES, shows_progress, sp_model_add_traces);
}

int sp_model_add_all_profiles(sp_model *model)
{
    return add_documents(model, SP_SIGNAL_PROFILES, true, sp_model_add_profiles);
}

int sp_model_build(sp_model *model, const sp_input *input)
{
    static const sp_since never;
    return sp_model_build_since(model, input, &never);
}

int sp_model_build_since(sp_model *model, const sp_input *input, const sp_since *since)
{
    static const sp_model_options none;
    return sp_model_build_as(model, input, since, &none);
}

int sp_model_build_as(sp_model *model, const sp_input *input, const sp_since *since,
                      const sp_model_options *options)
{
    *model = (sp_model){
        .input = input, .since = *since, .options = *options, .root_frames = options->by_thread};
    sp_model_link none = {0};
    if (sp_model_string(model, "") != 0)
        return sp_tool_no_memory();
    if (sp_intern_put(&model->links, &none, sizeof none, NULL) == SP_INTERN_FAILED)
        return sp_tool_no_memory();
    model->names.style = options->style;
    model->names.all_styles = options->all_styles;
    if (options->renames && !sp_names_learn(&model->names, input))
        return sp_tool_no_memory();
    int status = note_snapshots(model, input);
    if (status == SP_TOOL_DONE)
        status = sp_model_add_all(model);
    if (status == SP_TOOL_DONE && since->is_asked)
        status = sp_model_subtract_base(model);
    if (status == SP_TOOL_DONE)
        status = sp_model_count_draws(model);
    if (status == SP_TOOL_DONE)
        status = sp_model_link_spans(model);
    if (status == SP_TOOL_DONE)
        status = sp_model_count_spans(model);
    if (status == SP_TOOL_DONE)
        status = sp_model_find_hidden(model);
    if (status == SP_TOOL_DONE)
        status = sp_model_find_unsampled(model);
    sp_progress_end();
    if (status == SP_TOOL_DONE)
        sp_model_note_sampled_twice(model);
    return status == SP_TOOL_DONE && options->by_span ? sp_model_add_span_roots(model) : status;
}

void sp_model_count_links(const sp_model *model, uint32_t *links, uint32_t *with_span)
{
    *links = model->links.count - 1;
    *with_span = 0;
    for (uint32_t i = 1; i < model->links.count; i++)
        *with_span += sp_model_link_span(model, i) != SP_MODEL_NONE;
}

const char *sp_model_service(const sp_model *model)
{
    for (uint32_t i = 0; i < model->span_index.count; i++)
        if (*model->spans[i].service)
            return model->spans[i].service;
    for (size_t i = 0; i < model->profile_count; i++)
        if (*model->profiles[i].service)
            return model->profiles[i].service;
    return "";
}

bool sp_model_is_of_two_runs(const sp_model *model)
{
    uint32_t links, with_span;
    sp_model_count_links(model, &links, &with_span);
    return model->span_index.count > 0 && links > 0 && with_span == 0;
}

int sp_model_check_runs(const sp_model *model)
{
    uint32_t links, with_span;
    if (!sp_model_is_of_two_runs(model))
        return SP_TOOL_DONE;
    sp_model_count_links(model, &links, &with_span);
    char none[96] = "the only span that samples belong to is not";
    if (links > 1)
        snprintf(none, sizeof none, "none of the %u spans that samples belong to is", links);
    return sp_tool_no("%s in these files: traces and "
                      "profiles are of two runs, or of a program that was attached to, whose spans "
                      "are in its own traces; give files that belong together",
                      none);
}

void sp_model_deinit(sp_model *model)
{
    sp_intern_deinit(&model->strings);
    sp_intern_deinit(&model->stacks);
    sp_intern_deinit(&model->links);
    sp_intern_deinit(&model->locks);
    sp_intern_deinit(&model->span_index);
    sp_sample_index_deinit(&model->sample_index);
    free(model->places);
    free(model->other_names);
    sp_names_deinit(&model->names);
    free(model->spans);
    sp_intern_deinit(&model->own_ids);
    free(model->own_id_spans);
    free(model->span_order);
    free(model->link_spans);
    free(model->samples);
    free(model->chances);
    free(model->types);
    free(model->profiles);
    sp_intern_deinit(&model->processes);
    free(model->snapshot_times);
    free(model->base_times);
    sp_key_sums_deinit(&model->base);
    sp_arena_deinit(&model->memory);
    *model = (sp_model){0};
}

uint32_t sp_model_string(sp_model *model, const char *text)
{
    size_t length = strlen(text);
    if (sp_utf8_valid(text, length))
        return sp_intern_put(&model->strings, text, length, NULL);
    char *repaired = malloc(3 * length + 1);
    if (!repaired)
        return SP_INTERN_FAILED;
    uint32_t number =
        sp_intern_put(&model->strings, repaired, sp_utf8_repair(repaired, text, length), NULL);
    free(repaired);
    return number;
}

const char *sp_model_text(const sp_model *model, uint32_t string)
{
    return sp_intern_key(&model->strings, string);
}

const char *sp_model_text_or_none(const sp_model *model, uint32_t string)
{
    return string != SP_MODEL_NONE ? sp_model_text(model, string) : "";
}

sp_model_lock sp_model_lock_of(const sp_model *model, uint32_t lock)
{
    return lock != SP_MODEL_NONE ? *(const sp_model_lock *)sp_intern_key(&model->locks, lock)
                                 : (sp_model_lock){SP_MODEL_NONE, SP_MODEL_NONE};
}

uint32_t sp_model_same_string(const sp_model *to, const sp_model *from, uint32_t string)
{
    const sp_intern_entry *entry = &from->strings.entries[string];
    return sp_intern_find(&to->strings, entry->key, entry->length);
}

uint32_t sp_model_span_of_link(const sp_model *model, const sp_model_link *link)
{
    return sp_intern_find(&model->span_index, link, sizeof *link);
}

static bool index_own_ids(sp_model *model)
{
    uint32_t count = model->span_index.count;
    model->own_id_spans = malloc((count + 1) * sizeof *model->own_id_spans);
    for (uint32_t i = 0; model->own_id_spans && i < count; i++) {
        const uint8_t *id = model->spans[i].id.span_id;
        bool is_new;
        uint32_t number = sp_intern_put(&model->own_ids, id, 8, &is_new);
        if (number == SP_INTERN_FAILED)
            return false;
        model->own_id_spans[number] = is_new ? i : SP_MODEL_NONE;
    }
    return model->own_id_spans;
}

bool sp_model_complete_link(sp_model *model, sp_model_link *link)
{
    if (!model->own_id_spans && !index_own_ids(model))
        return false;
    uint32_t number = sp_intern_find(&model->own_ids, link->span_id, sizeof link->span_id);
    uint32_t span = number == SP_INTERN_FAILED ? SP_MODEL_NONE : model->own_id_spans[number];
    if (span != SP_MODEL_NONE)
        *link = model->spans[span].id;
    return true;
}

bool sp_model_is_local_root(const sp_model *model, uint32_t span)
{
    return model->spans[span].parent == SP_MODEL_NONE || model->spans[span].parent_is_remote;
}

/* Whether WORD is the name of TYPE, or its name and unit as NAME/UNIT. */
static bool is_called(const sp_model_type *type, const char *word)
{
    size_t length = strlen(type->name);
    if (strncmp(type->name, word, length) != 0)
        return false;
    return !word[length] || (word[length] == '/' && strcmp(word + length + 1, type->unit) == 0);
}

uint32_t sp_model_type_of_name(const sp_model *model, const char *name)
{
    uint32_t found = SP_MODEL_NONE;
    for (uint32_t i = 0; i < model->type_count; i++) {
        if (!is_called(&model->types[i], name))
            continue;
        if (strcmp(model->types[i].unit, "nanoseconds") == 0)
            return i;
        found = found == SP_MODEL_NONE ? i : found;
    }
    return found;
}

uint32_t sp_model_other_unit(const sp_model *model, uint32_t type)
{
    for (uint32_t i = 0; i < model->type_count; i++)
        if (i != type && strcmp(model->types[i].name, model->types[type].name) == 0)
            return i;
    return SP_MODEL_NONE;
}

uint32_t sp_model_type_of_scope(const sp_model *model, const char *by_root,
                                const char *by_innermost, bool innermost)
{
    uint32_t type = sp_model_type_of_name(model, innermost ? by_innermost : by_root);
    return type != SP_MODEL_NONE ? type
                                 : sp_model_type_of_name(model, innermost ? by_root : by_innermost);
}

uint32_t sp_model_cpu_type(const sp_model *model, bool innermost)
{
    return sp_model_type_of_scope(model, "cpu", "cpu_innermost", innermost);
}

uint32_t sp_model_alloc_type(const sp_model *model, bool innermost)
{
    return sp_model_type_of_scope(model, "alloc_space", "alloc_space_innermost", innermost);
}

uint32_t sp_model_wall_type(const sp_model *model, bool innermost)
{
    uint32_t other = SP_MODEL_NONE;
    for (uint32_t i = 0; i < model->type_count; i++) {
        if (!model->types[i].is_wall)
            continue;
        if ((strcmp(model->types[i].name, "wall") != 0) == innermost)
            return i;
        other = i;
    }
    return other;
}

/* The first type that has samples. A request without samples may come first, and its type is of no
 * use. */
static uint32_t first_type(const sp_model *model)
{
    for (uint32_t i = 0; i < model->type_count; i++)
        if (model->types[i].samples)
            return i;
    return model->type_count ? 0 : SP_MODEL_NONE;
}

/* The type of CPU time, else of wall time, else the first type that has samples. */
static uint32_t any_type(const sp_model *model, bool innermost)
{
    uint32_t type = sp_model_cpu_type(model, innermost);
    if (type == SP_MODEL_NONE)
        type = sp_model_wall_type(model, innermost);
    return type == SP_MODEL_NONE ? first_type(model) : type;
}

uint32_t sp_model_main_type(const sp_model *model)
{
    return any_type(model, false);
}

uint64_t sp_model_period_ns(const sp_model_type *type)
{
    bool is_time = strcmp(type->unit, "nanoseconds") == 0 && !*type->period_unit;
    return is_time && type->period > 1 ? (uint64_t)type->period : 0;
}

uint64_t sp_model_visits_error_ns(uint64_t period_ns, uint64_t waited_ns)
{
    double visits = period_ns ? (double)waited_ns / (double)period_ns : 0;
    return (uint64_t)((double)period_ns * sqrt(visits > 1 ? visits : 1));
}

uint32_t sp_model_time_type(const sp_model *model)
{
    return any_type(model, true);
}

static const char *table_string(const Sp__Profiles__ProfilesDictionary *dictionary, int32_t index)
{
    bool there = dictionary && index > 0 && (size_t)index < dictionary->n_string_table;
    return there ? dictionary->string_table[index] : "";
}

const char *sp_value_text(const Sp__Common__AnyValue *value,
                          const Sp__Profiles__ProfilesDictionary *dictionary)
{
    if (value && value->value_case == SP__COMMON__ANY_VALUE__VALUE_STRING_VALUE)
        return value->string_value;
    if (value && value->value_case == SP__COMMON__ANY_VALUE__VALUE_STRING_VALUE_STRINDEX)
        return table_string(dictionary, value->string_value_strindex);
    return "";
}

const char *sp_attribute_key(const Sp__Common__KeyValue *attribute,
                             const Sp__Profiles__ProfilesDictionary *dictionary)
{
    return attribute->key && *attribute->key ? attribute->key
                                             : table_string(dictionary, attribute->key_strindex);
}

const Sp__Common__AnyValue *sp_resource_value(const Sp__Resource__Resource *resource,
                                              const Sp__Profiles__ProfilesDictionary *dictionary,
                                              const char *key)
{
    for (size_t i = 0; resource && i < resource->n_attributes; i++) {
        const Sp__Common__KeyValue *attribute = resource->attributes[i];
        if (strcmp(sp_attribute_key(attribute, dictionary), key) == 0)
            return attribute->value;
    }
    return NULL;
}

const char *sp_resource_text(const Sp__Resource__Resource *resource,
                             const Sp__Profiles__ProfilesDictionary *dictionary, const char *key)
{
    const Sp__Common__AnyValue *value = sp_resource_value(resource, dictionary, key);
    return value ? sp_value_text(value, dictionary) : "";
}
