/* SPDX-License-Identifier: Apache-2.0 */
#include "tool/read/repeats.h"

#include <string.h>

#include "core/buffer.h"
#include "core/counted.h"
#include "core/intern.h"
#include "proto/profiles.pb-c.h"
#include "tool/read/zero_link.h"
#include "tool/text/messages.h"

enum { ID_BYTES = 16, MAX_KEY_BYTES = 1 << 20 };

typedef struct repeats {
    sp_intern seen; /* by id and type */
    sp_buffer key;
    const Sp__Profiles__ProfilesDictionary *dictionary;
    const char *path;       /* of the first repeated profile */
    uint64_t here, in_all;  /* how many repeated profiles the document has, and all have */
    bool in_others, failed; /* other files than PATH have some; memory is short */
} repeats;

static bool has_id(const Sp__Profiles__Profile *profile)
{
    static const uint8_t none[ID_BYTES];
    return profile->profile_id.len == ID_BYTES &&
           memcmp(profile->profile_id.data, none, ID_BYTES) != 0;
}

/* Add the text and its NUL, so that "ab", "c" and "a", "bc" give different keys. */
static void add_text(repeats *repeats, int32_t index)
{
    const Sp__Profiles__ProfilesDictionary *d = repeats->dictionary;
    const char *text =
        d && index >= 0 && (size_t)index < d->n_string_table ? d->string_table[index] : "";
    sp_buffer_add(&repeats->key, text, strlen(text) + 1);
}

static void add_type(repeats *repeats, const Sp__Profiles__ValueType *type)
{
    add_text(repeats, type ? type->type_strindex : -1);
    add_text(repeats, type ? type->unit_strindex : -1);
}

static bool is_repeated(repeats *repeats, const Sp__Profiles__Profile *profile)
{
    bool is_new = true;
    if (repeats->failed || !has_id(profile))
        return false;
    sp_buffer_clear(&repeats->key);
    sp_buffer_add(&repeats->key, profile->profile_id.data, ID_BYTES);
    add_type(repeats, profile->sample_type);
    add_type(repeats, profile->period_type);
    repeats->failed =
        repeats->key.failed || sp_intern_put(&repeats->seen, repeats->key.data, repeats->key.length,
                                             &is_new) == SP_INTERN_FAILED;
    return !repeats->failed && !is_new;
}

/* Remove the repeated profiles of SCOPE. Returns whether SCOPE has become empty. */
static bool clean_scope(repeats *repeats, Sp__Profiles__ScopeProfiles *scope)
{
    size_t kept = 0, before = scope->n_profiles;
    for (size_t i = 0; i < before; i++) {
        if (!is_repeated(repeats, scope->profiles[i]))
            scope->profiles[kept++] = scope->profiles[i];
    }
    scope->n_profiles = kept;
    repeats->here += before - kept;
    return before && !kept;
}

/* The same for RESOURCE. */
static bool clean_resource(repeats *repeats, Sp__Profiles__ResourceProfiles *resource)
{
    size_t kept = 0, before = resource->n_scope_profiles;
    for (size_t i = 0; i < before; i++) {
        if (!clean_scope(repeats, resource->scope_profiles[i]))
            resource->scope_profiles[kept++] = resource->scope_profiles[i];
    }
    resource->n_scope_profiles = kept;
    return before && !kept;
}

static void clean_document(repeats *repeats, const sp_document *document)
{
    Sp__Profiles__ProfilesData *data = (Sp__Profiles__ProfilesData *)document->message;
    size_t kept = 0;
    repeats->here = 0;
    repeats->dictionary = data->dictionary;
    for (size_t i = 0; i < data->n_resource_profiles; i++) {
        if (!clean_resource(repeats, data->resource_profiles[i]))
            data->resource_profiles[kept++] = data->resource_profiles[i];
    }
    data->n_resource_profiles = kept;
    if (repeats->here && !repeats->path)
        repeats->path = document->path;
    repeats->in_others |= repeats->here && strcmp(repeats->path, document->path) != 0;
    repeats->in_all += repeats->here;
}

static void say_repeated(const repeats *repeats)
{
    sp_tool_note("%s%s: %s %s in the input more than once, by profile_id: counted once",
                 repeats->path, repeats->in_others ? " and other files" : "",
                 SP_COUNTED(repeats->in_all, "profile"), repeats->in_all == 1 ? "is" : "are");
}

int sp_input_drop_repeats(sp_input *input)
{
    repeats repeats = {.key = SP_BUFFER_INIT(MAX_KEY_BYTES)};
    for (size_t i = 0; i < input->count; i++)
        if (input->documents[i].signal == SP_SIGNAL_PROFILES)
            clean_document(&repeats, &input->documents[i]);
    if (repeats.in_all && !repeats.failed)
        say_repeated(&repeats);
    sp_intern_deinit(&repeats.seen);
    sp_buffer_deinit(&repeats.key);
    return repeats.failed ? sp_tool_no_memory() : SP_TOOL_DONE;
}

int sp_input_read_once(sp_input *input, const sp_operands *files)
{
    int status = sp_input_read(input, files);
    if (status == SP_TOOL_DONE)
        sp_input_say_zero_links(input);
    return status == SP_TOOL_DONE ? sp_input_drop_repeats(input) : status;
}
