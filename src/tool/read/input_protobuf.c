/* SPDX-License-Identifier: Apache-2.0 */
/* Reads protobuf files. The bytes do not name their type, so each possibility is checked without
 * unpacking (wire.h): framed (each message after its length) or bare (one message), traces or
 * profiles. Spans and profiles differ in the wire types of their first fields, so at most one
 * possibility fits a file with content. */
#include <stdio.h>
#include <stdlib.h>

#include "core/reach.h"
#include "tool/read/input.h"
#include "tool/read/parallel.h"
#include "tool/read/wire.h"
#include "tool/read/wire_read.h"
#include "tool/text/messages.h"
#include "tool/text/progress.h"

/* The limit of the memory for all unpacked messages. More is not a profile but an attack: an empty
 * message of two bytes takes two hundred bytes in memory. */
#define MAX_MEMORY_BYTES ((uint64_t)8 << 30)

/* One possible type of the file, and how well the file fits. whole_bytes and whole_fields are for a
 * framed file that is cut: where the cut message begins, and how many known fields are before it.
 */
typedef struct reading {
    bool framed;
    sp_signal signal;
    sp_wire_report report;
    size_t whole_bytes;
    uint64_t whole_fields;
} reading;

/* Whether the message has a top-level field of SIGNAL, and no other. A signal has at most two
 * top-level fields. */
static bool has_shape(const sp_wire_report *report, sp_signal signal)
{
    uint32_t allowed = signal == SP_SIGNAL_TRACES ? 1u << 1 : 1u << 1 | 1u << 2;
    return report->top_level_set && (report->top_level_set & ~allowed) == 0;
}

static sp_wire_report check_bare(sp_signal signal, const uint8_t *data, size_t length)
{
    sp_wire_report report =
        sp_wire_check(sp_signal_descriptor(signal), data, 0, SP_WIRE_TO_THE_END, length);
    if (!has_shape(&report, signal))
        report.result = SP_WIRE_BAD;
    return report;
}

static sp_wire_report cut_at(sp_wire_report total, size_t position)
{
    total.result = SP_WIRE_CUT;
    total.position = position;
    return total;
}

static void add_report(sp_wire_report *total, const sp_wire_report *one)
{
    total->fields += one->fields;
    total->unknown += one->unknown;
    total->memory_bytes += one->memory_bytes;
    if (one->result == SP_WIRE_FINE)
        return;
    total->result = one->result;
    total->position = one->position;
    total->problem = one->problem;
}

/* ---- parts of a framed file ---- */

/* A message of a part, after it was read. */
typedef struct part_message {
    size_t bytes;
    ProtobufCMessage *message;
} part_message;

/* Frames that follow each other: all that begin at bytes [START, END). */
typedef struct file_part {
    size_t start, end;
    sp_wire_report report;
    size_t whole_end;      /* where the last message begins that was checked */
    uint64_t whole_fields; /* how many known fields the messages before whole_end have */
    part_message *messages;
    size_t count, capacity;
    bool failed;      /* memory is short */
    bool needs_check; /* cannot be read without a check by sp_wire_check */
} file_part;

typedef struct parts {
    const uint8_t *data;
    size_t length;
    const char *path;
    sp_signal signal;
    bool are_checked; /* sp_wire_check found that they are messages of SIGNAL */
    file_part *items;
    size_t count, capacity;
    size_t threads;
    sp_arena memory[SP_PARALLEL_MOST]; /* by thread */
} parts;

static bool add_part(parts *list, size_t start)
{
    if (!SP_REACH(list->items, list->count, list->capacity, 64))
        return false;
    list->items[list->count++] = (file_part){.start = start, .end = list->length};
    return true;
}

/* Divide the file into parts of about SP_PARALLEL_PART_BYTES. The first bytes that are no whole
 * frame, and all after them, belong to the last part. They are reported when that part is read. */
