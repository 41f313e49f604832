/* SPDX-License-Identifier: Apache-2.0 */
/* The form for Perfetto (docs/formats/answers.md): a trace of stack samples. Each sample has its
 * weight, and its span as the asynchronous context. Strings, frames, stacks and spans have ids; the
 * first packet that uses an id defines it. Field numbers are those of perfetto_trace.proto. */
#include <stdlib.h>
#include <string.h>

#include "tool/draw/flame.h"
#include "tool/model/sum.h"

enum { SEQUENCE = 1, STATE_CLEARED = 1, STATE_NEEDED = 2, UNIT_NANOSECONDS = 1, UNIT_BYTES = 4 };
enum { UNIT_COUNT = 9, THE_MAPPING = 1, THE_PATH = 1 };

typedef struct writer {
    sp_buffer *out;
    const sp_selection *selection;
    sp_buffer packet, interned, parts[2];   /* messages that are being written */
    bool *strings, *files, *stacks, *links; /* which ids are already defined */
    uint64_t first_ns;                      /* when the first profile of the type began */
} writer;

/* ---- protobuf ---- */

static void add_varint(sp_buffer *out, uint64_t value)
{
    uint8_t bytes[10];
    size_t count = 0;
    for (; value >= 0x80; value >>= 7)
        bytes[count++] = (uint8_t)(value | 0x80);
    bytes[count++] = (uint8_t)value;
    sp_buffer_add(out, bytes, count);
}

static void add_number(sp_buffer *out, unsigned field, uint64_t value)
{
    add_varint(out, (uint64_t)field << 3);
    add_varint(out, value);
}

static void add_bytes(sp_buffer *out, unsigned field, const void *data, size_t length)
{
    add_varint(out, (uint64_t)field << 3 | 2);
    add_varint(out, length);
    sp_buffer_add(out, data, length);
}

static void add_text(sp_buffer *out, unsigned field, const char *text)
{
    add_bytes(out, field, text, strlen(text));
}

/* Add MESSAGE as a field, and empty it. */
static void add_message(sp_buffer *out, unsigned field, sp_buffer *message)
{
    out->failed |= message->failed;
    add_bytes(out, field, message->data, message->length);
    sp_buffer_clear(message);
}

/* ---- what has an id ---- */

static bool is_new(bool *told, uint32_t number)
{
    bool new = !told[number];
    told[number] = true;
    return new;
}

/* Write an InternedString. */
static void explain_string(writer *w, unsigned field, uint64_t id, const char *text)
{
    sp_buffer *string = &w->parts[0];
    add_number(string, 1, id);
    add_text(string, 2, text);
    add_message(&w->interned, field, string);
}

/* Each function is one frame. The id of its name is also its address, so that Perfetto does not
 * merge functions. */
static void explain_frame(writer *w, uint32_t name)
{
    const sp_model *model = w->selection->model;
    if (!is_new(w->strings, name))
        return;
    sp_model_place place = sp_model_place_of(model, name);
    explain_string(w, 5, name + UINT64_C(1), sp_model_text(model, name));
    if (place.file && is_new(w->files, place.file))
        explain_string(w, 18, place.file + UINT64_C(1), sp_model_text(model, place.file));
    sp_buffer *frame = &w->parts[0];
    add_number(frame, 1, name + UINT64_C(1));
    add_number(frame, 2, name + UINT64_C(1));
    add_number(frame, 3, THE_MAPPING);
    add_number(frame, 4, name + UINT64_C(1));
    if (place.file)
        add_number(frame, 5, place.file + UINT64_C(1));
    if (place.file && place.first_line)
        add_number(frame, 6, place.first_line);
    add_message(&w->interned, 6, frame);
}

/* Define a stack, root first. */
static void explain_stack(writer *w, uint32_t number)
{
    const sp_intern_entry *entry = &w->selection->model->stacks.entries[number];
    const uint32_t *frames = entry->key;
    size_t count = entry->length / sizeof *frames;
    if (!is_new(w->stacks, number))
        return;
    sp_buffer *stack = &w->parts[1];
    add_number(stack, 1, number + UINT64_C(1));
    for (size_t i = count; i-- > 0;) {
        explain_frame(w, frames[i]);
        add_number(stack, 2, frames[i] + UINT64_C(1));
    }
    add_message(&w->interned, 7, stack);
}

static const sp_model_span *span_of(const sp_model *model, uint32_t link)
{
    uint32_t span = link ? sp_model_link_span(model, link) : SP_MODEL_NONE;
    return span == SP_MODEL_NONE ? NULL : &model->spans[span];
}

