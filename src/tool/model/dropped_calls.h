/* SPDX-License-Identifier: Apache-2.0 */
/* Sampled calls (allocations, waits for locks, values) for which the SDK had no room, so that their
 * samples are missing. Threads: any, if the model does not change. */
#ifndef SP_TOOL_MODEL_DROPPED_CALLS_H
#define SP_TOOL_MODEL_DROPPED_CALLS_H

#include "tool/model/model.h"

/* Whether the samples of TYPE are allocated blocks, counted as bytes or as objects. */
bool sp_model_is_of_blocks(const sp_model_type *type);
/* The number of dropped calls of all kinds, as the profiles of TYPE count them. */
uint64_t sp_model_dropped_calls(const sp_model *model, uint32_t type);
/* How to record so that fewer calls are sampled, such as "with a larger SPANPROF_ALLOC_BYTES". */
const char *sp_model_fewer_calls(const sp_model *model);
/* Write a note when the profiles of TYPE lack dropped calls. TYPE may be SP_MODEL_NONE: then there
 * is no note. SIDE, such as "A: ", begins the note. */
void sp_model_note_dropped_calls(const sp_model *model, uint32_t type, const char *side);

#endif
