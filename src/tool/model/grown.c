/* SPDX-License-Identifier: Apache-2.0 */
/* Computes what has grown since an earlier snapshot, which is called the base. The growth of a
 * stack under a span is the value of its blocks in the last snapshot less the value in the base,
 * whatever the ages of the blocks. A stack that shrank counts as 0. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/compiler.h"
#include "core/reach.h"
#include "tool/model/model.h"
#include "tool/text/messages.h"
#include "tool/text/output.h"

int sp_since_parse(const char *text, sp_since *out)
{
    static const struct {
        const char *unit;
        uint64_t ns;
    } units[] = {{"s", 1000000000}, {"m", 60000000000}, {"h", 3600000000000}};
    char *end = NULL;
    *out = (sp_since){.is_asked = true, .is_first = strcmp(text, "first") == 0};
    uint64_t number = *text >= '0' && *text <= '9' ? strtoull(text, &end, 10) : 0;
    for (size_t i = 0; end && i < SP_ARRAY_LENGTH(units); i++)
        if (strcmp(end, units[i].unit) == 0 &&
            !__builtin_mul_overflow(number, units[i].ns, &out->before_ns) && number)
            return SP_TOOL_DONE;
    if (out->is_first)
        return SP_TOOL_DONE;
    return sp_tool_wrong("--since %s is no time: give first, or how long before the last snapshot: "
                         "30s, 5m, 2h",
                         text);
}

bool sp_model_note_base(sp_model *model, uint32_t process, uint64_t time_ns)
{
    uint64_t last_ns = model->snapshot_times[process];
    size_t old = model->base_capacity;
    if (!SP_REACH(model->base_times, process, model->base_capacity, 8))
        return false;
    memset(model->base_times + old, 0, (model->base_capacity - old) * sizeof *model->base_times);
    uint64_t *base = &model->base_times[process];
    if (time_ns >= last_ns)
        return true;
    if (model->since.is_first)
        *base = *base == 0 || time_ns < *base ? time_ns : *base;
    else if (last_ns - time_ns >= model->since.before_ns && time_ns > *base)
        *base = time_ns;
    return true;
}

bool sp_model_add_to_base(sp_model *model, const sp_model_sample *sample)
{
    uint32_t key[3] = {sample->type, sample->stack, sample->link};
    return sp_key_sums_add(&model->base, key, sizeof key, sample->value);
}

static void subtract(sp_model *model, sp_model_sample *sample)
{
    uint32_t key[3] = {sample->type, sample->stack, sample->link};
    uint32_t number = sp_intern_find(&model->base.keys, key, sizeof key);
    if (number == SP_INTERN_FAILED)
        return;
    uint64_t *base = &model->base.sums[number];
    uint64_t taken = *base < sample->value ? *base : sample->value;
    *base -= taken;
    sample->value -= taken;
    if (sample->value == 0)
        sample->count = 0;
}

static bool has_base(const sp_model *model)
{
    for (size_t i = 0; i < model->base_capacity; i++)
        if (model->base_times[i])
            return true;
    return false;
}

void sp_since_format(char out[SP_SINCE_LENGTH], const sp_model *model)
{
    uint64_t least = UINT64_MAX, most = 0;
    char first[SP_DURATION_LENGTH], last[SP_DURATION_LENGTH];
    for (size_t i = 0; i < model->base_capacity; i++) {
        if (!model->base_times[i])
            continue;
        uint64_t ns = model->snapshot_times[i] - model->base_times[i];
        least = ns < least ? ns : least;
        most = ns > most ? ns : most;
    }
    sp_format_duration(first, least);
    sp_format_duration(last, most);
    bool is_one = strcmp(first, last) == 0;
    snprintf(out, SP_SINCE_LENGTH, "%s%s%s", first, is_one ? "" : " to ", is_one ? "" : last);
}

int sp_model_subtract_base(sp_model *model)
{
    if (!has_base(model))
        return sp_tool_no("--since: the files have no snapshot of what was allocated that is %s; "
                          "give files of several windows, recorded with SPANPROF_PROFILES=heap",
                          model->since.is_first ? "before the last one"
                                                : "so long before the last");
    for (uint32_t i = 0; i < model->sample_index.count; i++)
        subtract(model, &model->samples[i]);
    return SP_TOOL_DONE;
}
