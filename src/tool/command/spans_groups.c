/* SPDX-License-Identifier: Apache-2.0 */
/* `spanprof spans --group-by name`: a line for each name. */
#include <stdlib.h>
#include <string.h>

#include "core/counted.h"
#include "tool/command/spans.h"

enum { FRONT = 17, DURATIONS = 39, NARROW = 20, SUM = 10, NAME_ROOM = 13 };

/* The sums over all spans of a name, in the order of their columns. */
enum { TOTAL = 0, ALLOC, WALL, QUEUE, SUMS };

static const char *const sum_names[SUMS] = {"total", "alloc", "wall", "queue"};

/* The columns that have room before the names. */
typedef struct groups_layout {
    sp_alloc_column alloc;
    const sp_model_type *wall; /* of the column; NULL: the files have no such type */
    bool narrow;               /* show only the quantiles p50 and p99 */
    bool useful[SUMS], shown[SUMS];
    unsigned name;
} groups_layout;

static bool leaves_name(unsigned used, const sp_terminal *terminal)
{
    return used + NAME_ROOM <= terminal->columns;
}

static bool has_queue(const sp_groups *groups)
{
    for (size_t i = 0; i < groups->count; i++)
        if (groups->items[i].queued_ns)
            return true;
    return false;
}

static groups_layout useful_columns(const sp_model *model, const sp_groups *groups)
{
    sp_wall_columns wall = sp_wall_columns_find(model);
    groups_layout layout = {.alloc = sp_spans_alloc_column(model),
                            .wall = wall.type,
                            .name = SP_SPANS_WHOLE_NAME,
                            .useful = {[TOTAL] = true}};
    layout.useful[TOTAL] = layout.alloc.type != sp_measured_type(model);
    layout.useful[ALLOC] = layout.alloc.type != NULL;
    layout.useful[WALL] = wall.total;
    layout.useful[QUEUE] = has_queue(groups) || groups->order == SP_GROUPS_BY_QUEUE;
    memcpy(layout.shown, layout.useful, sizeof layout.shown);
    return layout;
}

/* The column that the groups are sorted by. */
static int sorted_column(const groups_layout *layout, sp_groups_order order)
{
    static const int columns[] = {[SP_GROUPS_BY_DURATION] = TOTAL,
                                  [SP_GROUPS_BY_VALUE] = TOTAL,
                                  [SP_GROUPS_BY_ALLOC] = ALLOC,
                                  [SP_GROUPS_BY_WALL] = WALL,
                                  [SP_GROUPS_BY_QUEUE] = QUEUE};
    int otherwise = layout->useful[TOTAL] ? TOTAL : ALLOC;
    return layout->useful[columns[order]] ? columns[order] : otherwise;
}

/* The width of a column of sums, with the space after it. */
static unsigned width_of(const groups_layout *layout, int column)
{
    return column == ALLOC ? sp_spans_alloc_width(layout->alloc) : SUM;
}

/* Choose the columns. On a narrow terminal, only one sum has room: the one that the groups are
 * sorted by. */
