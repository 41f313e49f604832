/* SPDX-License-Identifier: Apache-2.0 */
/* Profiles of what is allocated at a moment: those of one process are not added up, because the
 * last one holds. Several of that moment are parts of one window. A process whose last window has
 * no such profile holds nothing any more. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tool/model/model.h"
#include "tool/text/messages.h"
#include "core/reach.h"

bool sp_is_snapshot_name(const char *name)
{
    return strncmp(name, "inuse_", strlen("inuse_")) == 0;
}

static bool is_snapshot(const Sp__Profiles__Profile *profile,
                        const Sp__Profiles__ProfilesDictionary *d)
{
    int32_t index = profile->sample_type ? profile->sample_type->type_strindex : 0;
    return index > 0 && (size_t)index < d->n_string_table &&
           sp_is_snapshot_name(d->string_table[index]);
}

/* PID as text; "" when it is not there. */
static const char *pid_of(const Sp__Resource__Resource *resource,
                          const Sp__Profiles__ProfilesDictionary *d, char text[24])
{
    const Sp__Common__AnyValue *value = sp_resource_value(resource, d, "process.pid");
    bool is_number = value && value->value_case == SP__COMMON__ANY_VALUE__VALUE_INT_VALUE;
    snprintf(text, 24, "%" PRId64, is_number ? value->int_value : 0);
    return is_number ? text : "";
}

/* Service, instance and PID tell processes apart: the workers of a server may share an instance's
 * name. Returns SP_INTERN_FAILED when memory is short. */
static uint32_t find_process(sp_model *model, const Sp__Resource__Resource *resource,
                             const Sp__Profiles__ProfilesDictionary *d)
{
    char pid[24];
    const uint32_t key[] = {
        sp_model_string(model, pid_of(resource, d, pid)),
        sp_model_string(model, sp_resource_text(resource, d, "service.name")),
        sp_model_string(model, sp_resource_text(resource, d, "service.instance.id"))};
    if (key[0] == SP_INTERN_FAILED || key[1] == SP_INTERN_FAILED || key[2] == SP_INTERN_FAILED)
        return SP_INTERN_FAILED;
    return sp_intern_put(&model->processes, key, sizeof key, NULL);
}

static bool make_room(sp_model *model, uint32_t number)
{
    size_t old = model->snapshot_capacity;
    if (!SP_REACH(model->snapshot_times, number, model->snapshot_capacity, 8))
        return false;
    memset(model->snapshot_times + old, 0,
           (model->snapshot_capacity - old) * sizeof *model->snapshot_times);
    return true;
}

static bool note_resource(sp_model *model, const Sp__Profiles__ResourceProfiles *resource,
                          const Sp__Profiles__ProfilesDictionary *d)
{
    uint32_t process = find_process(model, resource->resource, d);
    if (process == SP_INTERN_FAILED || !make_room(model, process))
        return false;
    for (size_t s = 0; s < resource->n_scope_profiles; s++)
        for (size_t i = 0; i < resource->scope_profiles[s]->n_profiles; i++) {
            const Sp__Profiles__Profile *profile = resource->scope_profiles[s]->profiles[i];
            if (profile->time_unix_nano > model->snapshot_times[process])
                model->snapshot_times[process] = profile->time_unix_nano;
        }
    return true;
}

int sp_model_note_snapshots(sp_model *model, const sp_document *document)
{
    static const Sp__Profiles__ProfilesDictionary empty = SP__PROFILES__PROFILES_DICTIONARY__INIT;
    const Sp__Profiles__ProfilesData *data = (const Sp__Profiles__ProfilesData *)document->message;
    const Sp__Profiles__ProfilesDictionary *d = data->dictionary ? data->dictionary : &empty;
    for (size_t i = 0; i < data->n_resource_profiles; i++)
        if (!note_resource(model, data->resource_profiles[i], d))
            return sp_tool_no_memory();
    return SP_TOOL_DONE;
}

static bool note_base_of_resource(sp_model *model, const Sp__Profiles__ResourceProfiles *resource,
                                  const Sp__Profiles__ProfilesDictionary *d)
{
    uint32_t process = find_process(model, resource->resource, d);
    if (process == SP_INTERN_FAILED)
        return false;
    for (size_t s = 0; s < resource->n_scope_profiles; s++)
        for (size_t i = 0; i < resource->scope_profiles[s]->n_profiles; i++) {
            const Sp__Profiles__Profile *profile = resource->scope_profiles[s]->profiles[i];
            if (is_snapshot(profile, d) &&
                !sp_model_note_base(model, process, profile->time_unix_nano))
                return false;
        }
    return true;
}

int sp_model_note_bases(sp_model *model, const sp_document *document)
{
    static const Sp__Profiles__ProfilesDictionary empty = SP__PROFILES__PROFILES_DICTIONARY__INIT;
    const Sp__Profiles__ProfilesData *data = (const Sp__Profiles__ProfilesData *)document->message;
    const Sp__Profiles__ProfilesDictionary *d = data->dictionary ? data->dictionary : &empty;
    for (size_t i = 0; i < data->n_resource_profiles; i++)
        if (!note_base_of_resource(model, data->resource_profiles[i], d))
            return sp_tool_no_memory();
    return SP_TOOL_DONE;
}

bool sp_model_is_base(sp_model *model, const Sp__Profiles__Profile *profile,
                      const Sp__Resource__Resource *resource,
                      const Sp__Profiles__ProfilesDictionary *d)
{
    uint32_t process = find_process(model, resource, d);
    return process != SP_INTERN_FAILED && process < model->base_capacity &&
           profile->time_unix_nano == model->base_times[process];
}

bool sp_model_is_old_snapshot(sp_model *model, const Sp__Profiles__Profile *profile,
                              const Sp__Resource__Resource *resource,
                              const Sp__Profiles__ProfilesDictionary *d)
{
    uint32_t process = find_process(model, resource, d);
    return process != SP_INTERN_FAILED && is_snapshot(profile, d) &&
           profile->time_unix_nano < model->snapshot_times[process];
}
