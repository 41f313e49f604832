/* SPDX-License-Identifier: Apache-2.0 */
/* Finds scopes that were not detached: a thread continues under a span that it has ended. A thread
 * that attaches another context detects this itself (src/context/context.c); a thread that only
 * works, or waits for its next job, is found here. Threads: the collector. */
#ifndef SP_COLLECT_FORGOTTEN_H
#define SP_COLLECT_FORGOTTEN_H

#include <stdint.h>

#include "context/thread.h"

/* How long an ended span may stay active on a thread. */
#define SP_FORGOTTEN_AFTER_NS UINT64_C(1000000000)

/* The state of a thread's check. Zero-initialised: not checked yet. */
typedef struct sp_forgotten {
    uint64_t switch_number; /* with which an ended span was active */
    uint64_t since_ns;      /* monotonic; 0: no ended span is active */
} sp_forgotten;

/* Check THREAD. True, once for each scope, when the same ended span has been active without a
 * switch for SP_FORGOTTEN_AFTER_NS. */
bool sp_forgotten_look(sp_forgotten *seen, sp_thread *thread, uint64_t now_ns);

/* Count a scope that was not detached, and warn about the first. NAME and TID are the thread's. */
void sp_forgotten_note(const char *name, int tid);

#endif
