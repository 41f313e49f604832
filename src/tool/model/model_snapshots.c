/* SPDX-License-Identifier: Apache-2.0 */
/* Handles snapshots: profiles of what is allocated at a moment. The snapshots of one process are
 * not added up, because only the last one counts. Several profiles that end at the same time are
 * parts of one snapshot. A process whose last window has no snapshot has nothing allocated any
 * more. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/buffer.h"
#include "core/compiler.h"
#include "tool/model/model.h"
#include "tool/text/messages.h"
#include "core/reach.h"

enum { LONGEST_KEY = 1 << 24 };

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

/* The PID as text; "" when the resource has none. */
static const char *pid_of(const Sp__Resource__Resource *resource,
                          const Sp__Profiles__ProfilesDictionary *d, char text[24])
{
    const Sp__Common__AnyValue *value = sp_resource_value(resource, d, "process.pid");
    bool is_number = value && value->value_case == SP__COMMON__ANY_VALUE__VALUE_INT_VALUE;
    snprintf(text, 24, "%" PRId64, is_number ? value->int_value : 0);
    return is_number ? text : "";
}

/* Make the key of a process from its PID, service and instance. The PID is needed, because the
 * workers of a server may have the same instance name. Returns false when memory is short. */
static bool make_key(sp_buffer *key, const Sp__Resource__Resource *resource,
                     const Sp__Profiles__ProfilesDictionary *d)
{
    char pid[24];
    const char *parts[] = {pid_of(resource, d, pid), sp_resource_text(resource, d, "service.name"),
                           sp_resource_text(resource, d, "service.instance.id")};
    bool done = true;
    for (size_t i = 0; i < SP_ARRAY_LENGTH(parts); i++)
        done = done && sp_buffer_add(key, parts[i], strlen(parts[i]) + 1);
    return done;
}

/* Returns the number of the process of RESOURCE, or SP_INTERN_FAILED when memory is short. */
static uint32_t put_process(sp_model *model, const Sp__Resource__Resource *resource,
                            const Sp__Profiles__ProfilesDictionary *d)
{
    sp_buffer key = SP_BUFFER_INIT(LONGEST_KEY);
    uint32_t process = make_key(&key, resource, d)
                           ? sp_intern_put(&model->processes, key.data, key.length, NULL)
                           : SP_INTERN_FAILED;
    sp_buffer_deinit(&key);
    return process;
}

/* The number of the process of RESOURCE in WHOLE. Several threads may call this at once. Returns
 * SP_INTERN_FAILED when the process is unknown, or memory is short. */
static uint32_t find_process(const sp_model *whole, const Sp__Resource__Resource *resource,
                             const Sp__Profiles__ProfilesDictionary *d)
{
    sp_buffer key = SP_BUFFER_INIT(LONGEST_KEY);
    uint32_t process = make_key(&key, resource, d)
                           ? sp_intern_find(&whole->processes, key.data, key.length)
                           : SP_INTERN_FAILED;
    sp_buffer_deinit(&key);
    return process;
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
    uint32_t process = put_process(model, resource->resource, d);
    if (process == SP_INTERN_FAILED || !make_room(model, process))
        return false;
    for (size_t s = 0; s < resource->n_scope_profiles; s++)
        for (size_t i = 0; i < resource->scope_profiles[s]->n_profiles; i++) {
            const Sp__Profiles__Profile *profile = resource->scope_profiles[s]->profiles[i];
            if (sp_profile_end_ns(profile) > model->snapshot_times[process])
                model->snapshot_times[process] = sp_profile_end_ns(profile);
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
    uint32_t process = put_process(model, resource->resource, d);
    if (process == SP_INTERN_FAILED)
        return false;
    for (size_t s = 0; s < resource->n_scope_profiles; s++)
        for (size_t i = 0; i < resource->scope_profiles[s]->n_profiles; i++) {
            const Sp__Profiles__Profile *profile = resource->scope_profiles[s]->profiles[i];
            if (is_snapshot(profile, d) &&
                !sp_model_note_base(model, process, sp_profile_end_ns(profile)))
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

bool sp_model_is_base(const sp_model *model, const Sp__Profiles__Profile *profile,
                      const Sp__Resource__Resource *resource,
                      const Sp__Profiles__ProfilesDictionary *d)
{
    uint32_t process = find_process(model, resource, d);
    return process != SP_INTERN_FAILED && process < model->base_capacity &&
           sp_profile_end_ns(profile) == model->base_times[process];
}

bool sp_model_is_old_snapshot(const sp_model *model, const Sp__Profiles__Profile *profile,
                              const Sp__Resource__Resource *resource,
                              const Sp__Profiles__ProfilesDictionary *d)
{
    const sp_model *whole = model->whole ? model->whole : model;
    if (!is_snapshot(profile, d))
        return false;
    uint32_t process = find_process(whole, resource, d);
    return process != SP_INTERN_FAILED &&
           sp_profile_end_ns(profile) < whole->snapshot_times[process];
}
