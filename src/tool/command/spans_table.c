/* SPDX-License-Identifier: Apache-2.0 */
/* `spanprof spans`: a line for each span. A column with the same value in all lines is left out,
 * and the value is written once below the lines. */
#include <string.h>

#include "core/hex.h"
#include "tool/command/spans.h"
#include "tool/text/escape.h"

/* The columns to show. Some are left out on a narrow terminal; --json always has them. */
typedef struct table_layout {
    sp_wall_columns wall;
    sp_alloc_column alloc;
    bool is_measured; /* the files have samples; false: value, own time and samples are unknown */
    bool value, own, status, samples, trace_id;
    unsigned service, name; /* widths; a service of 0: no such column */
} table_layout;

/* Whether two spans have equal values in a column. MEASURED: the type of the values. */
typedef bool (*equality)(const sp_model_type *measured, const sp_model_span *x,
                         const sp_model_span *y);

/* An unknown value is different from a known one. */
static bool same_value(const sp_model_type *measured, const sp_model_span *x,
                       const sp_model_span *y)
{
    return sp_hides_total(measured, x) == sp_hides_total(measured, y) &&
           x->total_value == y->total_value;
}

static bool same_own(const sp_model_type *measured, const sp_model_span *x, const sp_model_span *y)
{
    return sp_hides_own(measured, x) == sp_hides_own(measured, y) && x->own_value == y->own_value;
}

static bool same_samples(const sp_model_type *measured, const sp_model_span *x,
                         const sp_model_span *y)
{
    return sp_hides_total(measured, x) == sp_hides_total(measured, y) &&
           x->total_count == y->total_count;
}

/* MEASURED is the type of allocated bytes here. */
static bool same_alloc(const sp_model_type *measured, const sp_model_span *x,
                       const sp_model_span *y)
{
    return sp_hides_total(measured, x) == sp_hides_total(measured, y) &&
           x->alloc_value == y->alloc_value && x->alloc_variance == y->alloc_variance;
}

static bool same_status(const sp_model_type *measured, const sp_model_span *x,
                        const sp_model_span *y)
{
    (void)measured;
    return strcmp(sp_span_status_text(x), sp_span_status_text(y)) == 0;
}

static bool same_trace(const sp_model_type *measured, const sp_model_span *x,
                       const sp_model_span *y)
{
    (void)measured;
    return memcmp(x->id.trace_id, y->id.trace_id, sizeof x->id.trace_id) == 0;
}

static bool same_service(const sp_model_type *measured, const sp_model_span *x,
                         const sp_model_span *y)
{
    (void)measured;
    return strcmp(x->service, y->service) == 0;
}

/* Whether a column of TYPE has different values in the lines. With one line each column is shown.
 */
static bool differs_in(const sp_model_type *type, const sp_model *model, const uint32_t *list,
                       size_t count, equality equal)
{
    for (size_t i = 1; i < count; i++)
        if (!equal(type, &model->spans[list[0]], &model->spans[list[i]]))
            return true;
    return count == 1;
}

static bool differs(const sp_model *model, const uint32_t *list, size_t count, equality equal)
{
    return differs_in(sp_measured_type(model), model, list, count, equal);
}

static sp_alloc_column useful_alloc(const sp_model *model, const uint32_t *list, size_t count)
{
    sp_alloc_column column = sp_spans_alloc_column(model);
    if (column.type && !differs_in(column.type, model, list, count, same_alloc))
        column.type = NULL;
    return column;
}

/* The width of the column of services. It is shown only when there are several services. */
static unsigned service_columns(const sp_model *model, const uint32_t *list, size_t count)
{
    unsigned columns = 8;
    if (count == 1 || !differs(model, list, count, same_service))
        return 0;
    for (size_t i = 0; i < count; i++) {
        unsigned own = sp_spans_cell_columns(model->spans[list[i]].service);
        columns = own > columns ? own : columns;
    }
    return columns > 20 ? 20 : columns;
}

/* Whether the measured type is that of the column of allocated bytes. */
static bool repeats_alloc(const sp_model *model)
{
    return sp_spans_alloc_column(model).type == sp_measured_type(model);
}

/* The columns with different values, before the width of the terminal is considered. */
static table_layout useful_columns(const sp_model *model, const uint32_t *list, size_t count)
{
    bool is_measured = sp_measured_type(model)->samples > 0;
    return (table_layout){.wall = sp_wall_columns_find(model),
                          .alloc = useful_alloc(model, list, count),
                          .is_measured = is_measured,
                          .value = is_measured && !repeats_alloc(model) &&
                                   differs(model, list, count, same_value),
                          .own = is_measured && differs(model, list, count, same_own),
                          .samples = is_measured && differs(model, list, count, same_samples),
                          .status = differs(model, list, count, same_status),
                          .trace_id = differs(model, list, count, same_trace),
                          .service = service_columns(model, list, count)};
}

