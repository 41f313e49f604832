/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/sampling.h"

#include <stdatomic.h>

#include "core/log.h"
#include "core/word.h"
#include "trace/propagators.h"
#include "trace/struct_read.h"

/* The nesting is limited, because a sampler that is its own root nests without end. */
enum { DEPTH_MAX = 16 };

/* --- from samplers to rules ------------------------------------------------------------------- */

uint64_t sp_sampling_threshold(double ratio)
{
    if (!(ratio > 0)) /* also NaN */
        return SP_SAMPLING_NEVER;
    if (ratio >= 1)
        return SP_SAMPLING_ALWAYS;
    /* Multiplying by a power of two loses nothing; what is cut off is below 2^-56. */
    return SP_SAMPLING_NEVER - (uint64_t)(ratio * (double)SP_SAMPLING_NEVER);
}

static const char *make_rule(sp_sampling_rule *rule, const spanprof_sampler *sampler,
                             sp_sampling_parent parent, int depth);

/* Set RULE to that of the sampler that the parent-based SAMPLER has for PARENT. Returns as
 * make_rule does. */
static const char *make_branch(sp_sampling_rule *rule, const spanprof_sampler *sampler,
                               sp_sampling_parent parent, int depth)
{
    const spanprof_sampler *const branches[SP_PARENTS] = {
        [SP_PARENT_NONE] = sampler->root,
        [SP_PARENT_LOCAL_NOT_SAMPLED] = sampler->local_not_sampled,
        [SP_PARENT_LOCAL_SAMPLED] = sampler->local_sampled,
        [SP_PARENT_REMOTE_NOT_SAMPLED] = sampler->remote_not_sampled,
        [SP_PARENT_REMOTE_SAMPLED] = sampler->remote_sampled,
    };
    if (branches[parent])
        return make_rule(rule, branches[parent], parent, depth + 1);
    bool is_off = parent == SP_PARENT_LOCAL_NOT_SAMPLED || parent == SP_PARENT_REMOTE_NOT_SAMPLED;
    *rule = (sp_sampling_rule){.threshold = is_off ? SP_SAMPLING_NEVER : SP_SAMPLING_ALWAYS};
    return NULL;
}

/* Set RULE to what SAMPLER decides for spans with this kind of PARENT. Returns why SAMPLER cannot
 * be used, or NULL. */
static const char *make_rule(sp_sampling_rule *rule, const spanprof_sampler *sampler,
                             sp_sampling_parent parent, int depth)
{
    spanprof_sampler known;
    if (depth == DEPTH_MAX)
        return "samplers are nested more than 16 deep";
    if (!SP_STRUCT_READ(&known, sampler, "spanprof_sampler"))
        return "its struct_size is 0: use SPANPROF_SAMPLER_INIT";
    *rule = (sp_sampling_rule){.threshold = SP_SAMPLING_ALWAYS};
    switch (known.kind) {
    case SPANPROF_SAMPLER_PARENT_BASED:
        return make_branch(rule, &known, parent, depth);
    case SPANPROF_SAMPLER_ALWAYS_ON:
        return NULL;
    case SPANPROF_SAMPLER_ALWAYS_OFF:
        rule->threshold = SP_SAMPLING_NEVER;
        return NULL;
    case SPANPROF_SAMPLER_TRACE_ID_RATIO:
        rule->threshold = sp_sampling_threshold(known.ratio);
        return known.ratio >= 0 && known.ratio <= 1 ? NULL : "a ratio is not from 0 to 1";
    case SPANPROF_SAMPLER_CALLBACK:
        rule->function = known.function;
        rule->user = known.user;
        return known.function ? NULL : "a callback has no function";
    }
    return "there is no sampler of its kind";
}

/* Whether a span's start has to call sp_sampling_ask: for a callback, or for a share of traces
 * whose ids another process made. */
static bool has_to_ask(const sp_sampling_rule *rule, sp_sampling_parent parent)
{
    bool is_share = rule->threshold != SP_SAMPLING_ALWAYS && rule->threshold != SP_SAMPLING_NEVER;
    return rule->function || (is_share && parent != SP_PARENT_NONE);
}

