/* SPDX-License-Identifier: Apache-2.0 */
/* Protobuf files. Nothing in the bytes says what they are, so each possible reading is tried on
 * them without unpacking (wire.h): framed or bare, traces or profiles. Spans and profiles differ in
 * the wire types of their first fields, so at most one reading fits whatever has content. */
#include <stdio.h>

#include "tool/read/input.h"
#include "tool/read/wire.h"
#include "tool/read/wire_read.h"
#include "tool/text/messages.h"
#include "tool/text/progress.h"

/* More than this, unpacked, is not a profile but an attack (an empty message of two bytes takes two
 * hundred in memory). */
#define MAX_MEMORY_BYTES ((uint64_t)8 << 30)

typedef struct reading {
    bool framed;
    sp_signal signal;
    size_t whole_bytes; /* framed: of the messages before the one that is cut or bad */
    uint64_t whole_fields;
    sp_wire_report report;
} reading;

/* The signal has at most two top-level fields; others, or none, mean that the bytes are something
 * else. */
static bool has_shape(const sp_wire_report *report, sp_signal signal)
{
    uint32_t allowed = signal == SP_SIGNAL_TRACES ? 1u << 1 : 1u << 1 | 1u << 2;
    return report->top_level_set && (report->top_level_set & ~allowed) == 0;
}

static sp_wire_report look_bare(sp_signal signal, const uint8_t *data, size_t length)
{
    sp_wire_report report =
        sp_wire_look(sp_signal_descriptor(signal), data, 0, SP_WIRE_TO_THE_END, length);
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

/* All frames together as one report. */
static sp_wire_report look_framed(reading *as, const uint8_t *data, size_t length)
{
    sp_wire_report total = {0};
    for (size_t position = 0; position < length;) {
        uint64_t size;
        as->whole_bytes = position;
        as->whole_fields = total.fields;
        if (!sp_wire_varint(data, length, &position, &size) || size > SIZE_MAX / 2) {
            total.result = position >= length ? SP_WIRE_CUT : SP_WIRE_BAD;
            total.position = position;
            return total;
        }
        if (position >= length && size)
            return cut_at(total, length);
        sp_wire_report one =
            sp_wire_look(sp_signal_descriptor(as->signal), data, position, position + size, length);
        total.fields += one.fields;
        total.unknown += one.unknown;
        total.memory_bytes += one.memory_bytes;
        if (size && !has_shape(&one, as->signal))
            one.result = SP_WIRE_BAD;
        if (one.result != SP_WIRE_FINE) {
            total.result = one.result;
            total.position = one.position;
            total.problem = one.problem;
            return total;
        }
        position += size;
    }
    if (total.fields == 0)
        total.result = SP_WIRE_BAD; /* nothing but zeros */
    return total;
}

/* Fine before cut before bad; then the one with fewer unknown fields; then the one that saw more.
 */
static bool is_better(const sp_wire_report *a, const sp_wire_report *b)
{
    if (a->result != b->result)
        return a->result < b->result;
    if (a->unknown != b->unknown)
        return a->unknown < b->unknown;
    return a->fields > b->fields;
}

static reading best_reading(const uint8_t *data, size_t length)
{
    reading best = {.report.result = SP_WIRE_BAD, .report.unknown = UINT64_MAX};
    for (int framed = 1; framed >= 0; framed--) {
        for (int signal = 0; signal < 2; signal++) {
            reading next = {.framed = framed, .signal = (sp_signal)signal};
            next.report =
                framed ? look_framed(&next, data, length) : look_bare(next.signal, data, length);
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

static int read_framed(sp_input *input, const char *path, sp_signal signal, const uint8_t *data,
                       size_t length)
{
    int status = SP_TOOL_DONE;
    for (size_t position = 0; status == SP_TOOL_DONE && position < length;) {
        uint64_t size = 0;
        sp_wire_varint(data, length, &position, &size);
        sp_progress_step("decoding", path, position, length);
        status = add_message(input, path, signal, data + position, size);
        position += size;
    }
    return status;
}

/* The messages before the last one, which is cut. */
static int read_torn(sp_input *input, const char *path, const reading *as, const uint8_t *data,
                     size_t length)
{
    char where[48];
    size_t before = input->count;
    int status = read_framed(input, path, as->signal, data, as->whole_bytes);
    if (status != SP_TOOL_DONE)
        return status;
    snprintf(where, sizeof where, "request %zu", input->count - before + 1);
    sp_input_note_torn(input, path, where, length);
    return SP_TOOL_DONE;
}

/* What no reading as OTLP fits. */
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

int sp_input_read_protobuf(sp_input *input, const char *path, const uint8_t *data, size_t length)
{
    reading best = best_reading(data, length);
    if (best.report.result == SP_WIRE_BAD)
        return read_other(input, path, data, length);
    bool is_torn = best.report.result == SP_WIRE_CUT && best.framed && best.whole_fields > 0;
    if (best.report.result == SP_WIRE_CUT && !is_torn)
        return sp_tool_wrong("%s: is cut, or not recognized: as OTLP protobuf it goes on behind "
                             "byte %zu, where the file ends; copy or record the file again",
                             path, best.report.position);
    if (best.report.memory_bytes > MAX_MEMORY_BYTES)
        return sp_tool_wrong("%s: would take %llu MiB of memory; split it", path,
                             (unsigned long long)(best.report.memory_bytes >> 20));
    if (!best.framed && best.report.in_parts)
        return sp_tool_wrong(
            "%s: holds several requests one behind the other, and nothing says where each "
            "ends: the second dictionary would be taken for more of the first; give each "
            "request a file of its own",
            path);
    if (is_torn)
        return read_torn(input, path, &best, data, length);
    if (best.framed)
        return read_framed(input, path, best.signal, data, length);
    return add_message(input, path, best.signal, data, length);
}
