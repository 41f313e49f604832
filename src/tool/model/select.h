/* SPDX-License-Identifier: Apache-2.0 */
/* Selects samples: those of spans with their descendants, of traces, or all; of one type, and of
 * wall time perhaps only those that waited. */
#ifndef SP_TOOL_MODEL_SELECT_H
#define SP_TOOL_MODEL_SELECT_H

#include "tool/model/asked.h"
#include "tool/model/queued.h"
#include "tool/model/slow.h"
#include "tool/text/options.h"

typedef struct sp_select_options {
    /* With several ids of one kind, samples of all of them are selected. With both, only spans that
     * are in one of the traces: two traces may have spans with the same id. */
    sp_text_list span;  /* ids, in full or their first digits (asked.h) */
    sp_text_list trace; /* the same for traces */
    const char *where;  /* a query (query.h) that selects spans, with their descendants, or NULL */
    const char *where_option; /* the option that gave `where`, for messages; NULL: --where */
    /* "p99": of the spans that match, only the slow ones (slow.h); or NULL */
    const char *percentile;
    bool rest;         /* of the spans that match, all but the slow ones */
    sp_text_list name; /* spans with one of these names; with `where`, spans that match both */
    /* "cpu", "wall", "offcpu", "alloc", "inuse", "lock", or the name of a type. NULL: "inuse" with
     * `outlived` or `since`, else sp_model_time_type for spans, else sp_model_main_type. */
    const char *type;
    bool outlived; /* only blocks whose request has ended */
    /* "first", or a time before the last snapshot: only what grew since then; or NULL */
    const char *since;
    bool self; /* only samples of the spans themselves, without those of descendants */
} sp_select_options;

typedef struct sp_selection {
    const sp_model *model;
    uint32_t type;
    bool off_cpu;  /* only wall time of threads that waited */
    bool outlived; /* only live blocks whose request has ended */
    bool grown;    /* only what is more than in an earlier snapshot */
    sp_asked asked;
    bool by_where; /* spans were selected by a query or by name */
    /* the name of all selected spans, if the user gave just one name; else NULL */
    const char *name;
    /* of spans that were selected by a query or by name, after sp_model_find_queued */
    sp_queued queued;
    sp_slow slow;         /* used when its percent is not 0 */
    bool *matches;        /* by number of span: it is selected, without descendants */
    uint32_t match_count; /* selected spans, without descendants */
    uint32_t span_count;  /* selected spans, with descendants; 0: all samples are selected */
    /* of the selected spans, without descendants: the sums of their durations, and of the CPU time
     * that samples show with descendants and the time in which no thread carried them */
    uint64_t duration_ns, accounted_ns;
    bool *links;           /* by number of link: its samples are selected; NULL: all samples are */
    uint64_t value, count; /* sums over the selected samples */
    uint64_t where_ns[SP_WHERE_COUNT]; /* the value by class, when the type is wall time */
} sp_selection;

/* Fill SELECTION. Returns SP_TOOL_DONE. Otherwise, after a message, SP_TOOL_NO when nothing
 * matches, and SP_TOOL_WRONG for an invalid id or type, or files without profiles. Free SELECTION
 * by sp_selection_deinit in any case. */
int sp_select(sp_selection *selection, const sp_model *model, const sp_select_options *options);
/* Compute the sums of SELECTION again after its type has changed. Returns false when nothing is
 * selected. */
bool sp_selection_sum(sp_selection *selection);
/* Remove from SELECTION what OTHER, a selection of the same model, has. Returns false when nothing
 * is left. */
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

/* As sp_asked_takes_trace. */
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

/* For each span, whether the query TEXT selects it: an array in *MARKS, by number of span. Free it
 * by free(). Returns SP_TOOL_DONE, or SP_TOOL_WRONG after a message about what is wrong in the
 * query, and where; it calls the query OPTION. */
int sp_select_spans(const sp_model *model, const char *option, const char *text, bool **marks);

/* The name of the selected type in answers for programs: "offcpu", or the name of the type. */
const char *sp_selection_name(const sp_selection *selection);

/* The type that WORD of --type means, or SP_MODEL_NONE. INNERMOST: prefer a type that is linked to
 * innermost spans, because it shows best what a span took. */
uint32_t sp_type_of_word(const sp_model *model, const char *word, bool innermost);

/* List the types of MODEL for a message: "cpu, alloc_space (bytes)". Returns OUT. */
#define SP_TYPES_LENGTH 256
const char *sp_types_list(char out[SP_TYPES_LENGTH], const sp_model *model);

#endif
