/* SPDX-License-Identifier: Apache-2.0 */
#include "tool/model/merge.h"

#include "proto/trace.pb-c.h"
#include "tool/model/merge_tables.h"
#include "tool/text/messages.h"

static Sp__Profiles__ValueType *map_value_type(sp_merger *merger,
                                               const Sp__Profiles__ValueType *from)
{
    Sp__Profiles__ValueType *to = from ? sp_merger_copy(merger, from, sizeof *from) : NULL;
    if (to) {
        to->type_strindex = sp_merger_map(merger, SP_MERGE_STRINGS, from->type_strindex);
        to->unit_strindex = sp_merger_map(merger, SP_MERGE_STRINGS, from->unit_strindex);
    }
    return to;
}

static Sp__Profiles__Sample *map_sample(sp_merger *merger, const Sp__Profiles__Sample *from)
{
    Sp__Profiles__Sample *to = sp_merger_copy(merger, from, sizeof *from);
    if (to) {
        to->stack_index = sp_merger_map(merger, SP_MERGE_STACKS, from->stack_index);
        to->link_index = sp_merger_map(merger, SP_MERGE_LINKS, from->link_index);
        to->attribute_indices = sp_merger_map_list(
            merger, SP_MERGE_ATTRIBUTES, from->attribute_indices, from->n_attribute_indices);
    }
    return to;
}

static Sp__Profiles__Profile *map_profile(sp_merger *merger, const Sp__Profiles__Profile *from)
{
    Sp__Profiles__Profile *to = sp_merger_copy(merger, from, sizeof *from);
    if (!to)
        return NULL;
    to->sample_type = map_value_type(merger, from->sample_type);
    to->period_type = map_value_type(merger, from->period_type);
    to->attribute_indices = sp_merger_map_list(merger, SP_MERGE_ATTRIBUTES, from->attribute_indices,
                                               from->n_attribute_indices);
    to->samples = sp_merger_pointers(merger, from->n_samples);
    for (size_t i = 0; !merger->failed && i < from->n_samples; i++)
        to->samples[i] = map_sample(merger, from->samples[i]);
    return to;
}

static Sp__Profiles__ScopeProfiles *map_scope(sp_merger *merger,
                                              const Sp__Profiles__ScopeProfiles *from)
{
    Sp__Profiles__ScopeProfiles *to = sp_merger_copy(merger, from, sizeof *from);
    if (!to)
        return NULL;
    if (from->scope && (to->scope = sp_merger_copy(merger, from->scope, sizeof *from->scope)))
        to->scope->attributes =
            sp_merger_attributes(merger, from->scope->attributes, from->scope->n_attributes);
    to->profiles = sp_merger_pointers(merger, from->n_profiles);
    for (size_t i = 0; !merger->failed && i < from->n_profiles; i++)
        to->profiles[i] = map_profile(merger, from->profiles[i]);
    return to;
}

static Sp__Profiles__ResourceProfiles *map_resource(sp_merger *merger,
                                                    const Sp__Profiles__ResourceProfiles *from)
{
    Sp__Profiles__ResourceProfiles *to = sp_merger_copy(merger, from, sizeof *from);
    if (!to)
        return NULL;
    if (from->resource &&
        (to->resource = sp_merger_copy(merger, from->resource, sizeof *from->resource)))
        to->resource->attributes =
            sp_merger_attributes(merger, from->resource->attributes, from->resource->n_attributes);
    to->scope_profiles = sp_merger_pointers(merger, from->n_scope_profiles);
    for (size_t i = 0; !merger->failed && i < from->n_scope_profiles; i++)
        to->scope_profiles[i] = map_scope(merger, from->scope_profiles[i]);
    return to;
}

static ProtobufCMessage *merge_profiles(sp_merger *merger, const sp_input *input)
{
    static const Sp__Profiles__ProfilesData empty = SP__PROFILES__PROFILES_DATA__INIT;
    Sp__Profiles__ProfilesData *all = sp_merger_copy(merger, &empty, sizeof empty);
    size_t count = 0;
    for (size_t i = 0; i < input->count; i++)
        count += ((Sp__Profiles__ProfilesData *)input->documents[i].message)->n_resource_profiles;
    Sp__Profiles__ResourceProfiles **list = sp_merger_pointers(merger, count);
    sp_merger_begin(merger);
    for (size_t i = 0, filled = 0; !merger->failed && i < input->count; i++) {
        const Sp__Profiles__ProfilesData *data =
            (const Sp__Profiles__ProfilesData *)input->documents[i].message;
        if (!sp_merger_enter(merger, &input->documents[i]))
            break;
        for (size_t k = 0; !merger->failed && k < data->n_resource_profiles; k++)
            list[filled++] = map_resource(merger, data->resource_profiles[k]);
    }
    if (merger->failed)
        return NULL;
    all->resource_profiles = list;
    all->n_resource_profiles = count;
    all->dictionary = sp_merger_take(merger);
    return merger->failed ? NULL : &all->base;
}

static void say_failure(const sp_merger *merger)
{
    char name[SP_DOCUMENT_NAME_LENGTH];
    if (!merger->failed_table)
        sp_tool_no_memory();
    else
        sp_tool_wrong(
            "%s: something leads to %s[%d], which is outside that table; `spanprof check` "
            "says what",
            sp_document_name(name, merger->document), merger->failed_table,
            (int)merger->failed_index);
}

static ProtobufCMessage *merge_traces(sp_arena *memory, const sp_input *input)
{
    static const Sp__Trace__TracesData empty = SP__TRACE__TRACES_DATA__INIT;
    Sp__Trace__TracesData *all = sp_arena_memdup(memory, &empty, sizeof empty);
    size_t count = 0;
    for (size_t i = 0; i < input->count; i++)
        count += ((Sp__Trace__TracesData *)input->documents[i].message)->n_resource_spans;
    Sp__Trace__ResourceSpans **list = sp_arena_array(memory, count + 1, sizeof *list);
    if (!all || !list) {
        sp_tool_no_memory();
        return NULL;
    }
    all->resource_spans = list;
    for (size_t i = 0; i < input->count; i++) {
        const Sp__Trace__TracesData *data =
            (const Sp__Trace__TracesData *)input->documents[i].message;
        for (size_t k = 0; k < data->n_resource_spans; k++)
            list[all->n_resource_spans++] = data->resource_spans[k];
    }
    return &all->base;
}

ProtobufCMessage *sp_merge(sp_arena *memory, const sp_input *input, sp_signal signal)
{
    if (signal == SP_SIGNAL_TRACES)
        return merge_traces(memory, input);
    sp_merger merger = {.memory = memory};
    ProtobufCMessage *merged = merge_profiles(&merger, input);
    if (!merged)
        say_failure(&merger);
    sp_merger_deinit(&merger);
    return merged;
}
