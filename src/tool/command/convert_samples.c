/* SPDX-License-Identifier: Apache-2.0 */
#include "tool/command/convert_samples.h"

#include <stdlib.h>
#include <string.h>

#include "core/counted.h"
#include "tool/draw/flame.h"
#include "tool/model/selected.h"
#include "tool/text/messages.h"

/* The samples to convert: one selection for each type. */
typedef struct choice {
    sp_selection *selections;
    size_t count;
} choice;

static const char *text_at(const Sp__Profiles__ProfilesDictionary *dictionary, int32_t index)
{
    bool is_there = index >= 0 && (size_t)index < dictionary->n_string_table;
    return is_there ? dictionary->string_table[index] : "";
}

static bool has_same_period(const sp_model_profile *a, const sp_model_profile *b)
{
    static const Sp__Profiles__ValueType none = SP__PROFILES__VALUE_TYPE__INIT;
    const Sp__Profiles__ValueType *x = a->message->period_type ? a->message->period_type : &none;
    const Sp__Profiles__ValueType *y = b->message->period_type ? b->message->period_type : &none;
    return strcmp(text_at(a->dictionary, x->type_strindex),
                  text_at(b->dictionary, y->type_strindex)) == 0 &&
           strcmp(text_at(a->dictionary, x->unit_strindex),
                  text_at(b->dictionary, y->unit_strindex)) == 0;
}

/* Whether the types of MODEL fit into one pprof. A pprof has one period, and the values of all its
 * types count the same events. */
static bool fit_into_one_pprof(const sp_model *model)
{
    for (size_t i = 1; i < model->profile_count; i++)
        if (!has_same_period(&model->profiles[0], &model->profiles[i]))
            return false;
    return true;
}

static int refuse_types(const sp_model *model, bool to_pprof)
{
    char list[SP_TYPES_LENGTH];
    return sp_tool_wrong("convert: the files have several types of profiles, which %s cannot hold "
                         "together; choose one with --type: %s",
                         to_pprof ? "one pprof" : "collapsed stacks", sp_types_list(list, model));
}

static int choose_all(choice *choice, const sp_model *model, bool to_pprof)
{
    uint64_t samples = 0;
    if (model->type_count == 0)
        return sp_tool_wrong("the files hold no profiles; give the .profiles file too");
    if (model->type_count > 1 && !(to_pprof && fit_into_one_pprof(model)))
        return refuse_types(model, to_pprof);
    choice->selections = calloc(model->type_count, sizeof *choice->selections);
    if (!choice->selections)
        return sp_tool_no_memory();
    for (; choice->count < model->type_count; choice->count++) {
        choice->selections[choice->count] =
            (sp_selection){.model = model, .type = (uint32_t)choice->count};
        samples += model->types[choice->count].samples;
    }
    return samples ? SP_TOOL_DONE : sp_tool_no("the files have no samples");
}

static int choose(choice *choice, const sp_model *model, const char *type, bool to_pprof)
{
    sp_select_options options = {.type = type};
    if (!type)
        return choose_all(choice, model, to_pprof);
    choice->selections = calloc(1, sizeof *choice->selections);
    if (!choice->selections)
        return sp_tool_no_memory();
    choice->count = 1;
    return sp_select(&choice->selections[0], model, &options);
}

static void note_links(const sp_selection *selection)
{
    const sp_model *model = selection->model;
    uint64_t linked = 0;
    for (uint32_t i = 0; i < model->sample_index.count; i++)
        if (sp_selection_has(selection, &model->samples[i]) && model->samples[i].link)
            linked += model->samples[i].count;
    if (linked)
        sp_tool_note(
            "collapsed stacks have no place for spans: they are left out of %s; --to pprof "
            "keeps them",
            SP_COUNTED(linked, "sample"));
}

static int write_folded(sp_buffer *out, const sp_selection *selection)
{
    note_links(selection);
    return sp_flame_folded(out, selection, false) ? SP_TOOL_DONE : sp_tool_no_memory();
}

int sp_convert_samples(sp_buffer *out, const sp_input *input, const char *type, bool to_pprof)
{
    sp_model model = {0};
    choice choice = {0};
    int status = sp_model_build(&model, input);
    if (status == SP_TOOL_DONE)
        status = choose(&choice, &model, type, to_pprof);
    if (status == SP_TOOL_DONE)
        status = to_pprof ? sp_selected_pprof(out, choice.selections, choice.count)
                          : write_folded(out, &choice.selections[0]);
    for (size_t i = 0; i < choice.count; i++)
        sp_selection_deinit(&choice.selections[i]);
    free(choice.selections);
    sp_model_deinit(&model);
    return status;
}
