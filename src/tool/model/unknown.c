/* SPDX-License-Identifier: Apache-2.0 */
/* Samples whose context was not certain: a table of spans shows less time than they used. */
#include <string.h>

#include "core/compiler.h"
#include "tool/model/model.h"
#include "tool/text/messages.h"

/* A smaller share is normal in every program. */
enum { WORTH_A_NOTE = 10, FEW = 5 };

typedef struct certainty {
    uint64_t all, unknown; /* samples */
} certainty;

/* Sums as the profiles tell them; a number below zero tells nothing. */
static void add(certainty *sums, const char *key, int64_t number)
{
    static const char *const kinds[] = {"linked", "none", "boundary", "unknown"};
    static const char prefix[] = "spanprof.samples.";
    if (strncmp(key, prefix, sizeof prefix - 1) != 0 || number < 0)
        return;
    for (size_t i = 0; i < SP_ARRAY_LENGTH(kinds); i++)
        if (strcmp(key + sizeof prefix - 1, kinds[i]) == 0)
            sums->all += (uint64_t)number;
    if (strcmp(key + sizeof prefix - 1, "unknown") == 0)
        sums->unknown += (uint64_t)number;
}

static void add_profile(certainty *sums, const sp_model_profile *profile)
{
    const Sp__Profiles__ProfilesDictionary *d = profile->dictionary;
    for (size_t i = 0; i < profile->message->n_attribute_indices; i++) {
        int32_t index = profile->message->attribute_indices[i];
        if (index < 0 || (size_t)index >= d->n_attribute_table)
            continue;
        const Sp__Profiles__KeyValueAndUnit *attribute = d->attribute_table[index];
        int32_t key = attribute->key_strindex;
        if (key > 0 && (size_t)key < d->n_string_table && attribute->value &&
            attribute->value->value_case == SP__COMMON__ANY_VALUE__VALUE_INT_VALUE)
            add(sums, d->string_table[key], attribute->value->int_value);
    }
}

void sp_model_note_unknown(const sp_model *model)
{
    uint32_t type = sp_model_time_type(model);
    certainty sums = {0};
    for (size_t i = 0; i < model->profile_count; i++)
        if (model->profiles[i].type == type)
            add_profile(&sums, &model->profiles[i]);
    if (sums.unknown < FEW || sums.unknown < sums.all / WORTH_A_NOTE)
        return;
    sp_tool_note(
        "%.0f %% of the samples of %s have no span because it was not certain, so spans "
        "may have taken more than they have here; `spanprof stats` tells which mistakes were seen",
        100.0 * (double)sums.unknown / (double)sums.all, model->types[type].name);
}
