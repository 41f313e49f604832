/* SPDX-License-Identifier: Apache-2.0 */
#include "tool/read/wire.h"

#include "wire/json.h"

typedef struct check_state {
    const uint8_t *data;
    size_t length;
    size_t position;
    sp_wire_report report;
} check_state;

/* Which fields of one message that hold a single message were seen: a bit for each. */
typedef struct seen_fields {
    size_t start; /* of the message that has the fields */
    uint64_t once, twice;
} seen_fields;

static bool stop(check_state *state, sp_wire_result result, size_t position, const char *problem)
{
    if (state->report.result == SP_WIRE_FINE) {
        state->report.result = result;
        state->report.position = position;
        state->report.problem = problem;
    }
    return false;
}

bool sp_wire_varint_long(const uint8_t *data, size_t length, size_t *position, uint64_t *out)
{
    *out = 0;
    for (unsigned shift = 0; shift < 70; shift += 7) {
        if (*position >= length)
            return false;
        uint8_t byte = data[(*position)++];
        if (shift < 64)
            *out |= (uint64_t)(byte & 127) << shift;
        if (byte < 128)
            return true;
    }
    return false;
}

static bool take_varint(check_state *state, uint64_t end, uint64_t *out)
{
    size_t start = state->position;
    if (!sp_wire_varint(state->data, state->length, &state->position, out)) {
        if (state->position >= state->length)
            return stop(state, SP_WIRE_CUT, state->length, "cut");
        return stop(state, SP_WIRE_BAD, start, "a varint of more than 10 bytes");
    }
    if (state->position > end)
        return stop(state, SP_WIRE_BAD, start, "a number runs over the end of its message");
    return true;
}

static bool skip_bytes(check_state *state, uint64_t end, uint64_t count)
{
    if (count > end - state->position)
        return stop(state, SP_WIRE_BAD, state->position,
                    "a field runs over the end of its message");
    if (count > state->length - state->position)
        return stop(state, SP_WIRE_CUT, state->length, "cut");
    state->position += count;
    return true;
}

static bool check_message(check_state *state, const ProtobufCMessageDescriptor *type, uint64_t end,
                          unsigned depth);

static bool check_bytes(check_state *state, const ProtobufCFieldDescriptor *field, uint64_t end,
                        unsigned depth)
{
    uint64_t length;
    if (!take_varint(state, end, &length))
        return false;
    if (!field || field->type != PROTOBUF_C_TYPE_MESSAGE) {
        /* a packed number of one byte takes up to eight bytes in memory */
        state->report.memory_bytes +=
            length * (field && sp_wire_type_of(field->type) != SP_WIRE_BYTES ? 8 : 1) + 16;
        return skip_bytes(state, end, length);
    }
    if (length > end - state->position)
        return stop(state, SP_WIRE_BAD, state->position,
                    "a message runs over the end of the one around it");
    return check_message(state, field->descriptor, state->position + length, depth + 1);
}

/* Count the memory for a single message that comes in several parts: the reader copies its parts,
 * at most BYTES, before it reads them. */
static void note_parts(check_state *state, const ProtobufCMessageDescriptor *type,
                       const ProtobufCFieldDescriptor *field, uint64_t bytes, seen_fields *seen)
{
    if (!field || field->type != PROTOBUF_C_TYPE_MESSAGE ||
        field->label == PROTOBUF_C_LABEL_REPEATED)
        return;
    uint64_t bit = UINT64_C(1) << ((field - type->fields) & 63);
    if (seen->once & bit & ~seen->twice) {
        seen->twice |= bit;
        state->report.memory_bytes += bytes;
    }
    seen->once |= bit;
}

static bool check_field(check_state *state, const ProtobufCMessageDescriptor *type, uint64_t end,
                        unsigned depth, seen_fields *seen)
{
    size_t start = state->position;
    uint64_t tag, ignored;
    if (!take_varint(state, end, &tag))
        return false;
    uint64_t number = tag >> 3;
    if (number == 0 || number > SP_WIRE_LAST_FIELD)
        return stop(state, SP_WIRE_BAD, start, "a field number that cannot be");
    const ProtobufCFieldDescriptor *field = sp_wire_field(type, (uint32_t)number);
    if (field && !sp_wire_fits(field, tag & 7))
        return stop(state, SP_WIRE_BAD, start, "a field of another type");
    *(field ? &state->report.fields : &state->report.unknown) += 1;
    note_parts(state, type, field, (end < state->length ? end : state->length) - seen->start, seen);
    if (!field)
        state->report.memory_bytes +=
            64; /* protobuf-c keeps an unknown field, in a block of its own */
    if (depth == 0)
        state->report.top_level_set |= number < 32 ? UINT32_C(1) << number : 1;
    switch (tag & 7) {
    case SP_WIRE_VARINT:
        return take_varint(state, end, &ignored);
    case SP_WIRE_64:
        return skip_bytes(state, end, 8);
    case SP_WIRE_BYTES:
        return check_bytes(state, field, end, depth);
    case SP_WIRE_32:
        return skip_bytes(state, end, 4);
    default:
        return stop(state, SP_WIRE_BAD, start, "a field of unknown wire type");
    }
}

static bool check_message(check_state *state, const ProtobufCMessageDescriptor *type, uint64_t end,
                          unsigned depth)
{
    if (depth >= SP_OTLP_MAX_DEPTH)
        return stop(state, SP_WIRE_BAD, state->position, "messages are nested too deep");
    state->report.memory_bytes +=
        type->sizeof_message + 24; /* malloc's overhead and the pointer to the message */
    seen_fields seen = {.start = state->position};
    while (state->position < end &&
           !(end == SP_WIRE_TO_THE_END && state->position == state->length))
        if (!check_field(state, type, end, depth, &seen))
            return false;
    if (depth == 0)
        state->report.in_parts = seen.twice != 0;
    return true;
}

sp_wire_report sp_wire_check(const ProtobufCMessageDescriptor *type, const uint8_t *data,
                             size_t start, uint64_t end, size_t length)
{
    check_state state = {.data = data, .length = length, .position = start};
    check_message(&state, type, end, 0);
    return state.report;
}
