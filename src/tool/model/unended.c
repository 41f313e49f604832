/* SPDX-License-Identifier: Apache-2.0 */
/* Warns about spans that have samples, but that the files do not have. A span that the program
 * forgot to end can be noticed only here, and it may be the one that the user looks for. */
#include <stdlib.h>

#include "core/counted.h"
#include "core/hex.h"
#include "tool/model/model.h"
#include "tool/text/messages.h"
#include "tool/text/output.h"

/* Spans that are missing are reported if they have at least one in WORTH_A_NOTE of the linked
 * value. A smaller share is normal: at the end of each recording, some spans still run. */
enum { WORTH_A_NOTE = 50 };

typedef struct missing {
    uint64_t linked_value, value; /* of all linked samples, and of those whose span is missing */
    uint32_t spans;
    uint32_t most; /* the link with the largest part of `value` */
} missing;

/* VALUES has one member for each link, all 0 before the call. */
static missing count(const sp_model *model, uint32_t type, uint64_t *values)
{
    missing found = {0};
    for (uint32_t i = 0; i < model->sample_index.count; i++) {
        const sp_model_sample *sample = &model->samples[i];
        if (sample->type != type || sample->link == 0 || sample->value == 0)
            continue;
        found.linked_value += sample->value;
        if (sp_model_link_span(model, sample->link) != SP_MODEL_NONE)
            continue;
        found.value += sample->value;
        found.spans += values[sample->link] == 0;
        values[sample->link] += sample->value;
        if (values[sample->link] > values[found.most])
            found.most = sample->link;
    }
    return found;
}

static bool has_profile_from_outside(const sp_model *model)
{
    for (size_t i = 0; i < model->profile_count; i++)
        if (sp_model_is_from_outside(&model->profiles[i]))
            return true;
    return false;
}

static void say(const sp_model *model, const missing *found, const sp_model_type *type)
{
    char value[SP_VALUE_LENGTH], trace_id[33], span_id[17];
    const sp_model_link *most = sp_intern_key(&model->links, found->most);
    sp_hex_encode(trace_id, most->trace_id, 16);
    sp_hex_encode(span_id, most->span_id, 8);
    sp_format_value(value, found->value, type->unit);
    sp_tool_note(
        "%s with %s of %s %s not in these files, %sspan %s of trace %s: %snever ended, "
        "ended after spanprof_stop, of a trace that is not sampled, or in the file of another "
        "process",
        SP_COUNTED(found->spans, "span"), value, type->name, found->spans == 1 ? "is" : "are",
        found->spans == 1 ? "" : "most of it of ", span_id, trace_id,
        has_profile_from_outside(model)
            ? "the program was sampled from outside, so give its own traces, too; else "
            : "");
}

void sp_model_note_unended(const sp_model *model)
{
    uint32_t type = sp_model_time_type(model);
    if (type == SP_MODEL_NONE || model->span_index.count == 0)
        return;
    uint64_t *values = calloc(model->links.count, sizeof *values);
    missing found = values ? count(model, type, values) : (missing){0};
    free(values);
    if (found.value && found.value < found.linked_value &&
        found.value >= found.linked_value / WORTH_A_NOTE)
        say(model, &found, &model->types[type]);
}
