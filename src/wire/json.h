/* SPDX-License-Identifier: Apache-2.0 */
/* OTLP/JSON for any protobuf-c message, from its descriptor. Keys are in lowerCamelCase; trace,
 * span and profile ids (every bytes field named *_id) in lower-case hex, other bytes in base64;
 * enums are numbers; 64-bit integers are decimal strings; doubles read back to the same value, and
 * are "NaN", "Infinity", "-Infinity" where JSON has no number. Fields that are zero are left out; a
 * oneof member that is set is always written. Text that is not UTF-8 gets U+FFFD for each bad byte.
 * The reader is in tool/read/json_read.h; the library itself reads only single members of answers
 * (export/json_member.c). */
#ifndef SP_WIRE_JSON_H
#define SP_WIRE_JSON_H

#include <protobuf-c/protobuf-c.h>
#include "core/buffer.h"

/* Messages nested deeper are refused, by the writer and the readers, because an AnyValue may
 * contain others. */
#define SP_OTLP_MAX_DEPTH 100

/* Append MESSAGE to OUT as one line without newline. False, and nothing appended, when memory is
 * short, OUT's maximum is reached, or MESSAGE is nested too deep; OUT is `failed` then.  Threads:
 * any, each with its own OUT. */
bool sp_otlp_json_write(sp_buffer *out, const ProtobufCMessage *message);

/* Rules that the writer and the reader share. */

/* Whether a bytes field is an id, that is, in hex. */
bool sp_otlp_json_is_id(const ProtobufCFieldDescriptor *field);
/* The size in memory of one value of TYPE. */
size_t sp_otlp_json_value_size(ProtobufCType type);

#endif
