/* SPDX-License-Identifier: Apache-2.0 */
/* Protobuf bytes to protobuf-c messages in an arena. protobuf-c's own unpack asks malloc for each
 * element, which took a third of the time that a large recording needs; the messages are the
 * same. */
#ifndef SP_TOOL_READ_WIRE_READ_H
#define SP_TOOL_READ_WIRE_READ_H

#include <stdbool.h>
#include <protobuf-c/protobuf-c.h>

#include "core/arena.h"

/* The LENGTH bytes at DATA, which sp_wire_look found to be fine (wire.h), as a message of TYPE in
 * MEMORY; they may go away afterwards. Fields that the type does not know are kept as protobuf-c
 * keeps them. NULL when memory is short. Threads: one for each MEMORY. */
ProtobufCMessage *sp_wire_read(sp_arena *memory, const ProtobufCMessageDescriptor *type,
                               const uint8_t *data, size_t length);

/* The same for bytes that sp_wire_look has not looked at. False when they are not a message of
 * TYPE, or have fields that TYPE does not know: sp_wire_look says which. True: *OUT is the message,
 * or NULL when memory is short. */
bool sp_wire_try_read(sp_arena *memory, const ProtobufCMessageDescriptor *type, const uint8_t *data,
                      size_t length, ProtobufCMessage **out);

#endif
