/* SPDX-License-Identifier: Apache-2.0 */
/* Adds an outermost frame to stacks: the thread, or the span, that their samples belong to. */
#include <stdlib.h>
#include <string.h>

#include "tool/model/model.h"
#include "tool/text/messages.h"

/* A stack without frames also gets the frame SP_MODEL_NO_STACK, inside the new frame. */
uint32_t sp_model_add_root(sp_model *model, uint32_t stack, const char *name)
{
    const sp_intern_entry *entry = &model->stacks.entries[stack];
    size_t count = entry->length / sizeof(uint32_t);
    uint32_t root = sp_model_string(model, name), added = SP_INTERN_FAILED;
    uint32_t none = count ? 0 : sp_model_string(model, SP_MODEL_NO_STACK);
    uint32_t *frames = malloc((count + 2) * sizeof *frames);
    if (frames && root != SP_INTERN_FAILED && none != SP_INTERN_FAILED) {
        if (count)
            memcpy(frames, entry->key, entry->length);
        else
            frames[count++] = none;
        frames[count++] = root;
        added = sp_intern_put(&model->stacks, frames, count * sizeof *frames, NULL);
    }
    free(frames);
    return added;
}

static const char *span_name(const sp_model *model, uint32_t link)
{
    if (link == 0)
        return "[no span]";
    uint32_t span = sp_model_link_span(model, link);
    return span == SP_MODEL_NONE ? "[unknown span]" : model->spans[span].name;
}

int sp_model_add_span_roots(sp_model *model)
{
    for (uint32_t i = 0; i < model->sample_index.count; i++) {
        sp_model_sample *sample = &model->samples[i];
        sample->stack = sp_model_add_root(model, sample->stack, span_name(model, sample->link));
        if (sample->stack == SP_INTERN_FAILED)
            return sp_tool_no_memory();
    }
    model->root_frames++;
    return SP_TOOL_DONE;
}
