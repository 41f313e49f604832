/* SPDX-License-Identifier: Apache-2.0 */
/* OTLP/JSON to protobuf-c messages: the reverse of wire/json.h, from the same descriptors. More is
 * taken than our writer makes: ids in hex of either case, 64-bit integers as string or number,
 * enums as number or name, keys in snake_case, base64 in both alphabets and without padding. Keys
 * that the type does not know, and null, count as not there. U+0000 in a string becomes U+FFFD, for
 * a protobuf-c string ends at a zero byte. */
#ifndef SP_TOOL_READ_JSON_READ_H
#define SP_TOOL_READ_JSON_READ_H

#include <protobuf-c/protobuf-c.h>

#include "core/arena.h"
#include "tool/read/json_tree.h"

typedef struct sp_json_error {
    size_t line;     /* counted from 1 */
    size_t position; /* the byte of the text, counted from 0 */
    char text[320];  /* one sentence without position: what is wrong, and in which field */
} sp_json_error;

/* The one JSON object in the LENGTH bytes at TEXT as a message of TYPE, in MEMORY. NULL on failure,
 * with the reason in *ERROR (NULL: not wanted). Threads: one for each MEMORY. */
ProtobufCMessage *sp_otlp_json_read(sp_arena *memory, const ProtobufCMessageDescriptor *type,
                                    const char *text, size_t length, sp_json_error *error);
/* The same where TEXT is parsed already, as TREE. */
ProtobufCMessage *sp_otlp_json_read_tree(sp_arena *memory, const ProtobufCMessageDescriptor *type,
                                         const sp_json_tree *tree, const char *text, size_t length,
                                         sp_json_error *error);

#endif
