/* SPDX-License-Identifier: Apache-2.0 */
/* Protobuf bytes to protobuf-c messages in an arena. protobuf-c's own unpack asks malloc for each
 * element, which took a third of the time that a large recording needs; the messages are the
 * same. */
#ifndef SP_TOOL_READ_WIRE_READ_H
#define SP_TOOL_READ_WIRE_READ_H

#include <protobuf-c/protobuf-c.h>

#include "core/arena.h"

/* The LENGTH bytes at DATA, which sp_wire_look found to be fine (wire.h), as a message of TYPE in
 * MEMORY; they may go away afterwards. Fields that the type does not know are kept as protobuf-c
 * keeps them. NULL when memory is short. Threads: one for each MEMORY. */
ProtobufCMessage *sp_wire_read(sp_arena *memory, const ProtobufCMessageDescriptor *type,
                               const uint8_t *data, size_t length);

#endif
