/* SPDX-License-Identifier: Apache-2.0 */
/* The forms of `flame` that list stacks: folded and json. */
#include <stdlib.h>
#include <string.h>

#include "core/hex.h"
#include "tool/draw/flame.h"
#include "tool/model/sum.h"
#include "tool/text/escape.h"

/* ---- folded ---- */

/* Add NAME without semicolons and newlines, because a semicolon separates frames and a newline ends
 * the stack. */
static void add_folded_name(sp_buffer *out, const char *name)
{
    size_t start = out->length;
    sp_escape_terminal(out, name);
    for (size_t i = start; i < out->length; i++)
        if (out->data[i] == ';')
            out->data[i] = ':';
}

static void add_folded_stack(sp_buffer *out, const sp_model *model, uint32_t stack, bool reverse)
{
    const sp_intern_entry *entry = &model->stacks.entries[stack];
    const uint32_t *frames = entry->key;
    size_t count = entry->length / sizeof *frames;
    if (count == 0)
        sp_buffer_add_string(out, SP_FLAME_NO_STACK);
    for (size_t i = 0; i < count; i++) {
        if (i)
            sp_buffer_add_char(out, ';');
        add_folded_name(out,
                        sp_model_text(model, sp_flame_frame(model, frames, count, i, reverse)));
    }
}

