/* SPDX-License-Identifier: Apache-2.0 */
/* The decision whether a new span is recorded and sampled (include/spanprof/sampler.h;
 * docs/design/tracer.md, "Who is sampled").
 *
 * However samplers are nested, the rule for a span depends only on its parent: whether there is
 * one, whether it is remote, whether it is sampled. So a tree of samplers is flattened to five
 * rules when the tracer starts. A rule without a callback is a threshold on the 56 bits of a trace
 * id that W3C trace context says are random: a start reads one number and compares.
 *
 * Threads: sp_sampling_init at setup, everything else any. */
#ifndef SP_TRACE_SAMPLING_H
#define SP_TRACE_SAMPLING_H

#include <string.h>

#include <spanprof/sampler.h>
#include "core/compiler.h"

typedef enum sp_sampling_parent {
    SP_PARENT_NONE,
    SP_PARENT_LOCAL_NOT_SAMPLED,
    SP_PARENT_LOCAL_SAMPLED,
    SP_PARENT_REMOTE_NOT_SAMPLED,
    SP_PARENT_REMOTE_SAMPLED,
    SP_PARENTS
} sp_sampling_parent;

/* Thresholds. A trace is sampled when its 56 random bits are not below the threshold. */
#define SP_SAMPLING_ALWAYS UINT64_C(0)
#define SP_SAMPLING_NEVER  (UINT64_C(1) << 56)
/* No threshold: sp_sampling_ask decides. */
#define SP_SAMPLING_ASK UINT64_MAX

typedef struct sp_sampling_rule {
    spanprof_sampler_function function; /* NULL: threshold decides */
    void *user;
    uint64_t threshold;
} sp_sampling_rule;

/* thresholds[i] = SP_SAMPLING_ASK or rules[i].threshold */
typedef struct sp_sampling {
    uint64_t thresholds[SP_PARENTS];
    sp_sampling_rule rules[SP_PARENTS];
} sp_sampling;

/* Compute the rules of SAMPLER. NULL is parentbased_always_on. A SAMPLER that cannot be used is
 * replaced by it, with a warning. */
void sp_sampling_init(sp_sampling *sampling, const spanprof_sampler *sampler);

/* The threshold of the share RATIO of all traces. */
uint64_t sp_sampling_threshold(double ratio);

/* The decision of RULE when its threshold is SP_SAMPLING_ASK. The function sets REQUEST's
 * trace_state from CARRIER and fills in RESULT. It replaces CARRIER when the sampler has replaced
 * the tracestate. */
spanprof_sampling_decision sp_sampling_ask(const sp_sampling_rule *rule,
                                           spanprof_sampling_request *request,
                                           spanprof_sampling_result *result,
                                           spanprof_carrier *carrier);

/* PARENT is valid. */
static inline sp_sampling_parent sp_sampling_parent_of(const spanprof_context *parent)
{
    unsigned sampled = parent->trace_flags & SPANPROF_TRACE_FLAG_SAMPLED;
    return (sp_sampling_parent)(SP_PARENT_LOCAL_NOT_SAMPLED + sampled + 2 * (parent->remote != 0));
}

/* Whether THRESHOLD samples a trace. HALF is the second half of the trace id, in memory order. */
static inline bool sp_sampling_takes(uint64_t threshold, uint64_t half)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    half = __builtin_bswap64(half);
#endif
    return (half & (SP_SAMPLING_NEVER - 1)) >= threshold;
}

#endif
