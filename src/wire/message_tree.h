/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that the encoders of this folder share. Trees of protobuf-c messages are in an arena:
 * when memory is short, a function returns NULL or false and the arena's `failed` stays set; no
 * message is freed by itself. */
#ifndef SP_WIRE_MESSAGE_TREE_H
#define SP_WIRE_MESSAGE_TREE_H

#include "core/arena.h"
#include "proto/common.pb-c.h"
#include "proto/resource.pb-c.h"
#include "wire/otlp.h"
#include "wire/wire_buffer.h"

/* The semantic conventions that our attribute names follow. */
#define SP_OTLP_SCHEMA_URL "https://opentelemetry.io/schemas/1.44.0"

/* message_tree.c */

/* An empty message of TYPE, or NULL. */
void *sp_otlp_message(sp_arena *arena, const ProtobufCMessageDescriptor *type);
/* COUNT empty messages of TYPE in the form of protobuf-c's repeated fields: an array of pointers.
 * NULL only when memory is short, not for COUNT 0. */
void *sp_otlp_list(sp_arena *arena, const ProtobufCMessageDescriptor *type, size_t count);
/* COUNT attributes; keys and strings are borrowed. NULL when memory is short. */
Sp__Common__KeyValue **sp_otlp_attributes(sp_arena *arena, const spanprof_attribute *attributes,
                                          size_t count);
/* Set VALUE to the value of ATTRIBUTE; strings are borrowed. False when memory is short; only
 * arrays need memory. */
bool sp_otlp_value_set(sp_arena *arena, Sp__Common__AnyValue *value,
                       const spanprof_attribute *attribute);
Sp__Resource__Resource *sp_otlp_resource(sp_arena *arena, const sp_resource *resource);
/* SCOPE's strings are borrowed. */
Sp__Common__InstrumentationScope *sp_otlp_scope(sp_arena *arena,
                                                const sp_instrumentation_scope *scope);
/* ID as a bytes field: borrowed, and empty when all its COUNT bytes are zero, which OTLP calls
 * invalid. */
ProtobufCBinaryData sp_otlp_id(const uint8_t *id, size_t count);
/* Append MESSAGE to OUT, wholly or not at all. */
bool sp_otlp_append(sp_buffer *out, sp_otlp_format format, const ProtobufCMessage *message);
/* Write MESSAGE as FIELD of WIRE. NULL means that memory was short: WIRE has failed then. */
void sp_otlp_put_tree(sp_wire *wire, unsigned field, const ProtobufCMessage *message);

#endif
