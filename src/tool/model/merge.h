/* SPDX-License-Identifier: Apache-2.0 */
/* Merges several requests of one signal into one. Merged profiles have one dictionary without
 * duplicates and without unused entries. So every index changes, but what the indices refer to does
 * not. References to strings in resources and scopes become plain text. */
#ifndef SP_TOOL_MODEL_MERGE_H
#define SP_TOOL_MODEL_MERGE_H

#include "core/arena.h"
#include "tool/read/input.h"

/* Merge the documents of INPUT, which are all of SIGNAL. The result lives in MEMORY and borrows
 * from INPUT, so do not free it with protobuf-c. Returns NULL, after a message, when memory is
 * short or an index is outside its table. */
ProtobufCMessage *sp_merge(sp_arena *memory, const sp_input *input, sp_signal signal);

#endif
