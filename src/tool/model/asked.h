/* SPDX-License-Identifier: Apache-2.0 */
/* Spans and traces that a question names by their ids. */
#ifndef SP_TOOL_MODEL_ASKED_H
#define SP_TOOL_MODEL_ASKED_H

#include "tool/model/model.h"
#include "tool/text/options.h"

typedef struct sp_asked_span {
    uint8_t id[8];
    uint32_t span; /* SP_MODEL_NONE: the files have at most its samples */
} sp_asked_span;

/* The union of several. With both, only these spans of these traces: an id may be in two. */
typedef struct sp_asked {
    sp_asked_span spans[SP_TEXT_LIST_MAX];
    uint32_t span_count;
    uint8_t traces[SP_TEXT_LIST_MAX][16];
    uint32_t trace_count;
} sp_asked;

/* The ids of SPANS and TRACES, in full or the first digits of one that MODEL has; no span is looked
 * for yet. Having said so: SP_TOOL_WRONG for a text that is no id, SP_TOOL_NO for digits that begin
 * none, or several. */
int sp_asked_parse(sp_asked *asked, const sp_model *model, const sp_text_list *spans,
                   const sp_text_list *traces);
/* Look for the spans in MODEL. SP_TOOL_NO, having said so, when an id is in several traces. */
int sp_asked_find(sp_asked *asked, const sp_model *model);

/* Whether TRACE_ID is one of the traces that were asked for, or none was. */
bool sp_asked_takes_trace(const sp_asked *asked, const uint8_t trace_id[16]);
/* Set MARKED, one for each span, for those that were asked for and the files have. */
void sp_asked_mark(const sp_asked *asked, bool *marked);
/* Set MARKED also for the descendants of those that it has. Returns how many these are. */
uint32_t sp_asked_mark_descendants(const sp_model *model, bool *marked);

/* Say that none of the ids is in the files, and whose the files are. Returns SP_TOOL_NO. */
int sp_asked_absent(const sp_asked *asked, const sp_model *model);

/* The number of the one span that was asked for by id, or SP_MODEL_NONE: none, several, or one that
 * the files do not have. */
static inline uint32_t sp_asked_only_span(const sp_asked *asked)
{
    return asked->span_count == 1 ? asked->spans[0].span : SP_MODEL_NONE;
}

#endif