static int compare_lines(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Sort the lines of OUT, so that two files with the same samples give the same text. */
static bool sort_lines(sp_buffer *out)
{
    size_t count = 0, filled = 0;
    for (size_t i = 0; i < out->length; i++)
        count += out->data[i] == '\n';
    char **lines = malloc((count + 1) * sizeof *lines);
    char *copy = malloc(out->length + 1);
    bool done = lines && copy && !out->failed;
    if (done && out->length) {
        memcpy(copy, out->data, out->length + 1);
        char *rest;
        for (char *line = strtok_r(copy, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
            lines[filled++] = line;
        qsort(lines, filled, sizeof *lines, compare_lines);
        sp_buffer_clear(out);
        for (size_t i = 0; i < filled; i++) {
            sp_buffer_add_string(out, lines[i]);
            sp_buffer_add_char(out, '\n');
        }
    }
    free(copy);
    free(lines);
    return done;
}

bool sp_flame_folded(sp_buffer *out, const sp_selection *selection, bool reverse)
{
    const sp_model *model = selection->model;
    uint64_t *values = calloc(model->stacks.count + 1, sizeof *values);
    if (!values)
        return false;
    for (uint32_t i = 0; i < model->sample_index.count; i++)
        if (sp_selection_has(selection, &model->samples[i]))
            sp_sum_add(&values[model->samples[i].stack], model->samples[i].value);
    for (uint32_t i = 0; i < model->stacks.count; i++) {
        if (values[i] == 0)
            continue;
        add_folded_stack(out, model, i, reverse);
        sp_buffer_printf(out, " %llu\n", (unsigned long long)values[i]);
    }
    free(values);
    return sort_lines(out);
}

/* ---- json ---- */

static json_t *frames_of(const sp_model *model, uint32_t stack)
{
    const sp_intern_entry *entry = &model->stacks.entries[stack];
    const uint32_t *frames = entry->key;
    json_t *list = json_array();
    for (size_t i = 0; i < entry->length / sizeof *frames; i++)
        json_array_append_new(list, json_string(sp_model_text(model, frames[i])));
    return list;
}

static void add_wait(json_t *stack, const sp_model *model, const sp_model_sample *sample)
{
    bool has_kind = sample->descriptor != SP_MODEL_NONE;
    json_object_set_new(stack, "wait", json_string(sp_where_names[sample->where]));
    json_object_set_new(stack, "descriptor",
                        json_string(has_kind ? sp_model_text(model, sample->descriptor) : ""));
}

static void add_age(json_t *stack, const sp_model *model, const sp_model_sample *sample)
{
    static const char *const ends[] = {"", "span", "request"};
    bool is_told = sample->age != SP_MODEL_NONE;
    json_object_set_new(stack, "age",
                        json_string(is_told ? sp_model_text(model, sample->age) : ""));
    json_object_set_new(stack, "outlived", json_string(ends[sample->outlived]));
}

static void add_holder(json_t *stack, const sp_model *model, const sp_model_sample *sample)
{
    char trace_id[33] = "", span_id[17] = "";
    if (sample->holder) {
        const sp_model_link *link = sp_intern_key(&model->links, sample->holder);
        sp_hex_encode(trace_id, link->trace_id, 16);
        sp_hex_encode(span_id, link->span_id, 8);
    }
    json_object_set_new(stack, "holder_trace_id", json_string(trace_id));
    json_object_set_new(stack, "holder_span_id", json_string(span_id));
    sp_buffer names = SP_BUFFER_INIT(1 << 24);
    const char *text = sp_model_text_or_none(model, sample->holder_stack);
    bool done = sp_names_show_stack(&model->names, model->options.style, text, &names);
    json_object_set_new(stack, "holder_stack",
                        json_string(done && names.data ? (char *)names.data : text));
    sp_buffer_deinit(&names);
}

static void add_lock(json_t *stack, const sp_model *model, const sp_model_sample *sample)
{
    sp_model_lock lock = sp_model_lock_of(model, sample->lock);
    json_object_set_new(stack, "lock", json_string(sp_model_text_or_none(model, lock.name)));
    json_object_set_new(stack, "lock_address",
                        json_string(sp_model_text_or_none(model, lock.address)));
}

static json_t *stack_of(const sp_model *model, const sp_model_sample *sample)
{
    char trace_id[33] = "", span_id[17] = "";
    if (sample->link) {
        const sp_model_link *link = sp_intern_key(&model->links, sample->link);
        sp_hex_encode(trace_id, link->trace_id, 16);
        sp_hex_encode(span_id, link->span_id, 8);
    }
    json_t *stack =
        json_pack("{s:o, s:I, s:I, s:s, s:s}", "frames", frames_of(model, sample->stack), "value",
                  (json_int_t)sample->value, "count", (json_int_t)sample->count, "trace_id",
                  trace_id, "span_id", span_id);
    if (model->types[sample->type].has_waiting_samples)
        add_wait(stack, model, sample);
    if (model->types[sample->type].has_ages)
        add_age(stack, model, sample);
    if (model->types[sample->type].is_contention)
        add_holder(stack, model, sample);
    if (model->types[sample->type].has_locks)
        add_lock(stack, model, sample);
    return stack;
}

static const sp_model_sample *sorted_samples;

/* By value, then in the order of the files. */
static int compare_samples(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    if (sorted_samples[x].value != sorted_samples[y].value)
        return sorted_samples[x].value > sorted_samples[y].value ? -1 : 1;
    return x < y ? -1 : x > y;
}

/* {"value", "share", "low", "high"}: the last three in percent; low and high are null when there
 * are too few events. */
static json_t *sum_json(const sp_functions *functions, const sp_function_sum *sum)
{
    double low, high;
    bool is_told = sp_share_interval(functions, sum, &low, &high);
    double share = functions->all.value > 0 ? 100 * sum->value / functions->all.value : 0;
    return json_pack("{s:I, s:f, s:o, s:o}", "value", (json_int_t)sum->value, "share", share, "low",
                     is_told ? json_real(low) : json_null(), "high",
                     is_told ? json_real(high) : json_null());
}

/* The functions of the selection, in the order of the files. NULL when memory is short. */
static json_t *functions_json(const sp_selection *selection)
{
    sp_functions functions;
    bool done = sp_functions_sum(&functions, selection, false);
    json_t *list = done ? json_array() : NULL;
    for (uint32_t i = 0; list && i < selection->model->strings.count; i++)
        if (functions.total[i].value > 0)
            json_array_append_new(list, json_pack("{s:s, s:o, s:o}", "name",
                                                  sp_model_text(selection->model, i), "self",
                                                  sum_json(&functions, &functions.self[i]), "total",
                                                  sum_json(&functions, &functions.total[i])));
    sp_functions_deinit(&functions);
    return list;
}

json_t *sp_flame_json(const sp_selection *selection)
{
    const sp_model *model = selection->model;
    const sp_model_type *type = &model->types[selection->type];
    sp_queued queued = sp_flame_queued(selection);
    uint32_t *order = malloc((model->sample_index.count + 1) * sizeof *order);
    uint32_t count = 0;
    if (!order)
        return NULL;
    for (uint32_t i = 0; i < model->sample_index.count; i++)
        if (sp_selection_has(selection, &model->samples[i]))
            order[count++] = i;
    sorted_samples = model->samples;
    qsort(order, count, sizeof *order, compare_samples);
    json_t *stacks = json_array();
    for (uint32_t i = 0; i < count; i++)
        json_array_append_new(stacks, stack_of(model, &model->samples[order[i]]));
    free(order);
    json_t *answer =
        json_pack("{s:s, s:s, s:I, s:I, s:b, s:o, s:o}", "type", sp_selection_name(selection),
                  "unit", type->unit, "total", (json_int_t)selection->value, "count",
                  (json_int_t)selection->count, "sure", selection->count >= SP_SHARES_EVENTS_LEAST,
                  "stacks", stacks, "functions", functions_json(selection));
    if (type->has_waiting_samples)
        json_object_set_new(answer, "wall", sp_where_json(selection->where_ns));
    if (queued.queued_ns)
        json_object_set_new(answer, "queued_ns", json_integer((json_int_t)queued.queued_ns));
    return answer;
}