/* Fit the column of allocated bytes. If lines are sorted by it and it has no room, the letters of
 * wall time are left out. */
static void fit_alloc(table_layout *layout, unsigned *used, bool by_alloc,
                      const sp_terminal *terminal)
{
    sp_alloc_column alloc = layout->alloc;
    if (sp_spans_fit_alloc(&layout->alloc, used, terminal) || !by_alloc || !layout->wall.bar)
        return;
    unsigned with_bar = sp_wall_columns_width(layout->wall);
    layout->wall.bar = false;
    alloc.has_error = false;
    layout->alloc = alloc;
    *used += sp_spans_alloc_width(alloc) + sp_wall_columns_width(layout->wall) - with_bar;
}

static table_layout fit_columns(table_layout layout, bool by_alloc, const sp_terminal *terminal)
{
    enum { DURATION = 10, VALUE = 10, SPAN_ID = 18, OWN = 10, STATUS = 8, SAMPLES = 9, TRACE = 34 };
    unsigned wall = sp_wall_columns_width(layout.wall);
    unsigned used = DURATION + (layout.value ? VALUE : 0) + SPAN_ID + wall +
                    (layout.service ? layout.service + 2 : 0);
    if (terminal->has_width) {
        fit_alloc(&layout, &used, by_alloc, terminal);
        layout.status = layout.status && sp_spans_take_room(&used, STATUS, terminal);
        layout.own = layout.own && sp_spans_take_room(&used, OWN, terminal);
        layout.samples = layout.samples && sp_spans_take_room(&used, SAMPLES, terminal);
        layout.trace_id = layout.trace_id && sp_spans_take_room(&used, TRACE, terminal);
    }
    layout.name = terminal->has_width ? sp_spans_rest_of_line(terminal, used) : SP_SPANS_WHOLE_NAME;
    return layout;
}

static void add_head(sp_buffer *out, const sp_model *model, const table_layout *layout,
                     const sp_terminal *terminal)
{
    const char *type = sp_measured_type(model)->name;
    sp_buffer_printf(out, "%s%8s  ", terminal->color ? "\033[2m" : "", "duration");
    if (layout->value)
        sp_buffer_printf(out, "%8.*s  ", sp_spans_type_columns(type), type);
    if (layout->own)
        sp_buffer_printf(out, "%8s  ", "own");
    sp_wall_columns_head(out, layout->wall);
    sp_spans_alloc_head(out, layout->alloc);
    if (layout->samples)
        sp_buffer_printf(out, "%7s  ", "samples");
    if (layout->status)
        sp_buffer_printf(out, "%-6s  ", "status");
    if (layout->trace_id)
        sp_buffer_printf(out, "%-32s  ", "trace id");
    sp_buffer_printf(out, "%-16s  ", "span id");
    if (layout->service)
        sp_buffer_printf(out, "%-*s  ", (int)layout->service, "service");
    sp_buffer_printf(out, "name%s\n", terminal->color ? "\033[0m" : "");
}

static void add_sampled(sp_buffer *out, bool is_there, const char *text)
{
    if (is_there)
        sp_buffer_printf(out, "%8s  ", text);
}

static void add_trace_id(sp_buffer *out, const sp_model_span *span, const char *end)
{
    char trace_id[33];
    sp_hex_encode(trace_id, span->id.trace_id, 16);
    sp_buffer_printf(out, "%s%s", trace_id, end);
}

static void add_line(sp_buffer *out, const sp_model *model, const sp_model_span *span,
                     const table_layout *layout, const sp_terminal *terminal)
{
    char span_id[17], duration[SP_DURATION_LENGTH], total[SP_VALUE_LENGTH], own[SP_VALUE_LENGTH];
    char samples[SP_SPANS_COUNT_LENGTH];
    bool is_hidden = sp_hides_total(sp_measured_type(model), span);
    sp_spans_format_total(total, model, span);
    sp_spans_format_own(own, model, span);
    sp_format_duration(duration, span->end_ns - span->start_ns);
    sp_buffer_printf(out, "%8s  ", duration);
    add_sampled(out, layout->value, total);
    add_sampled(out, layout->own, own);
    sp_wall_columns_cells(out, layout->wall, span, terminal);
    sp_spans_alloc_cell(out, layout->alloc, span, terminal);
    if (layout->samples)
        sp_buffer_printf(out, "%7s  ",
                         sp_spans_format_count(samples, span->total_count, is_hidden));
    if (layout->status)
        sp_buffer_printf(out, "%-6s  ", sp_span_status_text(span));
    if (layout->trace_id)
        add_trace_id(out, span, "  ");
    sp_hex_encode(span_id, span->id.span_id, 8);
    sp_buffer_printf(out, "%s  ", span_id);
    if (layout->service) {
        sp_spans_add_cell(out, span->service, layout->service, true, terminal);
        sp_buffer_add_string(out, "  ");
    }
    sp_spans_add_cell(out, span->name, layout->name, false, terminal);
    sp_buffer_add_string(out, span->overruns ? SP_SPANS_OVERRUN_MARK "\n" : "\n");
}