static bool list_parts(parts *list)
{
    size_t position = 0;
    uint64_t size;
    if (!add_part(list, 0))
        return false;
    while (sp_wire_varint(list->data, list->length, &position, &size) &&
           size < list->length - position) {
        position += size;
        file_part *last = &list->items[list->count - 1];
        if (position - last->start < SP_PARALLEL_PART_BYTES)
            continue;
        last->end = position;
        if (!add_part(list, position))
            return false;
    }
    list->threads = sp_parallel_threads(list->count);
    return true;
}

static void forget_parts(parts *list)
{
    for (size_t i = 0; i < list->count; i++)
        free(list->items[i].messages);
    for (size_t i = 0; i < SP_PARALLEL_MOST; i++)
        sp_arena_deinit(&list->memory[i]);
    free(list->items);
}

/* Check the frames of PART, and make one report of them. */
static sp_wire_report check_frames(const parts *list, file_part *part)
{
    sp_wire_report total = {0};
    const ProtobufCMessageDescriptor *type = sp_signal_descriptor(list->signal);
    const uint8_t *data = list->data;
    size_t length = list->length;
    const sp_wire_report empty = sp_wire_check(type, data, 0, 0, length);
    for (size_t position = part->start; position < part->end && total.result == SP_WIRE_FINE;) {
        uint64_t size;
        part->whole_end = position;
        part->whole_fields = total.fields;
        if (!sp_wire_varint(data, length, &position, &size) || size > SIZE_MAX / 2) {
            total.result = position >= length ? SP_WIRE_CUT : SP_WIRE_BAD;
            total.position = position;
            return total;
        }
        if (size == 0) { /* fast: a file of zeros has an empty frame for each byte */
            total.memory_bytes += empty.memory_bytes;
            continue;
        }
        if (position >= length)
            return cut_at(total, length);
        sp_wire_report one = sp_wire_check(type, data, position, position + size, length);
        if (!has_shape(&one, list->signal))
            one.result = SP_WIRE_BAD;
        add_report(&total, &one);
        position += size;
    }
    return total;
}

static void check_part(void *state, size_t thread, size_t number)
{
    const parts *list = state;
    file_part *part = &list->items[number];
    (void)thread;
    part->report = check_frames(list, part);
}

/* Check all frames, and make one report of them. The first part is checked alone, because in most
 * cases it shows already that the bytes have another format. */
static sp_wire_report check_framed(parts *list, reading *candidate)
{
    sp_wire_report total = {0};
    list->signal = candidate->signal;
    check_part(list, 0, 0);
    if (list->items[0].report.result == SP_WIRE_FINE && list->count > 1)
        sp_parallel_run(list->threads, list->count, check_part, list);
    for (size_t i = 0; i < list->count && total.result == SP_WIRE_FINE; i++) {
        candidate->whole_bytes = list->items[i].whole_end;
        candidate->whole_fields = total.fields + list->items[i].whole_fields;
        add_report(&total, &list->items[i].report);
    }
    if (total.result == SP_WIRE_FINE && total.fields == 0)
        total.result = SP_WIRE_BAD; /* only empty frames: the file is all zeros */
    return total;
}

/* Whether A fits better than B: fine is better than cut, and cut is better than bad; then fewer
 * unknown fields are better; then more known fields. */
static bool is_better(const sp_wire_report *a, const sp_wire_report *b)
{
    if (a->result != b->result)
        return a->result < b->result;
    if (a->unknown != b->unknown)
        return a->unknown < b->unknown;
    return a->fields > b->fields;
}

static reading best_reading(parts *list)
{
    reading best = {.report.result = SP_WIRE_BAD, .report.unknown = UINT64_MAX};
    for (int framed = 1; framed >= 0; framed--) {
        for (int signal = 0; signal < 2; signal++) {
            reading next = {.framed = framed, .signal = (sp_signal)signal};
            next.report = framed ? check_framed(list, &next)
                                 : check_bare(next.signal, list->data, list->length);
            if (is_better(&next.report, &best.report))
                best = next;
        }
    }
    return best;
}

