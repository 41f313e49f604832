/* SPDX-License-Identifier: Apache-2.0 */
/* The options of `spanprof spans` and the forms of its answers. */
#ifndef SP_TOOL_COMMAND_SPANS_H
#define SP_TOOL_COMMAND_SPANS_H

#include "tool/model/groups.h"
#include "tool/model/hidden.h"
#include "tool/model/model.h"
#include "tool/text/options.h"
#include "tool/text/output.h"

#define SP_SPANS_NO_LIMIT      UINT64_MAX
#define SP_SPANS_DEFAULT_LIMIT 20

/* The width for names that must not be cut, as in a pipe. */
enum { SP_SPANS_WHOLE_NAME = 1 << 16 };

typedef struct sp_spans_options {
    const char *sort;
    sp_text_list span;    /* spans with one of these ids, and their descendants */
    sp_text_list trace;   /* spans of these traces */
    sp_text_list name;    /* spans with one of these names */
    const char *where;    /* a query (model/query.h) */
    const char *group_by; /* "name", or NULL */
    bool by_name;         /* the same as group_by "name" */
    uint64_t limit;       /* lines to show; 0: all; SP_SPANS_NO_LIMIT: the user gave none */
    const char *names;    /* the style of functions' names, for `holders`; NULL: the default */
    bool json;
    bool roots;
    bool holders;
} sp_spans_options;

/* How many of COUNT lines to show. JSON has all lines, unless the user gave a limit, because it is
 * for programs. */
static inline size_t sp_spans_shown(const sp_spans_options *options, size_t count)
{
    uint64_t limit = options->limit != SP_SPANS_NO_LIMIT ? options->limit
                     : options->json                     ? 0
                                                         : SP_SPANS_DEFAULT_LIMIT;
    return limit && limit < count ? (size_t)limit : count;
}

/* The index in a list, which has the largest first, of the line at position AT of SHOWN. On a
 * terminal the largest comes last. */
static inline size_t sp_spans_line(const sp_terminal *terminal, size_t at, size_t shown)
{
    return terminal->is_terminal ? shown - 1 - at : at;
}

/* The functions below append to OUT. LIST has COUNT numbers of spans, in the order to show them. */
/* A line for each span, in columns. BY_ALLOC: spans are sorted by allocated bytes, so this column
 * is kept on a narrow terminal. In spans_table.c. */
void sp_spans_table(sp_buffer *out, const sp_model *model, const uint32_t *list, size_t count,
                    bool by_alloc, const sp_terminal *terminal);
/* The spans of LIST as a tree: all spans of one trace, or a span and all its descendants. In LIST,
 * parents come before children. */
void sp_spans_tree(sp_buffer *out, const sp_model *model, const uint32_t *list, size_t count,
                   const sp_terminal *terminal);
/* Print which span waited for which lock, and which span held it, for the waits of the spans in
 * CHOSEN (by number of span); NULL: of all spans. Returns an exit code. In spans_holders.c. */
int sp_spans_holders(const sp_model *model, const bool *chosen, const sp_spans_options *options);
json_t *sp_spans_json(const sp_model *model, const uint32_t *list, size_t count);

/* The type of the values in the tables: a type of the files, or CPU time if they have no
 * profiles. */
const sp_model_type *sp_measured_type(const sp_model *model);
/* Format VALUE of a span, which has COUNT samples of TYPE. Without samples the value is not known
 * to be zero: then it is "<10.1 ms", less than one sample stands for. "-": the files have no
 * samples of TYPE, or hardly any that are linked to spans. */
void sp_spans_format_value(char out[SP_VALUE_LENGTH], const sp_model_type *type, uint64_t value,
                           uint64_t count);
/* Format the value of SPAN in the measured type, with its descendants, and without them. "-": the
 * links of the samples hide it. */
void sp_spans_format_total(char out[SP_VALUE_LENGTH], const sp_model *model,
                           const sp_model_span *span);
void sp_spans_format_own(char out[SP_VALUE_LENGTH], const sp_model *model,
                         const sp_model_span *span);
/* Format COUNT, a number of samples; "-" if IS_HIDDEN. */
enum { SP_SPANS_COUNT_LENGTH = 24 };
const char *sp_spans_format_count(char out[SP_SPANS_COUNT_LENGTH], uint64_t count, bool is_hidden);
/* The lines below a table that say why some values are "-". sp_spans_hidden_key adds them only if
 * one of the COUNT spans of LIST has such a value. */
void sp_spans_add_scope_key(sp_buffer *out);
void sp_spans_hidden_key(sp_buffer *out, const sp_model *model, const uint32_t *list, size_t count);
/* The lines below the table in OUT that say what "<10.1 ms" and "<512 KiB" mean, if the table has
 * such values. */
void sp_spans_unseen_key(sp_buffer *out, const sp_model *model);
/* Add TEXT, escaped, in at most COLUMNS columns. FILL: add spaces up to COLUMNS. */
void sp_spans_add_cell(sp_buffer *out, const char *text, unsigned columns, bool fill,
                       const sp_terminal *terminal);
/* The number of columns that all of TEXT needs, escaped. */
unsigned sp_spans_cell_columns(const char *text);

/* Whether a column of WIDTH and a name have room. If so, WIDTH is added to *USED. */
bool sp_spans_take_room(unsigned *used, unsigned width, const sp_terminal *terminal);
/* The number of columns that are left for a name after USED columns. */
unsigned sp_spans_rest_of_line(const sp_terminal *terminal, unsigned used);
/* How much of a type's name is shown: of cpu_innermost only cpu. In a table it is at most eight
 * columns (sp_spans_type_columns). */
