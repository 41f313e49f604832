/* SPDX-License-Identifier: Apache-2.0 */
/* `spanprof spans`: its options and its forms. */
#ifndef SP_TOOL_COMMAND_SPANS_H
#define SP_TOOL_COMMAND_SPANS_H

#include "tool/model/groups.h"
#include "tool/model/hidden.h"
#include "tool/model/model.h"
#include "tool/text/options.h"
#include "tool/text/output.h"

#define SP_SPANS_NO_LIMIT      UINT64_MAX
#define SP_SPANS_DEFAULT_LIMIT 20

/* The columns of a name that is not cut, as in a pipe. */
enum { SP_SPANS_WHOLE_NAME = 1 << 16 };

typedef struct sp_spans_options {
    const char *sort;
    sp_text_list span;    /* the union of several, each with its descendants */
    sp_text_list trace;   /* the union of several */
    sp_text_list name;    /* the union of several */
    const char *where;    /* a query */
    const char *group_by; /* "name", or NULL */
    bool by_name;         /* the same as this */
    uint64_t limit;       /* lines to show; 0: all; SP_SPANS_NO_LIMIT: not asked */
    bool json;
    bool roots;
    bool holders;
} sp_spans_options;

/* How many of COUNT lines to show. JSON is for programs: all, unless a limit was asked for. */
static inline size_t sp_spans_shown(const sp_spans_options *options, size_t count)
{
    uint64_t limit = options->limit != SP_SPANS_NO_LIMIT ? options->limit
                     : options->json                     ? 0
                                                         : SP_SPANS_DEFAULT_LIMIT;
    return limit && limit < count ? (size_t)limit : count;
}

/* The index of line AT of SHOWN in a list that has the largest first: on a terminal the largest
 * comes last. */
static inline size_t sp_spans_line(const sp_terminal *terminal, size_t at, size_t shown)
{
    return terminal->is_terminal ? shown - 1 - at : at;
}

/* The forms append to OUT. LIST has COUNT numbers of spans in the order in which to show them. */
/* In spans_table.c: a line for each span, in columns. BY_ALLOC: they are sorted by allocated bytes,
 * whose column then stays on a narrow terminal. */
void sp_spans_table(sp_buffer *out, const sp_model *model, const uint32_t *list, size_t count,
                    bool by_alloc, const sp_terminal *terminal);
/* The spans of LIST as a tree: all those of one trace, or a span and all its descendants; parents
 * stand before children. */
void sp_spans_tree(sp_buffer *out, const sp_model *model, const uint32_t *list, size_t count,
                   const sp_terminal *terminal);
/* In spans_holders.c: prints which span waited for which lock, and which span held it, for the
 * waits of the spans in CHOSEN (by number of span); NULL: for all. */
int sp_spans_holders(const sp_model *model, const bool *chosen, const sp_spans_options *options);
json_t *sp_spans_json(const sp_model *model, const uint32_t *list, size_t count);

/* What the numbers measure: a type of the files, or CPU time when they have no profiles. */
const sp_model_type *sp_measured_type(const sp_model *model);
/* VALUE, for which a span of TYPE has COUNT samples. Without samples it is not measured to be zero:
 * "<10.1 ms", less than one sample stands for; "-" when the files have no samples at all. */
void sp_spans_format_value(char out[SP_VALUE_LENGTH], const sp_model_type *type, uint64_t value,
                           uint64_t count);
/* The same of what SPAN has of the measured type, with its descendants and without; "-" where the
 * links of the samples hide it. */
void sp_spans_format_total(char out[SP_VALUE_LENGTH], const sp_model *model,
                           const sp_model_span *span);
void sp_spans_format_own(char out[SP_VALUE_LENGTH], const sp_model *model,
                         const sp_model_span *span);
/* How many samples it has, or "-". */
enum { SP_SPANS_COUNT_LENGTH = 24 };
const char *sp_spans_format_count(char out[SP_SPANS_COUNT_LENGTH], uint64_t count, bool is_hidden);
/* Below a table: why some values are "-"; and only where this is so of the COUNT spans of LIST. */
void sp_spans_add_hidden_key(sp_buffer *out);
void sp_spans_hidden_key(sp_buffer *out, const sp_model *model, const uint32_t *list, size_t count);
/* Below the table in OUT: what "<10.1 ms" and "<512 KiB" say, when they are there. */
void sp_spans_unseen_key(sp_buffer *out, const sp_model *model);
/* TEXT, escaped, in at most COLUMNS columns, then filled up to them with spaces when FILL. */
void sp_spans_add_cell(sp_buffer *out, const char *text, unsigned columns, bool fill,
                       const sp_terminal *terminal);
