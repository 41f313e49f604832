/* SPDX-License-Identifier: Apache-2.0 */
/* Learns the functions in the stacks of threads that held locks. Such a stack is one text of
 * recorded names, without symbols. */
#include <stdlib.h>
#include <string.h>

#include "tool/model/model.h"

static bool learn_stack(sp_names *names, const char *stack)
{
    char *copy = strdup(stack), *rest = copy;
    bool done = copy;
    for (const char *name; done && (name = strsep(&rest, ";"));)
        done = sp_names_learn_recorded(names, name);
    free(copy);
    return done;
}

bool sp_names_learn_holders(sp_names *names, const sp_document *document)
{
    const Sp__Profiles__ProfilesData *data =
        (const Sp__Profiles__ProfilesData *)(const void *)document->message;
    const Sp__Profiles__ProfilesDictionary *d = data->dictionary;
    for (size_t i = 0; d && i < d->n_attribute_table; i++) {
        const Sp__Profiles__KeyValueAndUnit *attribute = d->attribute_table[i];
        int32_t key = attribute->key_strindex;
        if (key > 0 && (size_t)key < d->n_string_table && attribute->value &&
            strcmp(d->string_table[key], SP_HOLDER_STACK_KEY) == 0 &&
            !learn_stack(names, sp_value_text(attribute->value, d)))
            return false;
    }
    return true;
}