static groups_layout fit(const sp_model *model, const sp_groups *groups,
                         const sp_terminal *terminal)
{
    static const int least_useful_first[] = {WALL, ALLOC, QUEUE, TOTAL};
    groups_layout layout = useful_columns(model, groups);
    if (!terminal->has_width)
        return layout;
    unsigned used = FRONT + 2 * DURATIONS;
    for (int i = 0; i < SUMS; i++)
        used += layout.shown[i] ? width_of(&layout, i) : 0;
    if (layout.alloc.has_error && !leaves_name(used, terminal)) {
        used -= sp_spans_alloc_width(layout.alloc);
        layout.alloc.has_error = false;
        used += sp_spans_alloc_width(layout.alloc);
    }
    layout.narrow = !leaves_name(used, terminal);
    if (layout.narrow)
        used -= 2 * (DURATIONS - NARROW);
    for (int i = 0; i < SUMS && !leaves_name(used, terminal); i++) {
        int column = least_useful_first[i];
        if (!layout.shown[column] || column == sorted_column(&layout, groups->order))
            continue;
        layout.shown[column] = false;
        used -= width_of(&layout, column);
    }
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

static void add_head(sp_buffer *out, const char *type, const groups_layout *layout,
                     const sp_terminal *terminal)
{
    int duration = layout->narrow ? NARROW : DURATIONS;
    int room = duration + (layout->shown[TOTAL] ? SUM : 0) - 2, length = sp_spans_type_length(type);
    length = layout->narrow && length > room ? room : length;
    sp_buffer_printf(out, "%s%7s  %6s  %-*s  %.*s\n", terminal->color ? "\033[2m" : "", "", "",
                     duration - 2, "duration", length, type);
    sp_buffer_printf(out, "%7s  %6s  ", "spans", "errors");
    for (int i = 0; i < 2; i++)
        add_columns(out, layout->narrow, "p50", "p95", "p99", "max");
    for (int i = 0; i < SUMS; i++)
        if (layout->shown[i] && i == ALLOC)
            sp_spans_alloc_head(out, layout->alloc);
        else if (layout->shown[i])
            sp_buffer_printf(out, "%*s  ", SUM - 2, sum_names[i]);
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

/* Add the quantiles of the values. Each is the value of one span. It is 0 only if the span has no
 * sample, so the value is also passed as the number of samples. */
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

/* Add the sums over all spans of the name. */
static void add_sums(sp_buffer *out, const groups_layout *layout, const sp_group *group,
                     const sp_model_type *type, const sp_terminal *terminal)
{
    char texts[SUMS][SP_VALUE_LENGTH] = {"-", "-", "-", "-"};
    if (group->known)
        sp_spans_format_value(texts[TOTAL], type, group->total_value, group->total_value);
    if (layout->wall && group->known_wall)
        sp_spans_format_value(texts[WALL], layout->wall, group->total_wall, group->total_wall);
    if (group->queued_ns)
        sp_format_duration(texts[QUEUE], group->queued_ns);
    for (int i = 0; i < SUMS; i++)
        if (layout->shown[i] && i == ALLOC)
            sp_spans_alloc_sum_cell(out, layout->alloc, group->total_alloc, group->alloc_variance,
                                    group->known_alloc > 0, terminal);
        else if (layout->shown[i])
            sp_buffer_printf(out, "%*s  ", SUM - 2, texts[i]);
}

/* Whether the link scope hides a value of one of the groups. */
static bool scope_hides_values(const sp_groups *groups, size_t shown, const groups_layout *layout)
{
    for (size_t i = 0; i < shown; i++) {
        const sp_group *group = &groups->items[i];
        if (group->known + group->unsampled < group->count ||
            (layout->shown[ALLOC] && group->known_alloc < group->count) ||
            (layout->shown[WALL] && group->known_wall + group->unsampled < group->count))
            return true;
    }
    return false;
}

static void add_unsampled_key(sp_buffer *out, const sp_groups *groups, size_t shown)
{
    uint64_t unsampled = 0;
    for (size_t i = 0; i < shown; i++)
        unsampled += groups->items[i].unsampled;
    if (unsampled)
        sp_buffer_printf(out,
                         "%s of these %s outside the time in which `run --attach` sampled the "
                         "process: what they took is not known (-), and is in no number\n",
                         SP_COUNTED(unsampled, "span"), unsampled == 1 ? "lies" : "lie");
}

/* Add the line below the table that says which columns had no room. */
static void add_left_out(sp_buffer *out, const groups_layout *layout)
{
    if (!layout->narrow)
        return;
    sp_buffer_add_string(out, "p95");
    for (int i = 0; i < SUMS; i++)
        if (layout->useful[i] && !layout->shown[i])
            sp_buffer_printf(out, ", %s%s", i == TOTAL ? "the " : "", sum_names[i]);
    sp_buffer_add_string(out, " and max are shown in a pipe, or on a wider terminal\n");
}

static void add_queue_key(sp_buffer *out, const groups_layout *layout)
{
    if (layout->shown[QUEUE])
        sp_buffer_add_string(out, "queue: no thread carried the spans, their work ran without the "
                                  "context, or they were ended long after their work; - none, or "
                                  "it may be chance\n");
}

void sp_spans_groups(sp_buffer *out, const sp_model *model, const sp_groups *groups, size_t shown,
                     const sp_terminal *terminal)
{
    const sp_model_type *type = sp_measured_type(model);
    groups_layout layout = fit(model, groups, terminal);
    add_head(out, type->name, &layout, terminal);
    for (size_t i = 0; i < shown; i++) {
        const sp_group *group = &groups->items[sp_spans_line(terminal, i, shown)];
        sp_buffer_printf(out, "%7llu  %6llu  ", (unsigned long long)group->count,
                         (unsigned long long)group->errors);
        add_durations(out, layout.narrow, &group->duration);
        add_values(out, layout.narrow, group, type);
        add_sums(out, &layout, group, type, terminal);
        sp_spans_add_cell(out, group->name, layout.name, false, terminal);
        sp_buffer_add_char(out, '\n');
    }
    if (scope_hides_values(groups, shown, &layout))
        sp_spans_add_scope_key(out);
    add_unsampled_key(out, groups, shown);
    sp_spans_unseen_key(out, model);
    add_queue_key(out, &layout);
    add_left_out(out, &layout);
}

static json_t *quantiles_json(const sp_quantiles *of)
{
    return json_pack("{s:I, s:I, s:I, s:I, s:I}", "p50", (json_int_t)of->p50, "p95",
                     (json_int_t)of->p95, "p99", (json_int_t)of->p99, "max", (json_int_t)of->max,
                     "sum", (json_int_t)of->sum);
}

static json_t *sum_json(uint64_t sum, bool is_known)
{
    return is_known ? json_integer((json_int_t)sum) : json_null();
}

static json_t *group_json(const sp_model *model, const sp_group *group)
{
    bool is_known = group->known > 0;
    json_t *json = json_pack("{s:s, s:I, s:I, s:o, s:o, s:o, s:o}", "name", group->name, "count",
                             (json_int_t)group->count, "errors", (json_int_t)group->errors,
                             "samples", sum_json(group->samples, is_known), "duration_ns",
                             quantiles_json(&group->duration), "value",
                             is_known ? quantiles_json(&group->value) : json_null(), "total_value",
                             sum_json(group->total_value, is_known));
    const sp_model_type *alloc = sp_spans_alloc_type(model);
    if (alloc) {
        is_known = group->known_alloc > 0;
        json_object_set_new(json, "alloc_bytes", sum_json(group->total_alloc, is_known));
        json_object_set_new(
            json, "alloc_error",
            sp_spans_alloc_error_json(alloc, group->total_alloc, group->alloc_variance, is_known));
    }
    if (sp_wall_columns_find(model).type) {
        json_object_set_new(json, "total_wall", sum_json(group->total_wall, group->known_wall > 0));
        json_object_set_new(json, "queued_ns", sum_json(group->queued_ns, group->known_wall > 0));
    }
    return json;
}

json_t *sp_spans_groups_json(const sp_model *model, const sp_groups *groups, size_t shown)
{
    const sp_model_type *type = sp_measured_type(model);
    json_t *list = json_array();
    for (size_t i = 0; i < shown; i++)
        json_array_append_new(list, group_json(model, &groups->items[i]));
    return json_pack("{s:s, s:s, s:I, s:I, s:o}", "type", type->name, "unit", type->unit, "period",
                     (json_int_t)type->period, "count", (json_int_t)shown, "groups", list);
}
