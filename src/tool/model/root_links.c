/* SPDX-License-Identifier: Apache-2.0 */
#include "tool/model/root_links.h"

#include <string.h>

/* Change LINK to lead to the local root of its span. Returns false when the files do not have the
 * span. */
static bool lead_to_root(Sp__Profiles__Link *link, const sp_model *model)
{
    sp_model_link id;
    memcpy(id.trace_id, link->trace_id.data, sizeof id.trace_id);
    memcpy(id.span_id, link->span_id.data, sizeof id.span_id);
    uint32_t span = sp_model_span_of_link(model, &id);
    if (span == SP_MODEL_NONE)
        return false;
    const sp_model_span *root = &model->spans[sp_model_local_root(model, span)];
    memcpy(link->span_id.data, root->id.span_id, sizeof root->id.span_id);
    return true;
}

/* Change the attributes that say what the links lead to. Each other word for a link scope is at
 * least as long as "root", so the text has room. */
static void describe_as_roots(const Sp__Profiles__ProfilesDictionary *dictionary)
{
    for (size_t i = 0; i < dictionary->n_attribute_table; i++) {
        const Sp__Profiles__KeyValueAndUnit *attribute = dictionary->attribute_table[i];
        int32_t key = attribute->key_strindex;
        const Sp__Common__AnyValue *value = attribute->value;
        if (key > 0 && (size_t)key < dictionary->n_string_table && value &&
            strcmp(dictionary->string_table[key], SP_LINK_SCOPE_KEY) == 0 &&
            value->value_case == SP__COMMON__ANY_VALUE__VALUE_STRING_VALUE &&
            strlen(value->string_value) >= strlen("root"))
            strcpy(value->string_value, "root");
    }
}

size_t sp_links_to_roots(const sp_document *document, const sp_model *model)
{
    const Sp__Profiles__ProfilesData *data =
        (const Sp__Profiles__ProfilesData *)(const void *)document->message;
    size_t unknown = 0;
    if (data->dictionary)
        describe_as_roots(data->dictionary);
    for (size_t i = 0; data->dictionary && i < data->dictionary->n_link_table; i++) {
        Sp__Profiles__Link *link = data->dictionary->link_table[i];
        if (link->trace_id.len == sizeof(((sp_model_link *)0)->trace_id) &&
            link->span_id.len == sizeof(((sp_model_link *)0)->span_id))
            unknown += !lead_to_root(link, model);
    }
    return unknown;
}
