/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "tool/draw/diff.h"

static json_t *number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *change_json(const sp_change *change)
{
    return json_pack("{s:f, s:f, s:f, s:o, s:o, s:o, s:o, s:f, s:b}", "a", change->a, "b",
                     change->b, "change", change->change, "low", number(change->low), "high",
                     number(change->high), "sure_low", number(change->sure_low), "sure_high",
                     number(change->sure_high), "p", change->p, "moved", sp_change_is_move(change));
}

static json_t *side_json(const sp_diff_side *side, const sp_functions *functions)
{
    const sp_durations *durations = &side->durations;
    return json_pack(
        "{s:s, s:I, s:I, s:I, s:f, s:o}", "name", side->name, "value",
        (json_int_t)side->selection->value, "count", (json_int_t)side->selection->count, "requests",
        (json_int_t)functions->requests, "seconds", functions->seconds, "median_duration_ns",
        durations->count ? json_real(durations->median) : json_null());
}

static json_t *functions_json(const sp_diff_answer *answer)
{
    const sp_comparison *comparison = answer->comparison;
    json_t *list = json_array();
    for (size_t i = 0; i < comparison->count && (!answer->limit || i < answer->limit); i++) {
        const sp_function_change *item = &comparison->items[i];
        if (json_array_append_new(list, json_pack("{s:s, s:o, s:o}", "name", item->name, "total",
                                                  change_json(&item->total), "self",
                                                  change_json(&item->self))) != 0) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}

json_t *sp_diff_json(const sp_diff_answer *answer)
{
    const sp_comparison *comparison = answer->comparison;
    const sp_selection *selection = answer->a.selection;
    bool has_whole = comparison->by != SP_BY_SAMPLES;
    return json_pack(
        "{s:s, s:s, s:s, s:o, s:o, s:o, s:I, s:I, s:o}", "by", sp_compare_by_names[comparison->by],
        "type", sp_selection_name(selection), "unit", selection->model->types[selection->type].unit,
        "a", side_json(&answer->a, &comparison->a), "b", side_json(&answer->b, &comparison->b),
        "whole", has_whole ? change_json(&comparison->whole) : json_null(), "asked",
        (json_int_t)comparison->asked, "moved", (json_int_t)comparison->moves, "functions",
        functions_json(answer));
}
