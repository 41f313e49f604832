/* SPDX-License-Identifier: Apache-2.0 */
/* Makes one ResourceProfiles with one ScopeProfiles, and the dictionary, of profile data, as a tree
 * for JSON. Numbers that protobuf-c takes as arrays (indices, values) are borrowed from the data,
 * not copied. */
#include "wire/profiles.h"
#include "wire/message_tree.h"

#include <string.h>

#include <spanprof/version.h>
#include "wire/json.h"

/* Set the members FIELD and n_FIELD of a message to a list of indices, which is borrowed. */
#define BORROW_INDICES(message, field, data, list)                                                 \
    ((message)->n_##field = (list).count,                                                          \
     (message)->field = (list).count ? (data)->indices + (list).offset : NULL)

static bool build_mappings(sp_arena *arena, Sp__Profiles__ProfilesDictionary *out,
                           const sp_profile_data *data)
{
    out->mapping_table =
        sp_otlp_list(arena, &sp__profiles__mapping__descriptor, data->mapping_count);
    if (!out->mapping_table)
        return false;
    out->n_mapping_table = data->mapping_count;
    for (uint32_t i = 0; i < data->mapping_count; i++) {
        const sp_profile_mapping *from = &data->mappings[i];
        Sp__Profiles__Mapping *mapping = out->mapping_table[i];
        mapping->memory_start = from->memory_start;
        mapping->memory_limit = from->memory_limit;
        mapping->file_offset = from->file_offset;
        mapping->filename_strindex = (int32_t)from->filename_strindex;
        BORROW_INDICES(mapping, attribute_indices, data, from->attributes);
    }
    return true;
}

static bool build_lines(sp_arena *arena, Sp__Profiles__Location *out, const sp_profile_line *lines,
                        uint32_t count)
{
    out->lines = sp_otlp_list(arena, &sp__profiles__line__descriptor, count);
    if (!out->lines)
        return false;
    out->n_lines = count;
    for (uint32_t i = 0; i < count; i++) {
        out->lines[i]->function_index = (int32_t)lines[i].function_index;
        out->lines[i]->line = lines[i].line;
        out->lines[i]->column = lines[i].column;
    }
    return true;
}

static bool build_locations(sp_arena *arena, Sp__Profiles__ProfilesDictionary *out,
                            const sp_profile_data *data)
{
    out->location_table =
        sp_otlp_list(arena, &sp__profiles__location__descriptor, data->location_count);
    if (!out->location_table)
        return false;
    out->n_location_table = data->location_count;
    for (uint32_t i = 0; i < data->location_count; i++) {
        const sp_profile_location *from = &data->locations[i];
        Sp__Profiles__Location *location = out->location_table[i];
        location->mapping_index = (int32_t)from->mapping_index;
        location->address = from->address;
        BORROW_INDICES(location, attribute_indices, data, from->attributes);
        if (from->line_count &&
            !build_lines(arena, location, data->lines + from->first_line, from->line_count))
            return false;
    }
    return true;
}

static bool build_functions(sp_arena *arena, Sp__Profiles__ProfilesDictionary *out,
                            const sp_profile_data *data)
{
    out->function_table =
        sp_otlp_list(arena, &sp__profiles__function__descriptor, data->function_count);
    if (!out->function_table)
        return false;
    out->n_function_table = data->function_count;
    for (uint32_t i = 0; i < data->function_count; i++) {
        const sp_profile_function *from = &data->functions[i];
        out->function_table[i]->name_strindex = (int32_t)from->name_strindex;
        out->function_table[i]->system_name_strindex = (int32_t)from->system_name_strindex;
        out->function_table[i]->filename_strindex = (int32_t)from->filename_strindex;
        out->function_table[i]->start_line = from->start_line;
    }
    return true;
}

/* Link 0 becomes the empty message, because its ids are zero. All known readers accept that form.
 */
static bool build_links(sp_arena *arena, Sp__Profiles__ProfilesDictionary *out,
                        const sp_profile_data *data)
{
    out->link_table = sp_otlp_list(arena, &sp__profiles__link__descriptor, data->link_count);
    if (!out->link_table)
        return false;
    out->n_link_table = data->link_count;
    for (uint32_t i = 0; i < data->link_count; i++) {
        const sp_profile_link *from = &data->links[i];
        out->link_table[i]->trace_id = sp_otlp_id(from->trace_id, sizeof from->trace_id);
        out->link_table[i]->span_id = sp_otlp_id(from->span_id, sizeof from->span_id);
    }
    return true;
}

static bool build_stacks(sp_arena *arena, Sp__Profiles__ProfilesDictionary *out,
                         const sp_profile_data *data)
{
    out->stack_table = sp_otlp_list(arena, &sp__profiles__stack__descriptor, data->stack_count);
    if (!out->stack_table)
        return false;
    out->n_stack_table = data->stack_count;
    for (uint32_t i = 0; i < data->stack_count; i++)
        BORROW_INDICES(out->stack_table[i], location_indices, data, data->stacks[i]);
    return true;
}

