/* SPDX-License-Identifier: Apache-2.0 */
/* Unpacks protobuf bytes into protobuf-c messages in an arena. protobuf-c's own unpack makes the
 * same messages, but calls malloc for each element. That took a third of the time that a large
 * recording needs. */
#ifndef SP_TOOL_READ_WIRE_READ_H
#define SP_TOOL_READ_WIRE_READ_H

#include <stdbool.h>
#include <protobuf-c/protobuf-c.h>

#include "core/arena.h"

/* Unpack the LENGTH bytes at DATA, for which sp_wire_check gave SP_WIRE_FINE (wire.h), as a message
 * of TYPE in MEMORY. DATA is copied. Fields that the type does not know are kept, as protobuf-c
 * keeps them. NULL when memory is short. Threads: one at a time for each MEMORY. */
ProtobufCMessage *sp_wire_read(sp_arena *memory, const ProtobufCMessageDescriptor *type,
                               const uint8_t *data, size_t length);

/* The same for bytes that sp_wire_check has not checked. Returns false when the bytes are not a
 * message of TYPE, or have fields that TYPE does not know; sp_wire_check can then find out which.
 * Else *OUT is the message, or NULL when memory is short. */
bool sp_wire_try_read(sp_arena *memory, const ProtobufCMessageDescriptor *type, const uint8_t *data,
                      size_t length, ProtobufCMessage **out);

#endif
