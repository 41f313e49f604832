/* SPDX-License-Identifier: Apache-2.0 */
#include "sdk/discovery.h"

#include "core/clock.h"
#include "thread/thread.h"

/* A scan may take one part in SHARE of the collector's time: with thousands of threads that come and go it waits longer. */
enum { SHARE = 200 };
#define UNSEEN_NS   (20 * (int64_t)SP_NS_PER_MS)
#define PATIENCE_NS SP_NS_PER_S

static bool has_reason(const sp_discovery *discovery, uint64_t waited_ns, int64_t ahead_ns)
{
    if (waited_ns < SHARE * discovery->scan_took_ns)
        return false;
    return waited_ns >= PATIENCE_NS || ahead_ns - discovery->ahead_ns >= UNSEEN_NS ||
           sp_threads_number_changed();
}

bool sp_discovery_look(sp_discovery *discovery, int64_t ahead_ns)
{
    uint64_t before = sp_clock_monotonic_ns();
    if (!has_reason(discovery, before - discovery->scanned_at_ns, ahead_ns)) {
        if (ahead_ns < discovery->ahead_ns) /* the weights have caught up */
            discovery->ahead_ns = ahead_ns;
        return false;
    }
    sp_threads_scan();
    discovery->scanned_at_ns = sp_clock_monotonic_ns();
    discovery->scan_took_ns = discovery->scanned_at_ns - before;
    discovery->ahead_ns = ahead_ns;
    return true;
}