int sp_spans_type_length(const char *type);
int sp_spans_type_columns(const char *type);

/* The mark after the name of a span that overruns, and the line below the table that explains the
 * mark, if one of the COUNT spans of LIST has it. */
#define SP_SPANS_OVERRUN_MARK "  [!]"
void sp_spans_overrun_key(sp_buffer *out, const sp_model *model, const uint32_t *list,
                          size_t count);
/* Add the last line, which says how many are not shown, if only SHOWN of COUNT things are. WHAT
 * names one of them. */
void sp_spans_more(sp_buffer *out, size_t shown, size_t count, const char *what,
                   const sp_terminal *terminal);

/* The first SHOWN of GROUPS. In spans_groups.c. */
void sp_spans_groups(sp_buffer *out, const sp_model *model, const sp_groups *groups, size_t shown,
                     const sp_terminal *terminal);
json_t *sp_spans_groups_json(const sp_model *model, const sp_groups *groups, size_t shown);

/* The columns of wall time. In spans_wall.c. */
typedef struct sp_wall_columns {
    const sp_model_type *type; /* NULL: no such columns */
    bool total;                /* the sum; false when the measured type is wall time itself */
    bool bar;                  /* the classes of the time, if the files have them */
} sp_wall_columns;

sp_wall_columns sp_wall_columns_find(const sp_model *model);
/* The width of the columns, with the space after each. */
unsigned sp_wall_columns_width(sp_wall_columns columns);
void sp_wall_columns_head(sp_buffer *out, sp_wall_columns columns);
bool sp_wall_columns_hide(sp_wall_columns columns, const sp_model_span *span);
void sp_wall_columns_cells(sp_buffer *out, sp_wall_columns columns, const sp_model_span *span,
                           const sp_terminal *terminal);
/* The lines below a table of the COUNT spans of LIST that say what the letters of the bars mean. */
void sp_wall_columns_key(sp_buffer *out, sp_wall_columns columns, const sp_model *model,
                         const uint32_t *list, size_t count, const sp_terminal *terminal);

/* The type of bytes that a span and its descendants allocated. NULL: the files have no samples of
 * allocations. In spans_alloc.c. */
const sp_model_type *sp_spans_alloc_type(const sp_model *model);
/* The column of allocated bytes. */
typedef struct sp_alloc_column {
    const sp_model_type *type; /* NULL: no such column */
    bool has_error;            /* values have their standard error */
} sp_alloc_column;

/* The column that the files can fill. There is none for the measured type if the files do not show
 * its errors, because the column would repeat the values. The functions below write nothing when
 * there is no column. */
sp_alloc_column sp_spans_alloc_column(const sp_model *model);
/* Fit the column into the line, if necessary without the errors, or else remove it. Returns false
 * when it was removed. */
bool sp_spans_fit_alloc(sp_alloc_column *column, unsigned *used, const sp_terminal *terminal);
/* The width of the column, with the space after it. */
unsigned sp_spans_alloc_width(sp_alloc_column column);
void sp_spans_alloc_head(sp_buffer *out, sp_alloc_column column);
void sp_spans_alloc_cell(sp_buffer *out, sp_alloc_column column, const sp_model_span *span,
                         const sp_terminal *terminal);
/* As sp_spans_alloc_cell, for a sum VALUE with VARIANCE. */
void sp_spans_alloc_sum_cell(sp_buffer *out, sp_alloc_column column, uint64_t value,
                             double variance, bool is_known, const sp_terminal *terminal);
/* Add the bytes that SPAN allocated, with their error, to a line of text. */
void sp_spans_add_alloc(sp_buffer *out, sp_alloc_column column, const sp_model_span *span,
                        const sp_terminal *terminal);
/* The standard error of a sum of TYPE. Without samples it is what one sample stands for; null: it
 * is not known. */
json_t *sp_spans_alloc_error_json(const sp_model_type *type, uint64_t value, double variance,
                                  bool is_known);
/* Whether the samples of TYPE, which is not NULL, show how much SPAN allocated. */
bool sp_spans_alloc_is_known(const sp_model_type *type, const sp_model_span *span);

/* Bars from the start of a trace to its end. In spans_waterfall.c. */
typedef struct sp_waterfall {
    uint64_t start_ns, end_ns;
    unsigned columns;            /* 0: there is no room for bars */
    const sp_model_type *shades; /* the measured type if it is CPU time, else NULL */
} sp_waterfall;

/* Prepare bars for the COUNT spans of LIST, in at most ROOM columns. */
sp_waterfall sp_waterfall_find(const sp_model *model, const uint32_t *list, size_t count,
                               unsigned room);
unsigned sp_waterfall_width(const sp_waterfall *waterfall);
void sp_waterfall_head(sp_buffer *out, const sp_waterfall *waterfall);
void sp_waterfall_cell(sp_buffer *out, const sp_waterfall *waterfall, const sp_model_span *span,
                       const sp_terminal *terminal);
/* The line below the tree that says what the bars mean. */
void sp_waterfall_key(sp_buffer *out, const sp_waterfall *waterfall, const sp_terminal *terminal);

/* "ok", "error" or "unset". */
const char *sp_span_status_text(const sp_model_span *span);

#endif
