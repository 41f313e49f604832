/* SPDX-License-Identifier: Apache-2.0 */
/* `spanprof spans --group-by name`: a line for each name. */
#include <stdlib.h>

#include "tool/command/spans.h"

enum { FRONT = 19, DURATIONS = 39, NAME_ROOM = 20 };

/* What has room beside the names. */
typedef struct groups_layout {
    bool narrow; /* of the quantiles only p50 and p99 */
    unsigned name;
} groups_layout;

static groups_layout fit(const sp_terminal *terminal)
{
    unsigned used = FRONT + 2 * DURATIONS;
    groups_layout layout = {.name = SP_SPANS_WHOLE_NAME};
    if (!terminal->has_width)
        return layout;
    layout.narrow = used + NAME_ROOM > terminal->columns;
    used = layout.narrow ? FRONT + DURATIONS + 1 : used;
    layout.name = sp_spans_rest_of_line(terminal, used);
    return layout;
}

static void add_columns(sp_buffer *out, bool narrow, const char *p50, const char *p95,
                        const char *p99, const char *max)
{
    if (narrow)
        sp_buffer_printf(out, "%8s %9s  ", p50, p99);
    else
        sp_buffer_printf(out, "%8s %9s %9s %8s  ", p50, p95, p99, max);
}

static void add_head(sp_buffer *out, const char *type, bool narrow, const sp_terminal *terminal)
{
    int length = sp_spans_type_length(type);
    length = narrow && length > DURATIONS / 2 - 1 ? DURATIONS / 2 - 1 : length;
    sp_buffer_printf(out, "%s%8s  %7s  %-*s  %.*s\n", terminal->color ? "\033[2m" : "", "", "",
                     narrow ? DURATIONS / 2 - 1 : DURATIONS - 2, "duration", length, type);
    sp_buffer_printf(out, "%8s  %7s  ", "spans", "errors");
    for (int i = 0; i < 2; i++)
        add_columns(out, narrow, "p50", "p95", "p99", "max");
    sp_buffer_printf(out, "name%s\n", terminal->color ? "\033[0m" : "");
}

static void add_durations(sp_buffer *out, bool narrow, const sp_quantiles *of)
{
    char p50[SP_DURATION_LENGTH], p95[SP_DURATION_LENGTH], p99[SP_DURATION_LENGTH];
    char max[SP_DURATION_LENGTH];
    sp_format_duration(p50, of->p50);
    sp_format_duration(p95, of->p95);
    sp_format_duration(p99, of->p99);
    sp_format_duration(max, of->max);
    add_columns(out, narrow, p50, p95, p99, max);
}

/* Each is the value of one span, which has no sample where it is 0. */
static void add_values(sp_buffer *out, bool narrow, const sp_group *group,
                       const sp_model_type *type)
{
    char p50[SP_VALUE_LENGTH], p95[SP_VALUE_LENGTH], p99[SP_VALUE_LENGTH], max[SP_VALUE_LENGTH];
    const sp_quantiles *of = &group->value;
    if (!group->known) {
        add_columns(out, narrow, "-", "-", "-", "-");
        return;
    }
    sp_spans_format_value(p50, type, of->p50, of->p50);
    sp_spans_format_value(p95, type, of->p95, of->p95);
    sp_spans_format_value(p99, type, of->p99, of->p99);
    sp_spans_format_value(max, type, of->max, of->max);
    add_columns(out, narrow, p50, p95, p99, max);
}

static bool hides_values(const sp_groups *groups, size_t shown)
{
    for (size_t i = 0; i < shown; i++)
        if (groups->items[i].known < groups->items[i].count)
            return true;
    return false;
}

void sp_spans_groups(sp_buffer *out, const sp_model *model, const sp_groups *groups, size_t shown,
                     const sp_terminal *terminal)
{
    const sp_model_type *type = sp_measured_type(model);
    groups_layout layout = fit(terminal);
    add_head(out, type->name, layout.narrow, terminal);
    for (size_t i = 0; i < shown; i++) {
        const sp_group *group = &groups->items[sp_spans_line(terminal, i, shown)];
        sp_buffer_printf(out, "%8llu  %7llu  ", (unsigned long long)group->count,
                         (unsigned long long)group->errors);
        add_durations(out, layout.narrow, &group->duration);
        add_values(out, layout.narrow, group, type);
        sp_spans_add_cell(out, group->name, layout.name, false, terminal);
        sp_buffer_add_char(out, '\n');
    }
    if (hides_values(groups, shown))
        sp_spans_add_hidden_key(out);
    sp_spans_unseen_key(out, model);
    if (layout.narrow)
        sp_buffer_add_string(out, "p95 and max are shown in a pipe, or on a wider terminal\n");
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
        bool is_known = group->known > 0;
        json_array_append_new(
            list,
            json_pack("{s:s, s:I, s:I, s:o, s:o, s:o}", "name", group->name, "count",
                      (json_int_t)group->count, "errors", (json_int_t)group->errors, "samples",
                      is_known ? json_integer((json_int_t)group->samples) : json_null(),
                      "duration_ns", quantiles_json(&group->duration), "value",
                      is_known ? quantiles_json(&group->value) : json_null()));
    }
    return json_pack("{s:s, s:s, s:I, s:I, s:o}", "type", type->name, "unit", type->unit, "period",
                     (json_int_t)type->period, "count", (json_int_t)shown, "groups", list);
}
