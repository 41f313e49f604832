/* SPDX-License-Identifier: Apache-2.0 */
/* The column of `spanprof spans` that shows how many bytes a span and its descendants allocated. */
#include <string.h>

#include "tool/command/spans.h"

enum { VALUE_COLUMNS = 10 };

const sp_model_type *sp_spans_alloc_type(const sp_model *model)
{
    uint32_t type = sp_model_alloc_type(model, true);
    bool is_shown = type != SP_MODEL_NONE && model->types[type].samples > 0;
    return is_shown ? &model->types[type] : NULL;
}

const sp_model_type *sp_spans_alloc_column(const sp_model *model)
{
    const sp_model_type *type = sp_spans_alloc_type(model);
    return type == sp_measured_type(model) ? NULL : type;
}

unsigned sp_spans_alloc_width(const sp_model_type *type)
{
    return type ? VALUE_COLUMNS + 2 : 0;
}

void sp_spans_alloc_head(sp_buffer *out, const sp_model_type *type)
{
    if (type)
        sp_buffer_printf(out, "%*s  ", VALUE_COLUMNS, "alloc");
}

void sp_spans_format_alloc(char out[SP_VALUE_LENGTH], const sp_model_type *type,
                           const sp_model_span *span)
{
    if (sp_hides_total(type, span))
        strcpy(out, "-");
    else
        sp_spans_format_value(out, type, span->alloc_value, span->alloc_count);
}

void sp_spans_alloc_cell(sp_buffer *out, const sp_model_type *type, const sp_model_span *span)
{
    char text[SP_VALUE_LENGTH];
    if (!type)
        return;
    sp_spans_format_alloc(text, type, span);
    sp_buffer_printf(out, "%*s  ", VALUE_COLUMNS, text);
}

bool sp_spans_alloc_is_known(const sp_model_type *type, const sp_model_span *span)
{
    return !sp_hides_total(type, span) && (!type->is_unlinked || span->alloc_count);
}
