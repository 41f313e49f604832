/* SPDX-License-Identifier: Apache-2.0 */
/* Time in which no thread carried a span: the span was in a queue, or its work ran where its
 * context was not active. Only wall time can show this: the span lasted longer than threads worked
 * and waited for it. */
#ifndef SP_TOOL_MODEL_QUEUED_H
#define SP_TOOL_MODEL_QUEUED_H

#include "tool/model/model.h"

/* Fill queued_ns of all spans. Call it after sp_model_find_hidden. Returns SP_TOOL_DONE, or
 * SP_TOOL_WRONG when memory is short. */
int sp_model_find_queued(sp_model *model);

/* Write a sentence about a SPAN that has such time: "about 40.0 ms of its 50.0 ms no thread carried
 * this span: …". Returns OUT. */
#define SP_QUEUED_LENGTH 256
const char *sp_queued_format(char out[SP_QUEUED_LENGTH], const sp_model_span *span);

#endif
