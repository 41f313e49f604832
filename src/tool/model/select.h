/* SPDX-License-Identifier: Apache-2.0 */
/* Which samples a question means: those of a span with its descendants, of a trace, or all; of one
 * type, and of wall time perhaps only those that waited. */
#ifndef SP_TOOL_MODEL_SELECT_H
#define SP_TOOL_MODEL_SELECT_H

#include "tool/model/asked.h"
#include "tool/model/slow.h"
#include "tool/text/options.h"

typedef struct sp_select_options {
    /* The union of several. With both, only these spans of these traces: an id may be in two. */
    sp_text_list span;      /* 16 hex digits each */
    sp_text_list trace;     /* 32 hex digits each */
    const char *where;      /* a query (query.h), or NULL: the spans that match, with descendants */
    const char *percentile; /* "p99": of the spans that match the slow ones (slow.h), or NULL */
    bool rest;              /* of the spans that match all but the slow ones */
    sp_text_list name;      /* only spans of these names; with WHERE those that match both */
    /* "cpu", "wall", "offcpu", "alloc", "inuse", "lock", or a type's name; NULL: the file's own */
    const char *type;
    bool outlived;     /* only what requests that have ended still hold */
    const char *since; /* "first" or a time before the last snapshot: only what grew; or NULL */
    bool self;         /* only the spans' own samples, without their descendants' */
} sp_select_options;

typedef struct sp_selection {
    const sp_model *model;
    uint32_t type;
    bool off_cpu;  /* of wall time only what waited */
    bool outlived; /* of live blocks only those whose request has ended */
    bool grown;    /* of live blocks only what is more than in an earlier snapshot */
    sp_asked asked;
    bool by_where;                     /* or by name */
    const char *name;                  /* of all spans that match, or NULL */
    sp_slow slow;                      /* when its percent is not 0 */
    uint32_t match_count;              /* spans that were asked for, without descendants */
    uint32_t span_count;               /* spans whose samples are meant; 0 when all samples are */
    bool *links;                       /* by number of link; NULL: all samples */
    uint64_t value, count;             /* sums over the selected samples */
    uint64_t where_ns[SP_WHERE_COUNT]; /* the value by class, when the type is wall time */
} sp_selection;

/* Fill SELECTION, to be freed by sp_selection_deinit in any case. SP_TOOL_DONE; SP_TOOL_NO when
 * nothing matches, having said why; SP_TOOL_WRONG for an id or a type that is none, or files
 * without profiles. */
int sp_select(sp_selection *selection, const sp_model *model, const sp_select_options *options);
/* Add up what SELECTION, whose type has changed, has. False: nothing. */
bool sp_selection_sum(sp_selection *selection);
/* Leave out of SELECTION what OTHER, of the same model, has. False: nothing is left. */
bool sp_selection_subtract(sp_selection *selection, const sp_selection *other);
void sp_selection_deinit(sp_selection *selection);

static inline bool sp_selection_has(const sp_selection *selection, const sp_model_sample *sample)
{
    return sample->type == selection->type &&
           (!selection->off_cpu || sample->where != SP_WHERE_CPU) &&
           (!selection->outlived || sample->outlived == SP_OUTLIVED_REQUEST) &&
           (!selection->grown || sample->value) &&
           (!selection->links || selection->links[sample->link]);
}

/* Whether TRACE_ID is one of the traces that were asked for, or none was. */
static inline bool sp_selection_takes_trace(const sp_selection *selection,
                                            const uint8_t trace_id[16])
{
    return sp_asked_takes_trace(&selection->asked, trace_id);
}
/* As sp_asked_only_span. */
static inline uint32_t sp_selection_only_span(const sp_selection *selection)
{
    return sp_asked_only_span(&selection->asked);
}

/* For each span whether the query TEXT selects it, in *MARKS: an array for free(), by number of
 * span. SP_TOOL_DONE, or SP_TOOL_WRONG having said what is wrong in the query, and where. */
int sp_select_spans(const sp_model *model, const char *text, bool **marks);

/* What the selected time is called in answers for programs: "offcpu", or the type's name. */
const char *sp_selection_name(const sp_selection *selection);

/* The types of MODEL for a message: "cpu, alloc_space (bytes)". Returns OUT. */
#define SP_TYPES_LENGTH 256
const char *sp_types_list(char out[SP_TYPES_LENGTH], const sp_model *model);

#endif
