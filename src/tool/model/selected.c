/* SPDX-License-Identifier: Apache-2.0 */
#include "tool/model/selected.h"

#include <stdlib.h>
#include <string.h>

#include "core/counted.h"
#include "tool/model/merge.h"
#include "tool/text/messages.h"
#include "wire/gzip.h"
#include "wire/pprof.h"

/* The state while samples of profiles are chosen. */
typedef struct chooser {
    sp_arena *memory;
    const sp_selection *selections;
    size_t selection_count;
    bool *taken; /* by number of the model's sample: its growth was given to a sample */
} chooser;

static const sp_selection *selection_of(const chooser *chooser, uint32_t type)
{
    for (size_t i = 0; i < chooser->selection_count; i++)
        if (chooser->selections[i].type == type)
            return &chooser->selections[i];
    return NULL;
}

/* Make a sample of what grew. The growth is known only for a stack and a span as a whole. So the
 * first sample of them gets all of it, and the others get NULL. */
static Sp__Profiles__Sample *grown_sample(chooser *chooser, const sp_selection *selection,
                                          const Sp__Profiles__Sample *from, uint32_t number)
{
    if (chooser->taken[number])
        return NULL;
    chooser->taken[number] = true;
    Sp__Profiles__Sample *sample = sp_arena_memdup(chooser->memory, from, sizeof *from);
    int64_t *value = sp_arena_alloc(chooser->memory, sizeof *value);
    if (!sample || !value)
        return NULL;
    *value = (int64_t)selection->model->samples[number].value;
    sample->values = value;
    sample->n_values = 1;
    sample->n_timestamps_unix_nano = 0;
    sample->n_attribute_indices = 0;
    return sample;
}

/* Copy the message of FROM with only the selected samples. Returns NULL when there are none, or
 * memory is short. */
static Sp__Profiles__Profile *choose(chooser *chooser, const sp_model_profile *from)
{
    const sp_selection *selection = selection_of(chooser, from->type);
    if (!selection || !from->sample_numbers)
        return NULL;
    size_t count = from->message->n_samples;
    Sp__Profiles__Profile *profile =
        sp_arena_memdup(chooser->memory, from->message, sizeof *from->message);
    Sp__Profiles__Sample **samples = sp_arena_array(chooser->memory, count + 1, sizeof *samples);
    if (!profile || !samples)
        return NULL;
    profile->samples = samples;
    profile->n_samples = 0;
    for (size_t i = 0; i < count; i++) {
        uint32_t number = from->sample_numbers[i];
        Sp__Profiles__Sample *sample = from->message->samples[i];
        if (!sp_selection_has(selection, &selection->model->samples[number]))
            continue;
        if (selection->grown)
            sample = grown_sample(chooser, selection, sample, number);
        if (sample)
            samples[profile->n_samples++] = sample;
    }
    return profile->n_samples ? profile : NULL;
}

/* Make a request that has only PROFILE, with the dictionary and the resource of FROM. */
static ProtobufCMessage *wrap(sp_arena *memory, const sp_model_profile *from,
                              Sp__Profiles__Profile *profile)
{
    struct envelope {
        Sp__Profiles__ProfilesData data;
        Sp__Profiles__ResourceProfiles resource;
        Sp__Profiles__ScopeProfiles scope;
        Sp__Profiles__ResourceProfiles *resources[1];
        Sp__Profiles__ScopeProfiles *scopes[1];
        Sp__Profiles__Profile *profiles[1];
    } *made = sp_arena_alloc(memory, sizeof *made);
    if (!made)
        return NULL;
    sp__profiles__profiles_data__init(&made->data);
    sp__profiles__resource_profiles__init(&made->resource);
    sp__profiles__scope_profiles__init(&made->scope);
    made->profiles[0] = profile;
    made->scopes[0] = &made->scope;
    made->resources[0] = &made->resource;
    made->scope.profiles = made->profiles;
    made->resource.scope_profiles = made->scopes;
    made->resource.resource = (Sp__Resource__Resource *)(uintptr_t)from->resource;
    made->data.resource_profiles = made->resources;
    made->data.dictionary = (Sp__Profiles__ProfilesDictionary *)(uintptr_t)from->dictionary;
    made->scope.n_profiles = made->resource.n_scope_profiles = made->data.n_resource_profiles = 1;
    return &made->data.base;
}

