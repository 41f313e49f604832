/* SPDX-License-Identifier: Apache-2.0 */
#include "tool/model/lock_attributes.h"

#include <string.h>

#include "core/compiler.h"
#include "proto/profiles.pb-c.h"
#include "tool/model/merge.h"

static const char *const key_prefixes[] = {"spanprof.holder.", "spanprof.lock."};

static bool is_of_lock(const Sp__Profiles__ProfilesDictionary *dictionary, int32_t attribute)
{
    if (attribute < 0 || (size_t)attribute >= dictionary->n_attribute_table)
        return false;
    int32_t key = dictionary->attribute_table[attribute]->key_strindex;
    if (key <= 0 || (size_t)key >= dictionary->n_string_table)
        return false;
    for (size_t i = 0; i < SP_ARRAY_LENGTH(key_prefixes); i++)
        if (strncmp(dictionary->string_table[key], key_prefixes[i], strlen(key_prefixes[i])) == 0)
            return true;
    return false;
}

/* Remove the attributes of locks and their holders from SAMPLE. Returns whether SAMPLE had any. */
static bool remove_from_sample(const Sp__Profiles__ProfilesDictionary *dictionary,
                               Sp__Profiles__Sample *sample)
{
    size_t kept = 0, before = sample->n_attribute_indices;
    for (size_t i = 0; i < before; i++)
        if (!is_of_lock(dictionary, sample->attribute_indices[i]))
            sample->attribute_indices[kept++] = sample->attribute_indices[i];
    sample->n_attribute_indices = kept;
    return kept < before;
}

static bool remove_from_scope(const Sp__Profiles__ProfilesDictionary *dictionary,
                              const Sp__Profiles__ScopeProfiles *scope)
{
    bool had_some = false;
    for (size_t i = 0; i < scope->n_profiles; i++)
        for (size_t j = 0; j < scope->profiles[i]->n_samples; j++)
            had_some |= remove_from_sample(dictionary, scope->profiles[i]->samples[j]);
    return had_some;
}

static bool remove_from_document(const sp_document *document)
{
    const Sp__Profiles__ProfilesData *data =
        (const Sp__Profiles__ProfilesData *)(const void *)document->message;
    bool had_some = false;
    if (!data->dictionary)
        return false;
    for (size_t i = 0; i < data->n_resource_profiles; i++)
        for (size_t j = 0; j < data->resource_profiles[i]->n_scope_profiles; j++)
            had_some |=
                remove_from_scope(data->dictionary, data->resource_profiles[i]->scope_profiles[j]);
    return had_some;
}

/* Build the message of DOCUMENT again, with a dictionary that has only the used entries. */
static bool rebuild(sp_input *input, sp_document *document)
{
    sp_input alone = {.documents = document, .count = 1};
    document->message = sp_merge(&input->memory, &alone, SP_SIGNAL_PROFILES);
    return document->message != NULL;
}

bool sp_lock_attributes_remove(sp_input *input)
{
    for (size_t i = 0; i < input->count; i++) {
        sp_document *document = &input->documents[i];
        if (document->signal == SP_SIGNAL_PROFILES && remove_from_document(document) &&
            !rebuild(input, document))
            return false;
    }
    return true;
}
