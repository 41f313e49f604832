/* SPDX-License-Identifier: Apache-2.0 */
/* Where functions are: what the profiles say of those that have a name. */
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

/* The first file and module that are told stay; lines become a range. */
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
