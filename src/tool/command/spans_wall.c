/* SPDX-License-Identifier: Apache-2.0 */
/* Wall time in the tables of `spanprof spans`: its sum, and a bar of ten letters that shows the
 * classes of the time. The time in which no thread carried the span is an additional class. */
#include "tool/command/spans.h"

enum { TOTAL_COLUMNS = 8, BAR_COLUMNS = 10, GAP = 2 };
/* The additional class comes after those of wall time. */
enum { QUEUE = SP_WHERE_COUNT, CLASSES };
#define QUEUE_NAME "queue"

sp_wall_columns sp_wall_columns_find(const sp_model *model)
{
    uint32_t wall = sp_model_wall_type(model, true);
    if (wall == SP_MODEL_NONE)
        return (sp_wall_columns){0};
    return (sp_wall_columns){.type = &model->types[wall],
                             .total = wall != sp_model_time_type(model),
                             .bar = model->types[wall].has_waiting_samples};
}

unsigned sp_wall_columns_width(sp_wall_columns columns)
{
    return (columns.total ? TOTAL_COLUMNS + GAP : 0) + (columns.bar ? BAR_COLUMNS + GAP : 0);
}

void sp_wall_columns_head(sp_buffer *out, sp_wall_columns columns)
{
    if (columns.total)
        sp_buffer_printf(out, "%*s  ", TOTAL_COLUMNS, "wall");
    if (columns.bar)
        sp_buffer_printf(out, "%-*s  ", BAR_COLUMNS, "went to");
}

static const char *color_of(int where)
{
    static const char *const colors[CLASSES] = {"\033[31m", "\033[35m", "\033[33m", "\033[32m",
                                                "\033[92m", "\033[93m", "\033[34m", "\033[36m",
                                                "\033[2m",  "",         "\033[95m"};
    return colors[where];
}

static char letter_of(int where)
{
    return where == QUEUE ? *QUEUE_NAME : sp_where_letters[where];
}

static void add_letter(sp_buffer *out, int where, const sp_terminal *terminal)
{
    if (terminal->color)
        sp_buffer_printf(out, "%s%c\033[0m", color_of(where), letter_of(where));
    else
        sp_buffer_add_char(out, letter_of(where));
}

/* Add the bar. Letter I is the class that contains the middle of the I-th tenth, so there are
 * always ten letters. */
static void add_bar(sp_buffer *out, const sp_model_span *span, const sp_terminal *terminal)
{
    double whole = (double)sp_where_sum(span->wall_ns) + (double)span->queued_ns;
    double below = (double)span->wall_ns[0];
    int where = 0;
    for (int i = 0; i < BAR_COLUMNS; i++) {
        double middle = whole * (2 * i + 1) / (2 * BAR_COLUMNS);
        while (where < QUEUE && below <= middle)
            below += (double)(++where == QUEUE ? span->queued_ns : span->wall_ns[where]);
        if (whole > 0)
            add_letter(out, where, terminal);
        else
            sp_buffer_add_char(out, ' ');
    }
}

bool sp_wall_columns_hide(sp_wall_columns columns, const sp_model_span *span)
{
    const sp_model_type *type = columns.type;
    return type &&
           (sp_hides_total(type, span) || (type->is_unlinked && sp_where_sum(span->wall_ns) == 0));
}

static void add_total(sp_buffer *out, sp_wall_columns columns, const sp_model_span *span)
{
    char wall[SP_VALUE_LENGTH] = "-";
    uint64_t sum = sp_where_sum(span->wall_ns);
    if (!sp_wall_columns_hide(columns, span))
        sp_spans_format_value(wall, columns.type, sum, sum);
    sp_buffer_printf(out, "%*s  ", TOTAL_COLUMNS, wall);
}

void sp_wall_columns_cells(sp_buffer *out, sp_wall_columns columns, const sp_model_span *span,
                           const sp_terminal *terminal)
{
    if (columns.total)
        add_total(out, columns, span);
    if (columns.bar) {
        add_bar(out, span, terminal);
        sp_buffer_add_string(out, "  ");
    }
}

static bool has_queued(const sp_model *model, const uint32_t *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (model->spans[list[i]].queued_ns)
            return true;
    return false;
}

static void add_name(sp_buffer *out, int where, const char *name, const sp_terminal *terminal)
{
    add_letter(out, where, terminal);
    sp_buffer_add_string(out, name + 1);
}

void sp_wall_columns_key(sp_buffer *out, sp_wall_columns columns, const sp_model *model,
                         const uint32_t *list, size_t count, const sp_terminal *terminal)
{
    if (!columns.bar)
        return;
    sp_buffer_add_string(out, "tenths:");
    for (int i = 0; i < SP_WHERE_COUNT; i++) {
        sp_buffer_add_char(out, ' ');
        add_name(out, i, sp_where_names[i], terminal);
    }
    sp_buffer_add_char(out, '\n');
    if (!has_queued(model, list, count))
        return;
    sp_buffer_add_string(out, "and ");
    add_name(out, QUEUE, QUEUE_NAME, terminal);
    sp_buffer_add_string(out,
                         ": no thread carried the span, its work ran without the context, or it "
                         "was ended long after its work\n");
}
