/* SPDX-License-Identifier: Apache-2.0 */
/* Spans and traces that the user asks for by id. */
#ifndef SP_TOOL_MODEL_ASKED_H
#define SP_TOOL_MODEL_ASKED_H

#include "tool/model/model.h"
#include "tool/text/options.h"

typedef struct sp_asked_span {
    uint8_t id[8];
    uint32_t span; /* SP_MODEL_NONE: the files do not have the span, but may have its samples */
} sp_asked_span;

/* With several ids of one kind, the answer is about all of them. With spans and traces, it is about
 * those of the spans that are in one of the traces: two traces may have spans with the same id. */
typedef struct sp_asked {
    sp_asked_span spans[SP_TEXT_LIST_MAX];
    uint32_t span_count;
    uint8_t traces[SP_TEXT_LIST_MAX][16];
    uint32_t trace_count;
} sp_asked;

/* Parse the ids of SPANS and TRACES. An id is given in full, or by its first digits if MODEL has
 * exactly one such id. The spans are not looked up yet. Returns, after a message, SP_TOOL_WRONG for
 * a text that is not an id, and SP_TOOL_NO for digits that no id, or more than one, begins with. */
int sp_asked_parse(sp_asked *asked, const sp_model *model, const sp_text_list *spans,
                   const sp_text_list *traces);
/* Find the spans in MODEL. Returns SP_TOOL_NO, after a message, when an id is in several traces. */
int sp_asked_find(sp_asked *asked, const sp_model *model);

/* Whether TRACE_ID is one of the traces that were asked for. True for each trace when the user
 * named none. */
bool sp_asked_takes_trace(const sp_asked *asked, const uint8_t trace_id[16]);
/* Set MARKED[n] for each span n that was asked for. MARKED has one member for each span of the
 * model. */
void sp_asked_mark(const sp_asked *asked, bool *marked);
/* Set MARKED also for the descendants of marked spans. Returns how many were added. */
uint32_t sp_asked_mark_descendants(const sp_model *model, bool *marked);

/* Report that none of the ids is in the files, and which service recorded the files when. Returns
 * SP_TOOL_NO. */
int sp_asked_absent(const sp_asked *asked, const sp_model *model);

/* The number of the span, if the user asked for exactly one by id. SP_MODEL_NONE: for none, for
 * several, or for one that the files do not have. */
static inline uint32_t sp_asked_only_span(const sp_asked *asked)
{
    return asked->span_count == 1 ? asked->spans[0].span : SP_MODEL_NONE;
}

#endif
