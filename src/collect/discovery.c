/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/discovery.h"

#include <errno.h>

#include "context/thread.h"
#include "core/clock.h"
#include "core/log.h"

/* Work that takes time for each thread may use one part in SHARE of a core: with thousands of
 * threads it is done less often. It is measured in CPU time: on a busy machine a scan that loses
 * its core for 100 ms would otherwise delay the next one by 20 s. */
enum { SHARE = 200 };
#define UNSEEN_NS   (20 * (int64_t)SP_NS_PER_MS)
#define PATIENCE_NS SP_NS_PER_S
#define CHECK_NS    (30 * SP_NS_PER_MS) /* between two checks at least */

/* Whether CPU time has passed since the last scan that no thread's ticks account for. The kernel
 * adds the process's clock up from all threads. */
static bool has_unseen_time(sp_discovery *discovery, const sp_drain *drain, uint64_t now)
{
    if (now - discovery->asked_at_ns < SHARE * discovery->asking_took_ns)
        return false;
    uint64_t cpu_before = sp_clock_own_cpu_ns();
    int64_t ahead_ns = sp_drain_ahead_ns(drain);
    discovery->asked_at_ns = now;
    discovery->asking_took_ns = sp_clock_own_cpu_ns() - cpu_before;
    if (ahead_ns < discovery->ahead_ns) /* the weights have caught up */
        discovery->ahead_ns = ahead_ns;
    if (ahead_ns - discovery->ahead_ns < UNSEEN_NS)
        return false;
    discovery->ahead_ns = ahead_ns;
    return true;
}

static bool has_reason(sp_discovery *discovery, const sp_drain *drain, uint64_t now)
{
    uint64_t waited_ns = now - discovery->scanned_at_ns;
    if (waited_ns < SHARE * discovery->scan_took_ns)
        return false;
    return waited_ns >= PATIENCE_NS || sp_threads_have_changed() ||
           has_unseen_time(discovery, drain, now);
}

/* A lack of descriptors is temporary, so it is not reported. */
static void warn_unreadable(sp_discovery *discovery, int error)
{
    if (discovery->warned_unreadable || error == EMFILE || error == ENFILE)
        return;
    discovery->warned_unreadable = true;
    sp_log_warn("engine", "/proc/self/task cannot be read: only threads that attach are sampled");
}

bool sp_discovery_is_due(sp_discovery *discovery, const sp_drain *drain)
{
    uint64_t now = sp_clock_monotonic_ns();
    if (now - discovery->checked_at_ns < CHECK_NS)
        return false;
    discovery->checked_at_ns = now;
    return has_reason(discovery, drain, now);
}

void sp_discovery_scan(sp_discovery *discovery)
{
    uint64_t cpu_before = sp_clock_own_cpu_ns();
    if (!sp_threads_scan())
        warn_unreadable(discovery, errno);
    discovery->scanned_at_ns = sp_clock_monotonic_ns();
    discovery->scan_took_ns = sp_clock_own_cpu_ns() - cpu_before;
}