static bool choose_all(chooser *chooser, sp_input *chosen)
{
    const sp_model *model = chooser->selections[0].model;
    chosen->documents =
        sp_arena_array(chooser->memory, model->profile_count + 1, sizeof *chosen->documents);
    chooser->taken =
        sp_arena_array(chooser->memory, model->sample_index.count + 1, sizeof *chooser->taken);
    for (size_t i = 0; !chooser->memory->failed && i < model->profile_count; i++) {
        const sp_model_profile *from = &model->profiles[i];
        Sp__Profiles__Profile *profile = choose(chooser, from);
        if (!profile)
            continue;
        sp_document *document = &chosen->documents[chosen->count++];
        *document = *from->document;
        document->message = wrap(chooser->memory, from, profile);
    }
    return !chooser->memory->failed;
}

Sp__Profiles__ProfilesData *sp_selected_request(sp_arena *memory, const sp_selection *selections,
                                                size_t count)
{
    chooser chooser = {.memory = memory, .selections = selections, .selection_count = count};
    sp_input chosen = {0};
    if (choose_all(&chooser, &chosen))
        return (Sp__Profiles__ProfilesData *)sp_merge(memory, &chosen, SP_SIGNAL_PROFILES);
    sp_tool_no_memory();
    return NULL;
}

/* ---- pprof ---- */

/* Whether the local root of SPAN is known; it is then in *ROOT. It is unknown when the topmost span
 * in the files has a parent in the same process that is not in the files. */
static bool has_known_root(const sp_model *model, uint32_t span, uint32_t *root)
{
    static const uint8_t none[8];
    *root = sp_model_local_root(model, span);
    const sp_model_span *top = &model->spans[*root];
    return top->parent_is_remote || memcmp(top->parent_span_id, none, sizeof none) == 0;
}

static void find_root(const sp_model *model, const Sp__Profiles__Link *link, uint8_t out[8])
{
    sp_model_link id = {0};
    uint32_t root;
    if (link->trace_id.len != sizeof id.trace_id || link->span_id.len != sizeof id.span_id)
        return;
    memcpy(id.trace_id, link->trace_id.data, sizeof id.trace_id);
    memcpy(id.span_id, link->span_id.data, sizeof id.span_id);
    uint32_t span = sp_model_span_of_link(model, &id);
    if (span != SP_MODEL_NONE && has_known_root(model, span, &root))
        memcpy(out, model->spans[root].id.span_id, 8);
}

static bool fill_source(sp_arena *memory, const sp_model *model,
                        const Sp__Profiles__ProfilesData *data, sp_pprof_source *source)
{
    const Sp__Profiles__ProfilesDictionary *d = data->dictionary;
    sp_pprof_part *parts = sp_arena_array(memory, data->n_resource_profiles + 1, sizeof *parts);
    uint8_t(*roots)[8] = sp_arena_array(memory, d->n_link_table + 1, sizeof *roots);
    *source = (sp_pprof_source){.dictionary = d,
                                .parts = parts,
                                .part_count = data->n_resource_profiles,
                                .root_span_ids = (const uint8_t(*)[8])roots};
    for (size_t i = 0; parts && i < data->n_resource_profiles; i++)
        parts[i] =
            (sp_pprof_part){.profile = data->resource_profiles[i]->scope_profiles[0]->profiles[0],
                            .resource = data->resource_profiles[i]->resource};
    for (size_t i = 1; roots && i < d->n_link_table; i++)
        find_root(model, d->link_table[i], roots[i]);
    return parts && roots;
}

/* Write a note when samples have times of single events, because pprof has no place for these. */
static void note_times(const Sp__Profiles__ProfilesData *data)
{
    size_t count = 0;
    for (size_t i = 0; i < data->n_resource_profiles; i++) {
        const Sp__Profiles__Profile *profile =
            data->resource_profiles[i]->scope_profiles[0]->profiles[0];
        for (size_t k = 0; k < profile->n_samples; k++)
            count += profile->samples[k]->n_timestamps_unix_nano != 0;
    }
    if (count)
        sp_tool_note("pprof has no place for times: they are left out of %s",
                     SP_COUNTED(count, "sample"));
}

int sp_selected_pprof(sp_buffer *out, const sp_selection *selections, size_t count)
{
    sp_arena memory = {0};
    sp_pprof_source source;
    sp_gzip gzip = {0};
    int status = SP_TOOL_WRONG;
    Sp__Profiles__ProfilesData *data = sp_selected_request(&memory, selections, count);
    if (data) {
        note_times(data);
        bool done = fill_source(&memory, selections[0].model, data, &source) &&
                    sp_pprof_write(out, &source) && sp_gzip_body(&gzip, out);
        status = done ? SP_TOOL_DONE : sp_tool_no_memory();
    }
    sp_gzip_deinit(&gzip);
    sp_arena_deinit(&memory);
    return status;
}
