/* SPDX-License-Identifier: Apache-2.0 */
/* What travels with a context and does not fit into it: tracestate, baggage, and the attributes of
 * samples, in a bounded table (docs/design/propagation.md).
 *
 * A context names an entry by {slot, generation}. Entries never change; equal contents usually
 * share one entry. Contexts are never released, so an entry lives until its slot is needed: the
 * entry that was put longest ago is evicted first. While an entry is pinned it stays; live spans
 * pin theirs. The handle of an entry that is gone finds nothing, never another entry.
 *
 * | operation                  | threads                              | lock          |
 * | sp_carrier_put             | any thread                           | yes, short    |
 * | sp_carrier_pin, _unpin     | any thread                           | none          |
 * | sp_carrier_counters_get    | any thread                           | yes, short    |
 *
 * Fork: the child keeps all entries, because it has the contexts, and no pins, because it has no
 * spans. The table registers its own fork handlers. */
#ifndef SP_TRACE_CARRIER_H
#define SP_TRACE_CARRIER_H

#include <stdbool.h>
#include <stdint.h>

#include <spanprof/context.h>

enum {
    SP_CARRIER_SLOTS = 16384,
    SP_CARRIER_BYTES_MAX = 16 << 20 /* of all entries together */
};

/* Both texts have the form of their header; they are never NULL, and "" for none. The attributes
 * are encoded as in the record of OTEP 4947 (context/thread.h), in the order of their key
 * numbers. */
typedef struct sp_carried {
    const char *trace_state;
    const char *baggage;
    uint32_t trace_state_length;
    uint32_t baggage_length;
    uint32_t attributes_length;
    const uint8_t *attributes;
} sp_carried;

extern const sp_carried sp_carried_nothing;

/* Put a copy of CARRIED into the table and return its handle. Returns the zero handle when CARRIED
 * is empty. It also returns the zero handle, and counts the text as dropped, when memory is short
 * or all entries that could make room are pinned. */
spanprof_carrier sp_carrier_put(const sp_carried *carried);

/* The entry of CARRIER, which stays until sp_carrier_unpin; NULL when it is gone, or for the zero
 * handle. */
const sp_carried *sp_carrier_pin(spanprof_carrier carrier);
/* The same entry again, for a caller that has pinned it. */
const sp_carried *sp_carrier_pinned(spanprof_carrier carrier);
/* CARRIER was pinned by sp_carrier_pin, which did not return NULL. */
void sp_carrier_unpin(spanprof_carrier carrier);

/* Count texts that were lost before sp_carrier_put was called. */
void sp_carrier_count_dropped(void);

static inline bool sp_carried_is_nothing(const sp_carried *carried)
{
    return !(carried->trace_state_length | carried->baggage_length | carried->attributes_length);
}

static inline bool sp_carrier_is_zero(spanprof_carrier carrier)
{
    return carrier.slot == 0;
}

/* Counted since the process began, except entries and bytes, which are the current numbers. */
typedef struct sp_carrier_counters {
    uint64_t entries;
    uint64_t bytes;
    uint64_t evicted; /* entries that made room */
    uint64_t dropped; /* texts that found no memory or no room */
} sp_carrier_counters;

void sp_carrier_counters_get(sp_carrier_counters *out);

#endif
