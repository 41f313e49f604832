/* SPDX-License-Identifier: Apache-2.0 */
/* Times of spans cost one clock call each: CLOCK_MONOTONIC, plus the distance to CLOCK_REALTIME,
 * which is measured once a second. Both clocks are slewed alike, so the distance changes only when
 * the time is set; spans started up to a second later still use the old distance. A span's end is
 * its start plus monotonic time, so it never lies before it. */
#include "core/clock.h"
#include "trace/trace_internal.h"

static _Atomic uint64_t offset;
static _Atomic uint64_t refresh_at; /* CLOCK_MONOTONIC; 0: offset was never measured */

static uint64_t measure(uint64_t due)
{
    uint64_t before = sp_clock_monotonic_ns();
    uint64_t realtime = sp_clock_realtime_ns();
    uint64_t after = sp_clock_monotonic_ns();
    uint64_t fresh = realtime - (before + (after - before) / 2);
    sp_store_relaxed(&offset, fresh);
    /* Stored after the offset: a thread that reads the new refresh_at also reads an offset. Pairs
     * with the acquire below. */
    if (sp_load_relaxed(&refresh_at) == due)
        sp_store_release(&refresh_at, after + SP_NS_PER_S);
    return fresh;
}

uint64_t sp_span_clock_offset(uint64_t monotonic_ns)
{
    uint64_t due = sp_load_acquire(&refresh_at);
    if (SP_UNLIKELY(monotonic_ns >= due))
        return measure(due);
    return sp_load_relaxed(&offset);
}
