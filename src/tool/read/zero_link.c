/* SPDX-License-Identifier: Apache-2.0 */
#include "tool/read/zero_link.h"

#include "proto/profiles.pb-c.h"
#include "tool/text/messages.h"

static bool has_byte(const ProtobufCBinaryData *id)
{
    for (size_t i = 0; i < id->len; i++)
        if (id->data[i])
            return true;
    return false;
}

static bool begins_with_a_link(const sp_document *document)
{
    if (document->signal != SP_SIGNAL_PROFILES)
        return false;
    const Sp__Profiles__ProfilesData *data = (const Sp__Profiles__ProfilesData *)document->message;
    const Sp__Profiles__ProfilesDictionary *d = data->dictionary;
    return d && d->n_link_table &&
           (has_byte(&d->link_table[0]->trace_id) || has_byte(&d->link_table[0]->span_id));
}

void sp_input_say_zero_links(const sp_input *input)
{
    char name[SP_DOCUMENT_NAME_LENGTH];
    const sp_document *first = NULL;
    size_t count = 0;
    for (size_t i = 0; i < input->count; i++)
        if (begins_with_a_link(&input->documents[i]) && count++ == 0)
            first = &input->documents[i];
    if (!first)
        return;
    sp_tool_note("%s%s: link_table[0] is a link, and index 0 stands for no link: samples with it "
                 "belong to no span; the writer has to put a zero link first",
                 sp_document_name(name, first), count > 1 ? " and other requests" : "");
}
