/* SPDX-License-Identifier: Apache-2.0 */
/* Writes protobuf's wire format from the end to the start. The length of a message is in front of
 * its content, so it is known when it is written: no message is measured first, and no byte is
 * moved. Fields are written in falling order of their numbers, and the entries of a list from the
 * last to the first. Fields that are zero are left out, as in proto3.
 *
 * sp_wire_room makes room for some bytes. The functions that take and return the place P write in
 * front of it, and do not check the room again.  Threads: one at a time. */
#ifndef SP_WIRE_WIRE_BUFFER_H
#define SP_WIRE_WIRE_BUFFER_H

#include <string.h>

#include "core/buffer.h"

/* What was written is data[at .. capacity - 1); the last byte is a NUL. Zero-initialised except
 * `maximum`, the most bytes that may be written. */
typedef struct sp_wire {
    uint8_t *data;
    size_t at, capacity, maximum;
    bool failed; /* memory was short, or maximum reached; stays */
} sp_wire;

typedef enum sp_wire_type {
    SP_WIRE_VARINT = 0,
    SP_WIRE_FIXED64 = 1,
    SP_WIRE_BYTES = 2,
    SP_WIRE_FIXED32 = 5,
} sp_wire_type;

/* The most bytes of a varint, and of a field: a varint with a tag in front. */
enum { SP_WIRE_VARINT_MAX = 10, SP_WIRE_FIELD_MAX = SP_WIRE_VARINT_MAX + 1 };

/* Make room for BYTES in front of what was written, and for some more. False when it failed. */
bool sp_wire_grow(sp_wire *wire, size_t bytes);
/* Append what was written to OUT, wholly or not at all. WIRE must not be used afterwards, except
 * for sp_wire_deinit. */
bool sp_wire_finish(sp_wire *wire, sp_buffer *out);
void sp_wire_deinit(sp_wire *wire);
uint8_t *sp_wire_long_varint(uint8_t *p, uint64_t value);

/* The place in front of which up to BYTES may be written, or NULL. */
static inline uint8_t *sp_wire_room(sp_wire *wire, size_t bytes)
{
    if (bytes > wire->at && !sp_wire_grow(wire, bytes))
        return NULL;
    return wire->data + wire->at;
}

/* Note that everything from P on has been written. */
static inline void sp_wire_set(sp_wire *wire, const uint8_t *p)
{
    wire->at = (size_t)(p - wire->data);
}

/* How many bytes were written. Unlike a place, this number stays right when more room is made. */
static inline size_t sp_wire_written(const sp_wire *wire)
{
    return wire->capacity - wire->at;
}

static inline uint8_t *sp_wire_varint(uint8_t *p, uint64_t value)
{
    if (value < 0x80) {
        *--p = (uint8_t)value;
        return p;
    }
    if (value >= 0x4000)
        return sp_wire_long_varint(p, value);
    *--p = (uint8_t)(value >> 7);
    *--p = (uint8_t)(value | 0x80);
    return p;
}

/* Only fields below 16 are used: their tags are one byte. */
static inline uint8_t *sp_wire_tag(uint8_t *p, unsigned field, sp_wire_type type)
{
    *--p = (uint8_t)(field << 3 | type);
    return p;
}

static inline uint8_t *sp_wire_u64(uint8_t *p, unsigned field, uint64_t value)
{
    return value ? sp_wire_tag(sp_wire_varint(p, value), field, SP_WIRE_VARINT) : p;
}

/* A field of type int32. */
static inline uint8_t *sp_wire_index(uint8_t *p, unsigned field, uint32_t index)
{
    return sp_wire_u64(p, field, (uint64_t)(int32_t)index);
}

static inline uint8_t *sp_wire_fixed64_value(uint8_t *p, uint64_t value)
{
    for (int shift = 56; shift >= 0; shift -= 8)
        *--p = (uint8_t)(value >> shift);
    return p;
}

static inline uint8_t *sp_wire_fixed64(uint8_t *p, unsigned field, uint64_t value)
{
    return value ? sp_wire_tag(sp_wire_fixed64_value(p, value), field, SP_WIRE_FIXED64) : p;
}

/* Write the length and tag of a message, or of a packed list, whose content is between P and END.
 */
static inline uint8_t *sp_wire_head(uint8_t *p, unsigned field, const uint8_t *end)
{
    return sp_wire_tag(sp_wire_varint(p, (uint64_t)(end - p)), field, SP_WIRE_BYTES);
}

/* Write COUNT indices as a packed list; nothing when there are none. */
static inline uint8_t *sp_wire_indices(uint8_t *p, unsigned field, const int32_t *indices,
                                       uint32_t count)
{
    uint8_t *end = p;
    if (count == 0)
        return p;
    for (uint32_t i = count; i-- > 0;)
        p = sp_wire_varint(p, (uint64_t)indices[i]);
    return sp_wire_head(p, field, end);
}

/* Write bytes, or the text of a string, as FIELD, also when it is empty. */
static inline uint8_t *sp_wire_bytes(uint8_t *p, unsigned field, const void *data, size_t length)
{
    uint8_t *end = p;
    p -= length;
    memcpy(p, data, length);
    return sp_wire_head(p, field, end);
}

/* Write TEXT as FIELD, also when it is empty. */
static inline void sp_wire_text(sp_wire *wire, unsigned field, const char *text)
{
    size_t length = strlen(text);
    uint8_t *p = sp_wire_room(wire, length + SP_WIRE_FIELD_MAX);
    if (p)
        sp_wire_set(wire, sp_wire_bytes(p, field, text, length));
}

/* Write the head of a message. Its content is all that was written since sp_wire_written returned
 * WRITTEN. */
static inline void sp_wire_close(sp_wire *wire, unsigned field, size_t written)
{
    uint8_t *p = sp_wire_room(wire, SP_WIRE_FIELD_MAX);
    if (p)
        sp_wire_set(wire, sp_wire_head(p, field, p + (sp_wire_written(wire) - written)));
}

#endif
