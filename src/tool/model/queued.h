/* SPDX-License-Identifier: Apache-2.0 */
/* Time in which no thread carried a span: the span was in a queue, or its work ran where its
 * context was not active. Only wall time can show this: the span lasted longer than threads worked
 * and waited for it. Of many spans together the time is surer than of one. Threads: the main
 * thread. */
#ifndef SP_TOOL_MODEL_QUEUED_H
#define SP_TOOL_MODEL_QUEUED_H

#include "tool/model/model.h"

/* Fill queued_ns of all spans, and model->queues. Returns SP_TOOL_DONE, or SP_TOOL_WRONG when
 * memory is short. */
int sp_model_find_queued(sp_model *model);

/* Steps of sp_model_find_queued, in queued_sum.c. Set model->queues.threads from the samples of
 * TYPE, of which LINKED_NS are linked to spans; returns false when memory is short. */
bool sp_queued_count_threads(sp_model *model, uint32_t type, double linked_ns);
/* The queued_ns of SPAN, from its other members. */
uint64_t sp_queued_of_span(const sp_model *model, const sp_model_type *type,
                           const sp_model_span *span);

/* The time in a queue of several spans together. */
typedef struct sp_queued {
    uint64_t count;       /* the spans */
    uint64_t duration_ns; /* their durations; a span below another one of them adds nothing */
    uint64_t queued_ns;   /* 0: none, or it may be chance */
    uint64_t error_ns;    /* the standard error of queued_ns */
} sp_queued;

/* Sum up the COUNT spans of LIST, without those whose wall time is not known. NESTED is by number
 * of span: it is below another one of the list (sp_groups_find_nested). Call it after
 * sp_model_find_queued. Returns false when memory is short. */
bool sp_queued_sum(sp_queued *out, const sp_model *model, const uint32_t *list, size_t count,
                   const bool *nested);
/* The same for the spans that are set in MARKED (by number of span). If the wall time of one of
 * them is not known, queued_ns is 0. */
bool sp_queued_sum_marked(sp_queued *out, const sp_model *model, const bool *marked);
/* The same for one span. */
sp_queued sp_queued_of(const sp_model_span *span);

/* Write a sentence about spans that have such time: "about 40.0 ms of its 50.0 ms no thread carried
 * this span: …". Returns OUT. */
#define SP_QUEUED_LENGTH 256
const char *sp_queued_format(char out[SP_QUEUED_LENGTH], const sp_queued *queued);

#endif