/* {"thread.name": text, "thread.id": number, "unattributed_ns": number} */
static bool set_unattributed(sp_arena *arena, Sp__Common__AnyValue *value,
                             const sp_profile_unattributed *unattributed)
{
    const spanprof_attribute attributes[] = {
        {.key = "thread.name", .value.string_value = unattributed->name},
        {.key = "thread.id", .type = SPANPROF_ATTRIBUTE_INT, .value.int_value = unattributed->tid},
        {.key = "unattributed_ns",
         .type = SPANPROF_ATTRIBUTE_INT,
         .value.int_value = unattributed->unattributed_ns},
    };
    size_t count = sizeof attributes / sizeof attributes[0];
    value->value_case = SP__COMMON__ANY_VALUE__VALUE_KVLIST_VALUE;
    value->kvlist_value = sp_otlp_message(arena, &sp__common__key_value_list__descriptor);
    if (!value->kvlist_value)
        return false;
    value->kvlist_value->n_values = count;
    value->kvlist_value->values = sp_otlp_attributes(arena, attributes, count);
    return value->kvlist_value->values != NULL;
}

static bool set_unattributed_threads(sp_arena *arena, Sp__Common__AnyValue *value,
                                     const sp_profile_attribute *from)
{
    Sp__Common__ArrayValue *list = sp_otlp_message(arena, &sp__common__array_value__descriptor);
    if (!list)
        return false;
    value->value_case = SP__COMMON__ANY_VALUE__VALUE_ARRAY_VALUE;
    value->array_value = list;
    list->values =
        sp_otlp_list(arena, &sp__common__any_value__descriptor, from->unattributed_count);
    list->n_values = list->values ? from->unattributed_count : 0;
    for (uint32_t i = 0; i < list->n_values; i++)
        if (!set_unattributed(arena, list->values[i], &from->unattributed_threads[i]))
            return false;
    return list->values != NULL;
}

bool sp_otlp_profile_value(sp_arena *arena, Sp__Common__AnyValue *value,
                           const sp_profile_attribute *from)
{
    if (from->unattributed_threads)
        return set_unattributed_threads(arena, value, from);
    spanprof_attribute attribute = {.type = from->type};
    _Static_assert(sizeof attribute.value == sizeof from->value, "the same kinds of values");
    memcpy(&attribute.value, &from->value, sizeof attribute.value);
    return sp_otlp_value_set(arena, value, &attribute);
}

/* Entry 0 stays the empty message: it has no value, not the value "". */
static bool build_attributes(sp_arena *arena, Sp__Profiles__ProfilesDictionary *out,
                             const sp_profile_data *data)
{
    uint32_t count = data->attribute_count;
    Sp__Common__AnyValue **values = sp_otlp_list(arena, &sp__common__any_value__descriptor, count);
    out->attribute_table =
        sp_otlp_list(arena, &sp__profiles__key_value_and_unit__descriptor, count);
    if (!values || !out->attribute_table)
        return false;
    out->n_attribute_table = count;
    for (uint32_t i = 1; i < count; i++) {
        const sp_profile_attribute *from = &data->attributes[i];
        out->attribute_table[i]->key_strindex = (int32_t)from->key_strindex;
        out->attribute_table[i]->unit_strindex = (int32_t)from->unit_strindex;
        out->attribute_table[i]->value = values[i];
        if (!sp_otlp_profile_value(arena, values[i], from))
            return false;
    }
    return true;
}

static bool build_dictionary(sp_arena *arena, Sp__Profiles__ProfilesDictionary *out,
                             const sp_profile_data *data)
{
    out->n_string_table = data->string_count;
    out->string_table = (char **)data->strings;
    return build_mappings(arena, out, data) && build_locations(arena, out, data) &&
           build_functions(arena, out, data) && build_links(arena, out, data) &&
           build_stacks(arena, out, data) && build_attributes(arena, out, data);
}

static Sp__Profiles__ValueType *build_type(sp_arena *arena, uint32_t type, uint32_t unit)
{
    Sp__Profiles__ValueType *message =
        sp_otlp_message(arena, &sp__profiles__value_type__descriptor);
    if (!message)
        return NULL;
    message->type_strindex = (int32_t)type;
    message->unit_strindex = (int32_t)unit;
    return message;
}

/* Set either the value, or the time of each event; receivers count both the same. */
static void set_events(Sp__Profiles__Sample *sample, const sp_profile_data *data,
                       sp_profile_sample *from)
{
    if (from->timestamps.count) {
        sample->n_timestamps_unix_nano = from->timestamps.count;
        sample->timestamps_unix_nano = data->timestamps + from->timestamps.offset;
    } else {
        sample->n_values = 1;
        sample->values = &from->value;
    }
}

