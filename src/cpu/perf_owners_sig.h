/* SPDX-License-Identifier: Apache-2.0 */
/* The owner of a perf event's signal. The signal carries only the event's descriptor (si_fd), so a
 * fixed table has the owner by descriptor; NULL when the descriptor is not, or no longer, one of
 * this engine (another copy of the SDK, or the host, may use its number). Mapped at the first
 * start, never unmapped. Threads: written under the engine's lock. Signals: safe to read. */
#ifndef SP_CPU_PERF_OWNERS_SIG_H
#define SP_CPU_PERF_OWNERS_SIG_H

#include "core/atomic.h"
#include "core/compiler.h"

/* Descriptors above it are not used. */
enum { SP_PERF_DESCRIPTORS = 65536 };

extern _Atomic(void *) *sp_perf_owners;

SP_SIGSAFE static inline void *sp_perf_owner(int fd)
{
    if (!sp_perf_owners || fd < 0 || fd >= SP_PERF_DESCRIPTORS)
        return NULL;
    return sp_load_acquire(&sp_perf_owners[fd]); /* pairs with open_event: the owner is ready */
}

#endif
