/* SPDX-License-Identifier: Apache-2.0 */
/* Reads protobuf bytes that are not trusted. protobuf-c's own unpack calls itself for each level of
 * nesting, without a limit, so a message of a few hundred kilobytes of AnyValue in AnyValue
 * overflows the stack. Use this instead. Threads: any. */
#ifndef SP_WIRE_UNPACK_H
#define SP_WIRE_UNPACK_H

#include <stdbool.h>
#include <protobuf-c/protobuf-c.h>

/* Unpack LENGTH bytes at DATA as a message of TYPE. Free it with
 * protobuf_c_message_free_unpacked(message, NULL). NULL when they are no such message, are nested
 * deeper than SP_OTLP_MAX_DEPTH, or memory is short. */
ProtobufCMessage *sp_otlp_unpack(const ProtobufCMessageDescriptor *type, const void *data,
                                 size_t length);

#endif
