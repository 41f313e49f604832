/* SPDX-License-Identifier: Apache-2.0 */
/* The places of functions, and their names in other styles, as the profiles have them. */
#include <string.h>

#include "core/reach.h"
#include "tool/model/model.h"

static bool reserve(sp_model *model, uint32_t string)
{
    size_t had = model->place_capacity;
    if (!SP_REACH(model->places, string, model->place_capacity, 256))
        return false;
    if (model->place_capacity > had)
        memset(model->places + had, 0, (model->place_capacity - had) * sizeof *model->places);
    return true;
}

/* The first file and the first module are kept. Lines become a range. */
bool sp_model_note_place(sp_model *model, uint32_t string, const char *file, const char *module,
                         int64_t line)
{
    if (!reserve(model, string))
        return false;
    sp_model_place *place = &model->places[string];
    if (*file && !place->file)
        place->file = sp_model_string(model, file);
    if (*module && !place->module)
        place->module = sp_model_string(model, module);
    if (place->file == SP_INTERN_FAILED || place->module == SP_INTERN_FAILED)
        return false;
    if (line <= 0 || line > UINT32_MAX)
        return true;
    if (!place->first_line || line < place->first_line)
        place->first_line = (uint32_t)line;
    if (line > place->last_line)
        place->last_line = (uint32_t)line;
    return true;
}

sp_model_place sp_model_place_of(const sp_model *model, uint32_t string)
{
    return string < model->place_capacity ? model->places[string] : (sp_model_place){0};
}

bool sp_model_note_name(sp_model *model, uint32_t string, sp_demangle_style style, const char *text)
{
    size_t had = model->other_name_capacity;
    if (!SP_REACH(model->other_names, string, model->other_name_capacity, 256))
        return false;
    if (model->other_name_capacity > had)
        memset(model->other_names + had, 0,
               (model->other_name_capacity - had) * sizeof *model->other_names);
    uint32_t name = sp_model_string(model, text);
    model->other_names[string].as[style] = name;
    return name != SP_INTERN_FAILED;
}

sp_model_names sp_model_names_of(const sp_model *model, uint32_t string)
{
    return string < model->other_name_capacity ? model->other_names[string] : (sp_model_names){0};
}
