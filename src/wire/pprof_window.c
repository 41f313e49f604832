/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/pprof.h"
#include "wire/profiles.h"

/* sp_otlp_profiles_tree makes one resource with one scope. */
static bool write_tree(sp_buffer *out, sp_arena *arena,
                       const Sp__Collector__ExportProfilesServiceRequest *request)
{
    const Sp__Profiles__ResourceProfiles *resource = request->resource_profiles[0];
    const Sp__Profiles__ScopeProfiles *scope = resource->scope_profiles[0];
    sp_pprof_part *parts = sp_arena_array(arena, scope->n_profiles, sizeof *parts);
    sp_pprof_source source = {
        .dictionary = request->dictionary, .parts = parts, .part_count = scope->n_profiles};
    for (size_t i = 0; parts && i < scope->n_profiles; i++)
        parts[i] = (sp_pprof_part){.profile = scope->profiles[i], .resource = resource->resource};
    return parts && sp_pprof_write(out, &source);
}

bool sp_pprof_encode(sp_buffer *out, const sp_resource *resource, const sp_profile_data *data)
{
    sp_arena arena = {0};
    Sp__Collector__ExportProfilesServiceRequest request =
        SP__COLLECTOR__EXPORT_PROFILES_SERVICE_REQUEST__INIT;
    bool done = data->profile_count && sp_otlp_profiles_tree(&arena, &request, resource, data) &&
                write_tree(out, &arena, &request);
    out->failed |= !done;
    sp_arena_deinit(&arena);
    return done;
}