static void add_same_value(sp_buffer *out, bool is_there, const char *name, const char *text)
{
    if (!is_there)
        sp_buffer_printf(out, "%.*s %s, ", sp_spans_type_length(name), name, text);
}

static void add_same_alloc(sp_buffer *out, const sp_model *model, const sp_model_span *first,
                           const table_layout *useful, const sp_terminal *terminal)
{
    sp_alloc_column column = sp_spans_alloc_column(model);
    if (!column.type || useful->alloc.type)
        return;
    sp_buffer_add_string(out, "alloc ");
    sp_spans_add_alloc(out, column, first, terminal);
    sp_buffer_add_string(out, ", ");
}

/* Add the values that all lines have in common. FIRST is the span of one of them. */
static void add_same(sp_buffer *out, const sp_model *model, const sp_model_span *first,
                     const table_layout *useful, const sp_terminal *terminal)
{
    const sp_model_type *type = sp_measured_type(model);
    char total[SP_VALUE_LENGTH], own[SP_VALUE_LENGTH], samples[SP_SPANS_COUNT_LENGTH];
    size_t before = out->length;
    sp_buffer_add_string(out, "the same in all lines: ");
    size_t start = out->length;
    bool is_known = useful->is_measured;
    sp_spans_format_total(total, model, first);
    sp_spans_format_own(own, model, first);
    add_same_value(out, useful->value || !is_known || repeats_alloc(model), type->name, total);
    add_same_value(out, useful->own || !is_known, "own", own);
    add_same_alloc(out, model, first, useful, terminal);
    if (!useful->samples && is_known)
        sp_buffer_printf(
            out, "samples %s, ",
            sp_spans_format_count(samples, first->total_count, sp_hides_total(type, first)));
    if (!useful->status)
        sp_buffer_printf(out, "status %s, ", sp_span_status_text(first));
    if (!useful->service && *first->service) {
        sp_buffer_add_string(out, "service ");
        sp_spans_add_cell(out, first->service, 40, false, terminal);
        sp_buffer_add_string(out, ", ");
    }
    if (!useful->trace_id) {
        sp_buffer_add_string(out, "trace ");
        add_trace_id(out, first, ", ");
    }
    bool is_some = out->length > start;
    out->length = is_some ? out->length - 2 : before;
    sp_buffer_add_string(out, is_some ? "\n" : "");
}

/* Add a line that says why there is no CPU time. */
static void add_unmeasured(sp_buffer *out, const sp_model *model)
{
    if (sp_model_is_of_two_runs(model))
        sp_buffer_add_string(out,
                             "CPU time is not known: the samples are of none of these spans\n");
    else
        sp_buffer_add_string(out, "CPU time is not known, for the files have no samples of it: a "
                                  "run that is too short has none, one with "
                                  "SPANPROF_PROFILES=none or without cpu records none, one that "
                                  "is killed loses those of its last window, and threads that "
                                  "block SIGPROF have none\n");
}

void sp_spans_table(sp_buffer *out, const sp_model *model, const uint32_t *list, size_t count,
                    bool by_alloc, const sp_terminal *terminal)
{
    table_layout useful = useful_columns(model, list, count);
    table_layout layout = fit_columns(useful, by_alloc, terminal);
    add_head(out, model, &layout, terminal);
    for (size_t i = 0; i < count; i++)
        add_line(out, model, &model->spans[list[i]], &layout, terminal);
    if (count > 1)
        add_same(out, model, &model->spans[list[0]], &useful, terminal);
    sp_spans_hidden_key(out, model, list, count);
    sp_spans_unseen_key(out, model);
    if (!useful.is_measured)
        add_unmeasured(out, model);
    sp_spans_overrun_key(out, model, list, count);
    sp_wall_columns_key(out, layout.wall, model, list, count, terminal);
}
