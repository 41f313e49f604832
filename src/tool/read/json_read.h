/* SPDX-License-Identifier: Apache-2.0 */
/* Reads OTLP/JSON into protobuf-c messages: the reverse of wire/json.h, from the same descriptors.
 * The reader accepts more than our writer writes: ids in hex of either case, 64-bit integers as
 * string or number, enums as number or name, keys in snake_case, base64 in both alphabets and
 * without padding. Keys that the type does not know, and keys with the value null, are ignored.
 * U+0000 in a string becomes U+FFFD, because a protobuf-c string ends at a zero byte. */
#ifndef SP_TOOL_READ_JSON_READ_H
#define SP_TOOL_READ_JSON_READ_H

#include <protobuf-c/protobuf-c.h>

#include "core/arena.h"
#include "tool/read/json_tree.h"

typedef struct sp_json_error {
    size_t line;     /* counted from 1 */
    size_t position; /* the byte of the text, counted from 0 */
    char text[320];  /* what is wrong, and in which field; without the position */
} sp_json_error;

/* Read the LENGTH bytes at TEXT, one JSON object, as a message of TYPE in MEMORY. Returns NULL on
 * failure, with the reason in *ERROR; ERROR may be NULL. Threads: one at a time for each MEMORY. */
ProtobufCMessage *sp_otlp_json_read(sp_arena *memory, const ProtobufCMessageDescriptor *type,
                                    const char *text, size_t length, sp_json_error *error);
/* The same for a TEXT that was already parsed: TREE. ERROR must not be NULL. */
ProtobufCMessage *sp_otlp_json_read_tree(sp_arena *memory, const ProtobufCMessageDescriptor *type,
                                         const sp_json_tree *tree, const char *text, size_t length,
                                         sp_json_error *error);

#endif