/* How many columns the whole of TEXT takes there. */
unsigned sp_spans_cell_columns(const char *text);

/* Whether a column of WIDTH has room beside a name; *USED takes it in then. */
bool sp_spans_take_room(unsigned *used, unsigned width, const sp_terminal *terminal);
/* The columns that are left for a name behind USED others. */
unsigned sp_spans_rest_of_line(const sp_terminal *terminal, unsigned used);
/* How much of a type's name is shown: cpu_innermost is cpu; and in a column of eight. */
int sp_spans_type_length(const char *type);
int sp_spans_type_columns(const char *type);

/* Behind the name of a span that overruns, and below the COUNT spans of LIST what it says. */
#define SP_SPANS_OVERRUN_MARK "  [!]"
void sp_spans_overrun_key(sp_buffer *out, const sp_model *model, const uint32_t *list,
                          size_t count);
/* The last line, when only SHOWN of COUNT things, each a WHAT, are there. */
void sp_spans_more(sp_buffer *out, size_t shown, size_t count, const char *what,
                   const sp_terminal *terminal);

/* In spans_groups.c: the first SHOWN of GROUPS. */
void sp_spans_groups(sp_buffer *out, const sp_model *model, const sp_groups *groups, size_t shown,
                     const sp_terminal *terminal);
json_t *sp_spans_groups_json(const sp_model *model, const sp_groups *groups, size_t shown);

/* In spans_wall.c: the columns of wall time. */
typedef struct sp_wall_columns {
    const sp_model_type *type; /* NULL: there are none */
    bool total;                /* not when the measured type is wall time itself */
    bool bar;                  /* the classes that it went to, where the files tell them */
} sp_wall_columns;

sp_wall_columns sp_wall_columns_find(const sp_model *model);
/* How wide they are, with the space behind each. */
unsigned sp_wall_columns_width(sp_wall_columns columns);
void sp_wall_columns_head(sp_buffer *out, sp_wall_columns columns);
bool sp_wall_columns_hide(sp_wall_columns columns, const sp_model_span *span);
void sp_wall_columns_cells(sp_buffer *out, sp_wall_columns columns, const sp_model_span *span,
                           const sp_terminal *terminal);
/* Below the COUNT spans of LIST: what the letters of their bars mean. */
void sp_wall_columns_key(sp_buffer *out, sp_wall_columns columns, const sp_model *model,
                         const uint32_t *list, size_t count, const sp_terminal *terminal);

/* In spans_alloc.c: bytes that a span and its descendants allocated. The type that has them; NULL:
 * the files have no samples of allocations. */
const sp_model_type *sp_spans_alloc_type(const sp_model *model);
/* The same for a column of its own; NULL also when the measured type is this one. The functions
 * below take either, and write nothing for NULL. */
const sp_model_type *sp_spans_alloc_column(const sp_model *model);
/* How wide the column is, with the space after it. */
unsigned sp_spans_alloc_width(const sp_model_type *type);
void sp_spans_alloc_head(sp_buffer *out, const sp_model_type *type);
void sp_spans_alloc_cell(sp_buffer *out, const sp_model_type *type, const sp_model_span *span);
/* TYPE is not NULL. */
void sp_spans_format_alloc(char out[SP_VALUE_LENGTH], const sp_model_type *type,
                           const sp_model_span *span);
/* Whether the samples of TYPE, which is not NULL, tell how much SPAN allocated. */
bool sp_spans_alloc_is_known(const sp_model_type *type, const sp_model_span *span);

/* In spans_waterfall.c: bars from the start of a trace to its end. */
typedef struct sp_waterfall {
    uint64_t start_ns, end_ns;
    unsigned columns;            /* 0: there is no room for it */
    const sp_model_type *shades; /* the measured type, when it is CPU time; else NULL */
} sp_waterfall;

/* Of the COUNT spans of LIST, in at most ROOM columns. */
sp_waterfall sp_waterfall_find(const sp_model *model, const uint32_t *list, size_t count,
                               unsigned room);
unsigned sp_waterfall_width(const sp_waterfall *waterfall);
void sp_waterfall_head(sp_buffer *out, const sp_waterfall *waterfall);
void sp_waterfall_cell(sp_buffer *out, const sp_waterfall *waterfall, const sp_model_span *span,
                       const sp_terminal *terminal);
/* Below the tree: what the bars mean. */
void sp_waterfall_key(sp_buffer *out, const sp_waterfall *waterfall, const sp_terminal *terminal);

/* "ok", "error" or "unset". */
const char *sp_span_status_text(const sp_model_span *span);

#endif