static int add_message(sp_input *input, const char *path, sp_signal signal, const uint8_t *data,
                       size_t length)
{
    ProtobufCMessage *message =
        sp_wire_read(&input->memory, sp_signal_descriptor(signal), data, length);
    if (!message)
        return sp_tool_no_memory();
    return sp_input_add(input, path, signal, length, message);
}

static bool keep_message(file_part *part, size_t bytes, ProtobufCMessage *message)
{
    if (!message || !SP_REACH(part->messages, part->count, part->capacity, 16))
        return false;
    part->messages[part->count++] = (part_message){.bytes = bytes, .message = message};
    return true;
}

static bool read_frame(const parts *list, file_part *part, sp_arena *memory, const uint8_t *data,
                       size_t length)
{
    const ProtobufCMessageDescriptor *type = sp_signal_descriptor(list->signal);
    ProtobufCMessage *message = NULL;
    if (list->are_checked)
        message = sp_wire_read(memory, type, data, length);
    else
        part->needs_check = !sp_wire_try_read(memory, type, data, length, &message) ||
                            memory->used_bytes > MAX_MEMORY_BYTES / list->threads;
    return part->needs_check || keep_message(part, length, message);
}

static void read_part(void *state, size_t thread, size_t number)
{
    parts *list = state;
    file_part *part = &list->items[number];
    if (thread == 0)
        sp_progress_step("decoding", list->path, part->start, list->length);
    for (size_t position = part->start;
         !part->failed && !part->needs_check && position < part->end;) {
        uint64_t size = 0;
        if (!sp_wire_varint(list->data, list->length, &position, &size) ||
            size > list->length - position) {
            part->needs_check = true;
            return;
        }
        part->failed =
            !read_frame(list, part, &list->memory[thread], list->data + position, (size_t)size);
        position += size;
    }
}

static int take_part_in(sp_input *input, const parts *list, const file_part *part)
{
    int status = part->failed ? sp_tool_no_memory() : SP_TOOL_DONE;
    for (size_t i = 0; i < part->count && status == SP_TOOL_DONE; i++)
        status = sp_input_add(input, list->path, list->signal, part->messages[i].bytes,
                              part->messages[i].message);
    return status;
}

static int take_all_in(sp_input *input, parts *list)
{
    int status = SP_TOOL_DONE;
    for (size_t i = 0; i < list->count && status == SP_TOOL_DONE; i++)
        status = take_part_in(input, list, &list->items[i]);
    for (size_t i = 0; i < list->threads; i++)
        sp_arena_join(&input->memory, &list->memory[i]);
    return status;
}

/* The parts are read in any order, and their messages are added in the order of the file. */
static int read_framed(sp_input *input, parts *list, sp_signal signal)
{
    list->signal = signal;
    list->are_checked = true;
    sp_parallel_run(list->threads, list->count, read_part, list);
    return take_all_in(input, list);
}

static bool some_need_check(const parts *list)
{
    for (size_t i = 0; i < list->count; i++)
        if (list->items[i].needs_check)
            return true;
    return false;
}

/* Free the messages that were read. */
static void drop_messages(parts *list)
{
    for (size_t i = 0; i < list->count; i++) {
        free(list->items[i].messages);
        list->items[i] = (file_part){.start = list->items[i].start, .end = list->items[i].end};
    }
    for (size_t i = 0; i < list->threads; i++)
        sp_arena_deinit(&list->memory[i]);
}

/* Whether the first part has only framed messages of SIGNAL, without unknown fields. */
static bool begins_as(parts *list, sp_signal signal)
{
    list->signal = signal;
    check_part(list, 0, 0);
    const sp_wire_report *report = &list->items[0].report;
    return report->result == SP_WIRE_FINE && report->fields > 0 && report->unknown == 0;
}