void sp_sampling_init(sp_sampling *sampling, const spanprof_sampler *sampler)
{
    static const spanprof_sampler fallback = SPANPROF_SAMPLER_INIT;
    const char *problem = NULL;
    for (int i = 0; i < SP_PARENTS && !problem; i++) {
        sp_sampling_rule *rule = &sampling->rules[i];
        problem = make_rule(rule, sampler ? sampler : &fallback, (sp_sampling_parent)i, 0);
        sampling->thresholds[i] =
            has_to_ask(rule, (sp_sampling_parent)i) ? SP_SAMPLING_ASK : rule->threshold;
    }
    if (!problem)
        return;
    sp_log_warn("tracer", "the sampler cannot be used, %s: using parentbased_always_on", problem);
    sp_sampling_init(sampling, NULL);
}

/* --- at a span's start ------------------------------------------------------------------------ */

/* The specification presumes that ids are random, and demands a warning when the maker of the ids
 * did not confirm it. */
static void warn_of_unconfirmed_ids(void)
{
    static _Atomic bool warned;
    if (!atomic_exchange_explicit(&warned, true, memory_order_relaxed))
        sp_log_warn("tracer", "the sampler traceidratio presumes that trace ids are random, and a "
                              "caller did not set the random flag of W3C trace context level 2 to "
                              "confirm it: where its ids are not, the share of spans is another");
}

/* The second half of a trace id, as a word in memory order. */
static uint64_t second_half(const uint8_t trace_id[16])
{
    return sp_word_load(trace_id, 1);
}

static spanprof_sampling_decision decide_by_ratio(const sp_sampling_rule *rule,
                                                  const spanprof_sampling_request *request)
{
    if (!(request->parent->trace_flags & SPANPROF_TRACE_FLAG_RANDOM))
        warn_of_unconfirmed_ids();
    return sp_sampling_takes(rule->threshold, second_half(request->trace_id))
               ? SPANPROF_SAMPLING_RECORD_AND_SAMPLE
               : SPANPROF_SAMPLING_DROP;
}

static void warn_of_trace_state(void)
{
    static _Atomic bool warned;
    if (!atomic_exchange_explicit(&warned, true, memory_order_relaxed))
        sp_log_warn("tracer", "the sampler's callback gave a tracestate that is not valid: the "
                              "parent's stays");
}

/* Set CARRIER to an entry with the tracestate TEXT and the rest of OLD. If TEXT is not valid, log
 * that and keep CARRIER. */
static void replace_trace_state(spanprof_carrier *carrier, const char *text, const sp_carried *old)
{
    sp_trace_state state = {0};
    sp_trace_state_read(&state, text, strlen(text));
    bool is_valid = !state.invalid && !state.text.failed;
    sp_trace_state_finish(&state);
    sp_carried fresh = *old;
    fresh.trace_state = state.text.length ? (const char *)state.text.data : "";
    fresh.trace_state_length = (uint32_t)state.text.length;
    if (is_valid)
        *carrier = sp_carrier_put(&fresh);
    else
        warn_of_trace_state();
    sp_buffer_deinit(&state.text);
}

spanprof_sampling_decision sp_sampling_ask(const sp_sampling_rule *rule,
                                           spanprof_sampling_request *request,
                                           spanprof_sampling_result *result,
                                           spanprof_carrier *carrier)
{
    *result = (spanprof_sampling_result){.struct_size = sizeof *result};
    if (!rule->function)
        return decide_by_ratio(rule, request);
    const spanprof_carrier given = *carrier;
    const sp_carried *pinned = sp_carrier_pin(given);
    const sp_carried *carried = pinned ? pinned : &sp_carried_nothing;
    request->trace_state = carried->trace_state;
    spanprof_sampling_decision decision = rule->function(request, result, rule->user);
    if (result->trace_state && strcmp(result->trace_state, carried->trace_state) != 0)
        replace_trace_state(carrier, result->trace_state, carried);
    if (pinned)
        sp_carrier_unpin(given);
    return decision;
}

bool spanprof_ratio_samples(double ratio, const uint8_t trace_id[16])
{
    return sp_sampling_takes(sp_sampling_threshold(ratio), second_half(trace_id));
}