/* Define the asynchronous context and the task context of a span. Link 0 has only the latter. */
static void explain_link(writer *w, uint32_t number)
{
    const sp_model_span *span = span_of(w->selection->model, number);
    if (!is_new(w->links, number))
        return;
    sp_buffer *part = &w->parts[0];
    if (number) {
        add_number(part, 1, number);
        add_text(part, 2, span ? span->name : "(a span that the files do not have)");
        add_text(part, 3, "span");
        add_message(&w->interned, 51, part);
    }
    add_number(part, 1, number + UINT64_C(1));
    if (number)
        add_number(part, 4, number);
    add_message(&w->interned, 48, part);
}

/* ---- packets ---- */

static void end_packet(writer *w)
{
    add_number(&w->packet, 10, SEQUENCE);
    add_message(w->out, 1, &w->packet);
}

static uint64_t unit_of(const char *unit)
{
    return strcmp(unit, "nanoseconds") == 0 ? UNIT_NANOSECONDS
           : strcmp(unit, "bytes") == 0     ? UNIT_BYTES
                                            : UNIT_COUNT;
}

/* Write the first packet: what all samples have in common. */
static void write_defaults(writer *w)
{
    const sp_model_type *type = &w->selection->model->types[w->selection->type];
    sp_buffer *inner = &w->parts[0], *outer = &w->parts[1];
    add_text(inner, 2, sp_selection_name(w->selection));
    add_number(inner, 3, unit_of(type->unit));
    add_text(outer, 1, "spanprof");
    add_message(outer, 2, inner);
    add_message(inner, 100, outer);
    add_message(&w->packet, 59, inner);
    add_number(&w->packet, 13, STATE_CLEARED);
    explain_string(w, 17, THE_PATH, "spanprof");
    add_number(inner, 1, THE_MAPPING);
    add_number(inner, 7, THE_PATH);
    add_message(&w->interned, 19, inner);
    add_message(&w->packet, 12, &w->interned);
    end_packet(w);
}

/* Profiles have no times of single samples, only sums. So the time of a sample is the start of its
 * span, or without a span the start of the first profile. */
static void write_sample(writer *w, const sp_model_sample *sample)
{
    const sp_model_span *span = span_of(w->selection->model, sample->link);
    sp_buffer *inner = &w->parts[0];
    explain_stack(w, sample->stack);
    explain_link(w, sample->link);
    if (w->interned.length)
        add_message(&w->packet, 12, &w->interned);
    add_number(&w->packet, 8, span ? span->start_ns : w->first_ns);
    add_number(&w->packet, 13, STATE_NEEDED);
    add_number(inner, 2, sample->link + UINT64_C(1));
    add_number(inner, 6, sample->stack + UINT64_C(1));
    add_number(inner, 11, sample->value);
    add_message(&w->packet, 135, inner);
    end_packet(w);
}

static void find_begin(writer *w)
{
    const sp_model *model = w->selection->model;
    for (size_t i = 0; i < model->profile_count; i++) {
        uint64_t ns = model->profiles[i].message->time_unix_nano;
        if (model->profiles[i].type == w->selection->type && (!w->first_ns || ns < w->first_ns))
            w->first_ns = ns;
    }
}

bool sp_flame_perfetto(sp_buffer *out, const sp_selection *selection)
{
    const sp_model *model = selection->model;
    size_t strings = model->strings.count + (size_t)1;
    writer w = {
        .out = out,
        .selection = selection,
        .packet = SP_BUFFER_INIT(SP_OUTPUT_MAX_BYTES),
        .interned = SP_BUFFER_INIT(SP_OUTPUT_MAX_BYTES),
        .parts = {SP_BUFFER_INIT(SP_OUTPUT_MAX_BYTES), SP_BUFFER_INIT(SP_OUTPUT_MAX_BYTES)}};
    bool *told = calloc(2 * strings + model->stacks.count + model->links.count + 2, sizeof *told);
    if (!told)
        return false;
    w.strings = told;
    w.files = told + strings;
    w.stacks = w.files + strings;
    w.links = w.stacks + model->stacks.count + 1;
    find_begin(&w);
    write_defaults(&w);
    for (uint32_t i = 0; i < model->sample_index.count; i++)
        if (sp_selection_has(selection, &model->samples[i]) && model->samples[i].value)
            write_sample(&w, &model->samples[i]);
    sp_buffer_deinit(&w.packet);
    sp_buffer_deinit(&w.interned);
    sp_buffer_deinit(&w.parts[0]);
    sp_buffer_deinit(&w.parts[1]);
    free(told);
    return !out->failed;
}