static bool build_samples(sp_arena *arena, Sp__Profiles__Profile *out, const sp_profile_data *data,
                          const sp_profile *profile)
{
    out->samples = sp_otlp_list(arena, &sp__profiles__sample__descriptor, profile->sample_count);
    if (!out->samples)
        return false;
    out->n_samples = profile->sample_count;
    for (uint32_t i = 0; i < profile->sample_count; i++) {
        sp_profile_sample *from = &profile->samples[i];
        Sp__Profiles__Sample *sample = out->samples[i];
        sample->stack_index = (int32_t)from->stack_index;
        sample->link_index = (int32_t)from->link_index;
        BORROW_INDICES(sample, attribute_indices, data, from->attributes);
        set_events(sample, data, from);
    }
    return true;
}

/* A profile without period type gets no period_type message at all: some receivers read an empty
 * one as a type whose name is "". */
static bool build_profile(sp_arena *arena, Sp__Profiles__Profile *out, const sp_profile_data *data,
                          const sp_profile *profile)
{
    out->time_unix_nano = profile->time_unix_nano;
    out->duration_nano = profile->duration_nano;
    out->period = profile->period;
    out->profile_id = sp_otlp_id(profile->profile_id, sizeof profile->profile_id);
    BORROW_INDICES(out, attribute_indices, data, profile->attributes);
    out->sample_type =
        build_type(arena, profile->sample_type_strindex, profile->sample_unit_strindex);
    if (!out->sample_type)
        return false;
    if (profile->period_type_strindex || profile->period_unit_strindex) {
        out->period_type =
            build_type(arena, profile->period_type_strindex, profile->period_unit_strindex);
        if (!out->period_type)
            return false;
    }
    return build_samples(arena, out, data, profile);
}

const sp_instrumentation_scope sp_otlp_profiles_scope = {.name = "spanprof",
                                                         .version = SPANPROF_VERSION};

static bool build_scope_profiles(sp_arena *arena, Sp__Profiles__ScopeProfiles *out,
                                 const sp_profile_data *data)
{
    out->scope = sp_otlp_scope(arena, &sp_otlp_profiles_scope);
    out->profiles = sp_otlp_list(arena, &sp__profiles__profile__descriptor, data->profile_count);
    if (!out->scope || !out->profiles)
        return false;
    out->n_profiles = data->profile_count;
    for (uint32_t i = 0; i < data->profile_count; i++) {
        if (!build_profile(arena, out->profiles[i], data, &data->profiles[i]))
            return false;
    }
    return true;
}

static bool build_resource_profiles(sp_arena *arena, Sp__Profiles__ResourceProfiles *out,
                                    const sp_resource *resource, const sp_profile_data *data)
{
    out->schema_url = (char *)SP_OTLP_SCHEMA_URL;
    out->resource = sp_otlp_resource(arena, resource);
    out->scope_profiles = sp_otlp_list(arena, &sp__profiles__scope_profiles__descriptor, 1);
    if (!out->resource || !out->scope_profiles)
        return false;
    out->n_scope_profiles = 1;
    return build_scope_profiles(arena, out->scope_profiles[0], data);
}

/* Without profiles the request is empty: receivers discard a ResourceProfiles without profiles. */
bool sp_otlp_profiles_tree(sp_arena *arena, Sp__Collector__ExportProfilesServiceRequest *out,
                           const sp_resource *resource, const sp_profile_data *data)
{
    if (data->profile_count == 0)
        return true;
    out->resource_profiles = sp_otlp_list(arena, &sp__profiles__resource_profiles__descriptor, 1);
    out->dictionary = sp_otlp_message(arena, &sp__profiles__profiles_dictionary__descriptor);
    if (!out->resource_profiles || !out->dictionary)
        return false;
    out->n_resource_profiles = 1;
    return build_resource_profiles(arena, out->resource_profiles[0], resource, data) &&
           build_dictionary(arena, out->dictionary, data);
}

static bool write_json(sp_buffer *out, const sp_resource *resource, const sp_profile_data *data)
{
    sp_arena arena = {0};
    Sp__Collector__ExportProfilesServiceRequest request =
        SP__COLLECTOR__EXPORT_PROFILES_SERVICE_REQUEST__INIT;
    bool done = sp_otlp_profiles_tree(&arena, &request, resource, data);
    if (done)
        done = sp_otlp_json_write(out, &request.base);
    else
        out->failed = true;
    sp_arena_deinit(&arena);
    return done;
}

bool sp_otlp_encode_profiles(sp_buffer *out, sp_otlp_format format, const sp_resource *resource,
                             const sp_profile_data *data)
{
    return format == SP_OTLP_PROTOBUF ? sp_otlp_write_profiles(out, resource, data)
                                      : write_json(out, resource, data);
}
