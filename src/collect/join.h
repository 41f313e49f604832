/* SPDX-License-Identifier: Apache-2.0 */
/* The join: which span a sample belongs to. It needs no clock: a tick stamps its sample with the
 * thread's switch number, and the ring holds the interval with that number before it. One sp_join
 * per thread, kept across windows. Collector thread only. docs/design/span-context.md has the
 * reasons. */
#ifndef SP_COLLECT_JOIN_H
#define SP_COLLECT_JOIN_H

#include "context/ring_sig.h"
#include "profile/window.h"

typedef enum sp_join_result {
    SP_JOIN_LINKED = 0,
    SP_JOIN_NONE = 1,    /* no span, an unsampled one, or a remote one */
    SP_JOIN_UNKNOWN = 2, /* the context is not certain: docs/design/words.md has all causes */
} sp_join_result;

/* The last interval of a thread. Zero-initialised: none yet (number 0 is never recorded). */
typedef struct sp_join {
    uint64_t number;
    bool is_bare;          /* there is no context: the default context applies */
    sp_join_result result; /* LINKED or NONE */
    sp_window_link link;   /* zero unless LINKED */
} sp_join;

/* The default context (spanprof_context_set_default), for samples of threads that have no context.
 */
typedef struct sp_join_default {
    sp_join_result result; /* LINKED or NONE */
    sp_window_link link;   /* zero unless LINKED */
} sp_join_default;

void sp_join_default_refresh(sp_join_default *fallback);

/* Set JOIN to INTERVAL, the next one of its thread. */
void sp_join_interval(sp_join *join, const sp_interval_record *interval);
/* The result for SAMPLE; *LINK is its link when LINKED, else all zero. */
sp_join_result sp_join_sample(const sp_join *join, const sp_join_default *fallback,
                              const sp_sample_record *sample, sp_window_link *link);

#endif