/* Read a file of several parts as messages of the signal that its first part has, without a check
 * of the other parts. Returns false, with nothing added, when the file has one part, when the first
 * part leaves the signal open, or when another part is damaged, cut, has unknown fields, or would
 * take too much memory. */
static bool read_as_it_begins(sp_input *input, parts *list, int *status)
{
    bool is_traces = list->count > 1 && begins_as(list, SP_SIGNAL_TRACES);
    bool is_profiles = list->count > 1 && begins_as(list, SP_SIGNAL_PROFILES);
    if (is_traces == is_profiles)
        return false;
    list->signal = is_traces ? SP_SIGNAL_TRACES : SP_SIGNAL_PROFILES;
    sp_parallel_run(list->threads, list->count, read_part, list);
    if (some_need_check(list)) {
        drop_messages(list);
        return false;
    }
    *status = take_all_in(input, list);
    return true;
}

/* Read all messages except the last one, which is cut. It is in the last part. */
static int read_torn(sp_input *input, parts *list, const reading *candidate)
{
    char where[48];
    size_t before = input->count;
    list->items[list->count - 1].end = candidate->whole_bytes;
    int status = read_framed(input, list, candidate->signal);
    if (status != SP_TOOL_DONE)
        return status;
    snprintf(where, sizeof where, "request %zu", input->count - before + 1);
    sp_input_note_torn(input, list->path, where, list->length);
    return SP_TOOL_DONE;
}

/* Read a file that is not OTLP. */
static int read_other(sp_input *input, const char *path, const uint8_t *data, size_t length)
{
    switch (sp_input_is_pprof(data, length)) {
    case SP_INPUT_LIKE:
        return sp_input_read_pprof(input, path, data, length);
    case SP_INPUT_CUT:
        return sp_tool_wrong("%s: is pprof that is cut: the file ends at byte %zu; copy or record "
                             "the file again",
                             path, length);
    default:
        return sp_tool_wrong("%s: is not recognized: neither OTLP/JSON nor OTLP protobuf of traces "
                             "or profiles, nor pprof, nor collapsed stacks",
                             path);
    }
}

static int read_best(sp_input *input, parts *list)
{
    const char *path = list->path;
    reading best = best_reading(list);
    if (best.report.result == SP_WIRE_BAD)
        return read_other(input, path, list->data, list->length);
    bool is_torn = best.report.result == SP_WIRE_CUT && best.framed && best.whole_fields > 0;
    if (best.report.result == SP_WIRE_CUT && !is_torn)
        return sp_tool_wrong(
            "%s: is cut, or not recognized: read as OTLP protobuf, the file ends "
            "at byte %zu in the middle of a message; copy or record the file again",
            path, best.report.position);
    if (best.report.memory_bytes > MAX_MEMORY_BYTES)
        return sp_tool_wrong("%s: would take %llu MiB of memory; split it", path,
                             (unsigned long long)(best.report.memory_bytes >> 20));
    if (!best.framed && best.report.in_parts)
        return sp_tool_wrong(
            "%s: has several requests without their lengths, so it is not known where each of them "
            "ends, and their dictionaries would be mixed; write each request to a file of its own, "
            "or write its length before it",
            path);
    if (is_torn)
        return read_torn(input, list, &best);
    if (best.framed)
        return read_framed(input, list, best.signal);
    return add_message(input, path, best.signal, list->data, list->length);
}

int sp_input_read_protobuf(sp_input *input, const char *path, const uint8_t *data, size_t length)
{
    parts list = {.data = data, .length = length, .path = path};
    int status = SP_TOOL_DONE;
    if (!list_parts(&list))
        status = sp_tool_no_memory();
    else if (!read_as_it_begins(input, &list, &status))
        status = read_best(input, &list);
    forget_parts(&list);
    return status;
}
