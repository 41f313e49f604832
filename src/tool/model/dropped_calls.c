/* SPDX-License-Identifier: Apache-2.0 */
/* Warns about sampled calls (allocations, waits for locks) for which the SDK had no room. What they
 * stand for is missing in the sums. */
#include "tool/model/dropped_calls.h"

#include <string.h>

#include "core/compiler.h"
#include "core/counted.h"
#include "tool/model/sum.h"
#include "tool/text/messages.h"

bool sp_model_is_of_blocks(const sp_model_type *type)
{
    static const char *const names[] = {"alloc_space", "alloc_objects", "inuse_space",
                                        "inuse_objects"};
    for (size_t i = 0; i < SP_ARRAY_LENGTH(names); i++)
        if (strncmp(type->name, names[i], strlen(names[i])) == 0)
            return true;
    return false;
}

uint64_t sp_model_dropped_calls(const sp_model *model, uint32_t type)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < model->profile_count; i++)
        if (model->profiles[i].type == type)
            sp_sum_add(&sum,
                       sp_model_profile_number(&model->profiles[i], "spanprof.dropped.calls"));
    return sum;
}

const char *sp_model_fewer_calls(const sp_model *model)
{
    bool has_blocks = false, has_waits = false;
    for (size_t i = 0; i < model->type_count; i++) {
        has_blocks = has_blocks || sp_model_is_of_blocks(&model->types[i]);
        has_waits = has_waits || model->types[i].is_wait;
    }
    if (has_blocks)
        return has_waits ? "with a larger SPANPROF_ALLOC_BYTES or SPANPROF_LOCK_NS"
                         : "with a larger SPANPROF_ALLOC_BYTES";
    return has_waits ? "with a larger SPANPROF_LOCK_NS" : "fewer values";
}

void sp_model_note_dropped_calls(const sp_model *model, uint32_t type, const char *side)
{
    uint64_t dropped = type < model->type_count ? sp_model_dropped_calls(model, type) : 0;
    if (dropped)
        sp_tool_note("%s%s had no room and %s dropped, so the values of %s are too small: record "
                     "%s, so that fewer calls are sampled",
                     side, SP_COUNTED(dropped, "sampled call"), dropped == 1 ? "was" : "were",
                     model->types[type].name, sp_model_fewer_calls(model));
}
