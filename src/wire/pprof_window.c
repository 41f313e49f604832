/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/pprof.h"
#include "wire/profiles.h"

/* sp_otlp_profiles_tree makes one resource with one scope. */
static bool write_tree(sp_buffer *out, sp_arena *arena,
                       const Sp__Collector__ExportProfilesServiceRequest *request,
                       sp_pprof_source *source)
{
    const Sp__Profiles__ResourceProfiles *resource = request->resource_profiles[0];
    const Sp__Profiles__ScopeProfiles *scope = resource->scope_profiles[0];
    sp_pprof_part *parts = sp_arena_array(arena, scope->n_profiles, sizeof *parts);
    source->dictionary = request->dictionary;
    source->parts = parts;
    source->part_count = scope->n_profiles;
    for (size_t i = 0; parts && i < scope->n_profiles; i++)
        parts[i] = (sp_pprof_part){.profile = scope->profiles[i], .resource = resource->resource};
    return parts && sp_pprof_write(out, source);
}

/* Write the types, without any profile. */
static bool write_nothing(sp_buffer *out, sp_pprof_source *source)
{
    static char empty[] = "", *strings[] = {empty};
    static const Sp__Profiles__ProfilesDictionary none = {
        .base = PROTOBUF_C_MESSAGE_INIT(&sp__profiles__profiles_dictionary__descriptor),
        .n_string_table = 1,
        .string_table = strings};
    source->dictionary = &none;
    return sp_pprof_write(out, source);
}

static bool encode(sp_buffer *out, const sp_resource *resource, const sp_profile_data *data,
                   sp_pprof_source *source)
{
    sp_arena arena = {0};
    Sp__Collector__ExportProfilesServiceRequest request =
        SP__COLLECTOR__EXPORT_PROFILES_SERVICE_REQUEST__INIT;
    bool done = data->profile_count ? sp_otlp_profiles_tree(&arena, &request, resource, data) &&
                                          write_tree(out, &arena, &request, source)
                                    : write_nothing(out, source);
    out->failed |= !done;
    sp_arena_deinit(&arena);
    return done;
}

bool sp_pprof_encode(sp_buffer *out, const sp_resource *resource, const sp_profile_data *data)
{
    sp_pprof_source source = {0};
    return encode(out, resource, data, &source);
}

bool sp_pprof_encode_part(sp_buffer *out, const sp_resource *resource, const sp_profile_data *data,
                          const sp_pprof_type_name *types, size_t type_count,
                          sp_pprof_sequence *sequence)
{
    sp_pprof_source source = {.types = types, .type_count = type_count, .sequence = sequence};
    return encode(out, resource, data, &source);
}
