/* SPDX-License-Identifier: Apache-2.0 */
/* `spanprof spans --group-by name`: a line for each name. */
#include <stdlib.h>

#include "tool/command/spans.h"

enum { NAME_LEAST = 12, NUMBERS = 95 };

static void add_head(sp_buffer *out, const char *type, const sp_terminal *terminal)
{
    static const char line[] = "%8s %9s %9s %8s  ";
    sp_buffer_printf(out, "%s%8s  %7s  %-37s  %.*s\n", terminal->color ? "\033[2m" : "", "", "",
                     "duration", sp_spans_type_length(type), type);
    sp_buffer_printf(out, "%8s  %7s  ", "spans", "errors");
    for (int i = 0; i < 2; i++)
        sp_buffer_printf(out, line, "p50", "p95", "p99", "max");
    sp_buffer_printf(out, "name%s\n", terminal->color ? "\033[0m" : "");
}

static void add_quantiles(sp_buffer *out, const sp_quantiles *of, const char *unit)
{
    char p50[SP_VALUE_LENGTH], p95[SP_VALUE_LENGTH], p99[SP_VALUE_LENGTH], max[SP_VALUE_LENGTH];
    sp_format_value(p50, of->p50, unit);
    sp_format_value(p95, of->p95, unit);
    sp_format_value(p99, of->p99, unit);
    sp_format_value(max, of->max, unit);
    sp_buffer_printf(out, "%8s %9s %9s %8s  ", p50, p95, p99, max);
}

void sp_spans_groups(sp_buffer *out, const sp_model *model, const sp_groups *groups, size_t shown,
                     const sp_terminal *terminal)
{
    const sp_model_type *type = sp_measured_type(model);
    unsigned width = terminal->columns > NUMBERS + NAME_LEAST ? terminal->columns - NUMBERS : 0;
    add_head(out, type->name, terminal);
    for (size_t i = 0; i < shown; i++) {
        const sp_group *group = &groups->items[sp_spans_line(terminal, i, shown)];
        sp_buffer_printf(out, "%8llu  %7llu  ", (unsigned long long)group->count,
                         (unsigned long long)group->errors);
        add_quantiles(out, &group->duration, "nanoseconds");
        add_quantiles(out, &group->value, type->unit);
        sp_spans_add_cell(out, group->name, width > NAME_LEAST ? width : 40, false, terminal);
        sp_buffer_add_char(out, '\n');
    }
}

static json_t *quantiles_json(const sp_quantiles *of)
{
    return json_pack("{s:I, s:I, s:I, s:I, s:I}", "p50", (json_int_t)of->p50, "p95",
                     (json_int_t)of->p95, "p99", (json_int_t)of->p99, "max", (json_int_t)of->max,
                     "sum", (json_int_t)of->sum);
}

json_t *sp_spans_groups_json(const sp_model *model, const sp_groups *groups, size_t shown)
{
    const sp_model_type *type = sp_measured_type(model);
    json_t *list = json_array();
    for (size_t i = 0; i < shown; i++) {
        const sp_group *group = &groups->items[i];
        json_array_append_new(list, json_pack("{s:s, s:I, s:I, s:I, s:o, s:o}", "name", group->name,
                                              "count", (json_int_t)group->count, "errors",
                                              (json_int_t)group->errors, "samples",
                                              (json_int_t)group->samples, "duration_ns",
                                              quantiles_json(&group->duration), "value",
                                              quantiles_json(&group->value)));
    }
    return json_pack("{s:s, s:s, s:I, s:o}", "type", type->name, "unit", type->unit, "count",
                     (json_int_t)shown, "groups", list);
}
