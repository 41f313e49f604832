/* SPDX-License-Identifier: Apache-2.0 */
/* Scopes that were not detached: a thread goes on under a span that it has ended. A thread that
 * attaches something below finds it out by itself (src/context/context.c); one that only works, or
 * waits for its next job, is found here. Threads: the collector. */
#ifndef SP_COLLECT_FORGOTTEN_H
#define SP_COLLECT_FORGOTTEN_H

#include <stdint.h>

#include "context/thread.h"

/* For so long a thread may bear a span after its end. */
#define SP_FORGOTTEN_AFTER_NS UINT64_C(1000000000)

/* What was seen of a thread. Zero-initialised: nothing. */
typedef struct sp_forgotten {
    uint64_t switch_number; /* with which it bore an ended span */
    uint64_t since_ns;      /* monotonic; 0: it bears none */
} sp_forgotten;

/* Look at THREAD. True, once for each scope, when it has borne the same ended span without a switch
 * for SP_FORGOTTEN_AFTER_NS. */
bool sp_forgotten_look(sp_forgotten *seen, sp_thread *thread, uint64_t now_ns);

/* Count it, and say it once. NAME and TID are the thread's. */
void sp_forgotten_note(const char *name, int tid);

#endif
