/* SPDX-License-Identifier: Apache-2.0 */
/* Time in which no thread carried a span: it was in a queue, or its work ran where its context was
 * not. Only wall time can show it: the span lasted longer than threads worked and waited under
 * it. */
#ifndef SP_TOOL_MODEL_QUEUED_H
#define SP_TOOL_MODEL_QUEUED_H

#include "tool/model/model.h"

/* After sp_model_find_hidden: fill queued_ns of all spans. SP_TOOL_DONE, or SP_TOOL_WRONG: memory
 * is short. */
int sp_model_find_queued(sp_model *model);

/* "about 40.0 ms of its 50.0 ms no thread carried this span: …" of a SPAN with such time. Returns
 * OUT. */
#define SP_QUEUED_LENGTH 256
const char *sp_queued_format(char out[SP_QUEUED_LENGTH], const sp_model_span *span);

#endif
