/* SPDX-License-Identifier: Apache-2.0 */
/* Warns about samples whose context was not certain: then a table of spans shows less time than the
 * spans used. */
#include <string.h>

#include "core/compiler.h"
#include "tool/model/model.h"
#include "tool/text/messages.h"

/* A note is written for at least FEW such samples, if they are at least one in WORTH_A_NOTE of all.
 * A smaller share is normal in every program. */
enum { WORTH_A_NOTE = 10, FEW = 5 };

typedef struct certainty {
    uint64_t all, unknown;         /* numbers of samples */
    uint64_t unknown_from_outside; /* those of `unknown` that `run --attach` took */
} certainty;

/* The value of the attribute KEY of PROFILE; NULL: there is none. */
static const Sp__Common__AnyValue *find_value(const sp_model_profile *profile, const char *key)
{
    const Sp__Profiles__ProfilesDictionary *d = profile->dictionary;
    for (size_t i = 0; i < profile->message->n_attribute_indices; i++) {
        int32_t index = profile->message->attribute_indices[i];
        if (index < 0 || (size_t)index >= d->n_attribute_table)
            continue;
        const Sp__Profiles__KeyValueAndUnit *attribute = d->attribute_table[index];
        int32_t name = attribute->key_strindex;
        if (name > 0 && (size_t)name < d->n_string_table && attribute->value &&
            strcmp(d->string_table[name], key) == 0)
            return attribute->value;
    }
    return NULL;
}

const char *sp_model_profile_text(const sp_model_profile *profile, const char *key)
{
    const Sp__Common__AnyValue *value = find_value(profile, key);
    return value ? sp_value_text(value, profile->dictionary) : "";
}

uint64_t sp_model_profile_number(const sp_model_profile *profile, const char *key)
{
    const Sp__Common__AnyValue *value = find_value(profile, key);
    bool is_number = value && value->value_case == SP__COMMON__ANY_VALUE__VALUE_INT_VALUE;
    return is_number && value->int_value > 0 ? (uint64_t)value->int_value : 0;
}

bool sp_model_is_from_outside(const sp_model_profile *profile)
{
    return sp_model_profile_number(profile, "spanprof.from_outside") > 0;
}

static void add_profile(certainty *sums, const sp_model_profile *profile)
{
    static const char *const others[] = {"spanprof.samples.linked", "spanprof.samples.none",
                                         "spanprof.samples.boundary"};
    uint64_t unknown = sp_model_profile_number(profile, "spanprof.samples.unknown");
    for (size_t i = 0; i < SP_ARRAY_LENGTH(others); i++)
        sums->all += sp_model_profile_number(profile, others[i]);
    sums->all += unknown;
    sums->unknown += unknown;
    if (unknown && sp_model_is_from_outside(profile))
        sums->unknown_from_outside += unknown;
}

bool sp_model_note_unknown(const sp_model *model)
{
    uint32_t type = sp_model_time_type(model);
    certainty sums = {0};
    for (size_t i = 0; i < model->profile_count; i++)
        if (model->profiles[i].type == type)
            add_profile(&sums, &model->profiles[i]);
    if (sums.unknown < FEW || sums.unknown < sums.all / WORTH_A_NOTE)
        return false;
    bool is_from_outside = sums.unknown_from_outside > sums.unknown / 2;
    sp_tool_note("%.0f %% of the samples of %s have no span because it was not certain, so spans "
                 "may have taken more than they have here; %s",
                 100.0 * (double)sums.unknown / (double)sums.all, model->types[type].name,
                 is_from_outside
                     ? "a look from outside comes after the tick, and the thread had gone on"
                     : "`spanprof stats` tells which mistakes were seen");
    return true;
}
