/* SPDX-License-Identifier: Apache-2.0 */
/* Several requests of one signal as one. Profiles get one dictionary without duplicates and
 * orphans, so every index changes and nothing that indices lead to does; references in resources
 * and scopes become plain text. */
#ifndef SP_TOOL_MODEL_MERGE_H
#define SP_TOOL_MODEL_MERGE_H

#include "core/arena.h"
#include "tool/read/input.h"

/* The request made of INPUT's documents, all of the same SIGNAL. It lives in MEMORY and borrows
 * from INPUT: not to be freed by protobuf-c. NULL when memory is short or an index is outside its
 * table; then that was said. */
ProtobufCMessage *sp_merge(sp_arena *memory, const sp_input *input, sp_signal signal);

#endif
