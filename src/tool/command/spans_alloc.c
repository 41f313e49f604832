/* SPDX-License-Identifier: Apache-2.0 */
/* The column of `spanprof spans` that shows how many bytes a span and its descendants allocated. */
#include <stdio.h>

#include "tool/command/spans.h"
#include "tool/text/escape.h"

enum { VALUE_COLUMNS = 10, ERROR_COLUMNS = 11 };

const sp_model_type *sp_spans_alloc_type(const sp_model *model)
{
    uint32_t type = sp_model_alloc_type(model, true);
    bool is_shown = type != SP_MODEL_NONE && model->types[type].samples > 0;
    return is_shown ? &model->types[type] : NULL;
}

sp_alloc_column sp_spans_alloc_column(const sp_model *model)
{
    const sp_model_type *type = sp_spans_alloc_type(model);
    if (!type || (type == sp_measured_type(model) && !type->has_draws))
        return (sp_alloc_column){0};
    return (sp_alloc_column){.type = type, .has_error = type->has_draws};
}

unsigned sp_spans_alloc_width(sp_alloc_column column)
{
    return column.type ? VALUE_COLUMNS + (column.has_error ? ERROR_COLUMNS : 0) + 2 : 0;
}

bool sp_spans_fit_alloc(sp_alloc_column *column, unsigned *used, const sp_terminal *terminal)
{
    if (sp_spans_take_room(used, sp_spans_alloc_width(*column), terminal))
        return true;
    column->has_error = false;
    if (sp_spans_take_room(used, sp_spans_alloc_width(*column), terminal))
        return true;
    column->type = NULL;
    return false;
}

void sp_spans_alloc_head(sp_buffer *out, sp_alloc_column column)
{
    if (column.type)
        sp_buffer_printf(out, "%*s%*s  ", VALUE_COLUMNS, "alloc",
                         column.has_error ? ERROR_COLUMNS : 0, "");
}

/* Format the error with its sign; "" when there is none. */
static void format_error(char out[SP_VALUE_LENGTH], sp_alloc_column column, double variance,
                         const sp_terminal *terminal)
{
    char text[SP_VALUE_LENGTH];
    uint64_t error = sp_model_error(variance);
    sp_format_value(text, error, column.type->unit);
    snprintf(out, SP_VALUE_LENGTH, " %s %.*s", terminal->utf8 ? "±" : "+-", SP_VALUE_LENGTH - 8,
             text);
    if (!column.has_error || error == 0)
        *out = 0;
}

void sp_spans_alloc_sum_cell(sp_buffer *out, sp_alloc_column column, uint64_t value,
                             double variance, bool is_known, const sp_terminal *terminal)
{
    char text[SP_VALUE_LENGTH] = "-", error[SP_VALUE_LENGTH] = "";
    if (!column.type)
        return;
    if (is_known) {
        sp_spans_format_value(text, column.type, value, value);
        format_error(error, column, variance, terminal);
    }
    sp_buffer_printf(out, "%*s%s", VALUE_COLUMNS, text, error);
    for (unsigned i = sp_text_columns(error); column.has_error && i < ERROR_COLUMNS; i++)
        sp_buffer_add_char(out, ' ');
    sp_buffer_add_string(out, "  ");
}

void sp_spans_alloc_cell(sp_buffer *out, sp_alloc_column column, const sp_model_span *span,
                         const sp_terminal *terminal)
{
    sp_spans_alloc_sum_cell(out, column, span->alloc_value, span->alloc_variance,
                            column.type && !sp_hides_total(column.type, span), terminal);
}

void sp_spans_add_alloc(sp_buffer *out, sp_alloc_column column, const sp_model_span *span,
                        const sp_terminal *terminal)
{
    char text[SP_VALUE_LENGTH] = "-", error[SP_VALUE_LENGTH] = "";
    if (!sp_hides_total(column.type, span)) {
        sp_spans_format_value(text, column.type, span->alloc_value, span->alloc_count);
        format_error(error, column, span->alloc_variance, terminal);
    }
    sp_buffer_printf(out, "%s%s", text, error);
}

json_t *sp_spans_alloc_error_json(const sp_model_type *type, uint64_t value, double variance,
                                  bool is_known)
{
    if (!is_known || !type->has_draws)
        return json_null();
    return json_integer(value ? (json_int_t)sp_model_error(variance) : (json_int_t)type->period);
}

bool sp_spans_alloc_is_known(const sp_model_type *type, const sp_model_span *span)
{
    return !sp_hides_total(type, span) && (!type->is_unlinked || span->alloc_count);
}
