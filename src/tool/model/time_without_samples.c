/* SPDX-License-Identifier: Apache-2.0 */
#include "tool/model/time_without_samples.h"

#include "core/compiler.h"
#include "tool/model/process.h"
#include "tool/model/sum.h"

/* Less than one part in MUCH_OF is normal in many programs. */
enum { MUCH_OF = 10 };

static bool is_of_span(const sp_model_profile *profile, const sp_model_span *span)
{
    sp_process process = sp_process_of(span->resource, NULL);
    sp_process of_profile = sp_process_of(profile->resource, profile->dictionary);
    return sp_process_may_be_same(&process, &of_profile) &&
           profile->message->time_unix_nano < span->end_ns &&
           sp_profile_end_ns(profile->message) > span->start_ns;
}

/* The CPU time of the samples of PROFILE. */
static uint64_t sampled_ns(const sp_model_profile *profile)
{
    static const char *const keys[] = {"spanprof.samples.linked", "spanprof.samples.none",
                                       "spanprof.samples.unknown", "spanprof.samples.boundary"};
    uint64_t samples = 0,
             period = profile->message->period > 0 ? (uint64_t)profile->message->period : 0, ns;
    for (size_t i = 0; i < SP_ARRAY_LENGTH(keys); i++)
        sp_sum_add(&samples, sp_model_profile_number(profile, keys[i]));
    return __builtin_mul_overflow(samples, period, &ns) ? UINT64_MAX : ns;
}

uint64_t sp_model_unattributed_ns(const sp_model *model, uint32_t type, const sp_model_span *span)
{
    uint64_t unattributed = 0, sampled = 0;
    for (size_t i = 0; i < model->profile_count; i++) {
        const sp_model_profile *profile = &model->profiles[i];
        if (profile->type != type || (span && !is_of_span(profile, span)))
            continue;
        sp_sum_add(&unattributed, sp_model_profile_number(profile, "spanprof.unattributed_ns"));
        sp_sum_add(&sampled, sampled_ns(profile));
    }
    return unattributed > sampled / (MUCH_OF - 1) ? unattributed : 0;
}
