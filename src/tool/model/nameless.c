/* SPDX-License-Identifier: Apache-2.0 */
#include "tool/model/nameless.h"

#include <stdio.h>
#include <string.h>

#include "tool/model/key_sums.h"
#include "tool/model/sum.h"
#include "tool/text/messages.h"

/* The length of MODULE in NAME, if NAME is "MODULE+0xADDRESS"; else 0. Modules in brackets are not
 * files, and do not count. */
static size_t module_length(const char *name)
{
    const char *plus = strrchr(name, '+');
    if (!plus || plus == name || *name == '[' || strncmp(plus, "+0x", 3) != 0)
        return 0;
    size_t digits = strspn(plus + 3, "0123456789abcdef");
    return digits && !plus[3 + digits] ? (size_t)(plus - name) : 0;
}

/* A frame of STACK without a name, if the stack hardly says what ran: the innermost one, or most of
 * the frames, have no name. It is the innermost such frame. NULL: the stack has enough names. */
static const char *nameless_frame(const sp_model *model, uint32_t stack)
{
    const sp_intern_entry *entry = &model->stacks.entries[stack];
    const uint32_t *frames = entry->key;
    size_t length = entry->length / sizeof *frames, nameless = 0, first = 0;
    length -= length < model->root_frames ? length : model->root_frames;
    for (size_t i = length; i-- > 0;) {
        if (module_length(sp_model_text(model, frames[i]))) {
            first = i;
            nameless++;
        }
    }
    bool lacks_names = nameless && (first == 0 || nameless > length / 2);
    return lacks_names ? sp_model_text(model, frames[first]) : NULL;
}

static bool count_sample(sp_key_sums *modules, const char *module, size_t length, uint64_t count)
{
    char name[SP_NAMELESS_MODULE];
    snprintf(name, sizeof name, "%.*s", (int)length, module);
    return sp_key_sums_add(modules, name, strlen(name), count);
}

static void find_most(sp_nameless *out, const sp_key_sums *modules)
{
    uint32_t most = sp_key_sums_largest(modules);
    if (most != SP_INTERN_FAILED && modules->sums[most])
        snprintf(out->module, sizeof out->module, "%s",
                 (const char *)sp_intern_key(&modules->keys, most));
}

bool sp_selection_find_nameless(sp_nameless *out, const sp_selection *selection)
{
    const sp_model *model = selection->model;
    sp_key_sums modules = {0}; /* the number of samples without a name in each */
    bool done = true;
    *out = (sp_nameless){0};
    for (uint32_t i = 0; done && i < model->sample_index.count; i++) {
        const sp_model_sample *sample = &model->samples[i];
        if (!sp_selection_has(selection, sample))
            continue;
        const char *frame = nameless_frame(model, sample->stack);
        sp_sum_add(&out->all, sample->count);
        if (frame) {
            sp_sum_add(&out->nameless, sample->count);
            done = count_sample(&modules, frame, module_length(frame), sample->count);
        }
    }
    find_most(out, &modules);
    sp_key_sums_deinit(&modules);
    return done;
}

bool sp_is_nameless(const char *name)
{
    return module_length(name) > 0;
}

bool sp_selection_note_nameless(const sp_selection *selection, const char *side)
{
    sp_nameless found;
    if (!sp_selection_find_nameless(&found, selection) || found.nameless <= found.all / 2)
        return false;
    sp_tool_note("%s%.0f %% of the samples are in functions without a name, most of them in %s: "
                 "install its debug symbols " SP_NAMELESS_REMEDY,
                 side, 100.0 * (double)found.nameless / (double)found.all, found.module);
    return true;
}
