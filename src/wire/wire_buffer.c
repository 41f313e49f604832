/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/wire_buffer.h"

#include <stdlib.h>

enum { FIRST_BYTES = 4096 };

uint8_t *sp_wire_long_varint(uint8_t *p, uint64_t value)
{
    unsigned bytes = (unsigned)(63 - __builtin_clzll(value | 1)) / 7 + 1;
    p -= bytes;
    for (unsigned i = 0; i + 1 < bytes; i++, value >>= 7)
        p[i] = (uint8_t)(value | 0x80);
    p[bytes - 1] = (uint8_t)value;
    return p;
}

/* Move what was written to the end of a new array of CAPACITY bytes. The NUL is its last byte. */
static bool move_to(sp_wire *wire, size_t capacity)
{
    uint8_t *data = malloc(capacity);
    size_t written = sp_wire_written(wire);
    if (!data)
        return false;
    if (written)
        memcpy(data + capacity - written, wire->data + wire->at, written);
    free(wire->data);
    wire->data = data;
    wire->capacity = capacity;
    wire->at = capacity - written;
    return true;
}

bool sp_wire_grow(sp_wire *wire, size_t bytes)
{
    bool is_first = wire->capacity == 0;
    size_t needed = sp_wire_written(wire) + bytes + is_first;
    size_t capacity = is_first ? FIRST_BYTES : 2 * wire->capacity;
    if (wire->failed)
        return false;
    if (capacity < needed)
        capacity = needed;
    if (sp_wire_written(wire) > wire->maximum || !move_to(wire, capacity)) {
        wire->failed = true;
        return false;
    }
    if (is_first)
        wire->data[--wire->at] = 0;
    return true;
}

static void reset(sp_wire *wire)
{
    *wire = (sp_wire){.maximum = wire->maximum};
}

/* An empty OUT gets the memory itself. */
static bool hand_over(sp_wire *wire, sp_buffer *out, size_t length)
{
    memmove(wire->data, wire->data + wire->at, length + 1);
    uint8_t *smaller = realloc(wire->data, length + 1);
    *out = (sp_buffer){.data = smaller ? smaller : wire->data,
                       .length = length,
                       .capacity = smaller ? length + 1 : wire->capacity,
                       .maximum = out->maximum};
    reset(wire);
    return true;
}

bool sp_wire_finish(sp_wire *wire, sp_buffer *out)
{
    size_t length = wire->capacity ? sp_wire_written(wire) - 1 : 0;
    if (wire->failed || length > out->maximum - out->length) {
        out->failed = true;
        return false;
    }
    if (!out->data && length > 0)
        return hand_over(wire, out, length);
    return sp_buffer_add(out, wire->data + wire->at, length);
}

void sp_wire_deinit(sp_wire *wire)
{
    free(wire->data);
    reset(wire);
}
