/* SPDX-License-Identifier: Apache-2.0 */
/* The wall profiler: a thread of the SDK that visits the application's threads (visit.h) and
 * records what they wait for, with weights. It sends no signal, so no system call of the
 * application ends early. See docs/design/wall.md.
 *
 * | operation                     | setup | wall thread | collector | any thread |
 * | start, stop, free             |  yes  |             |           |            |
 * | push to the ring              |       |     yes     |           |            |
 * | pop from the ring             |       |             |    yes    |            |
 * | settle, held_generation       |       |             |    yes    |            |
 * | state_get                     |       |             |           |    yes     |
 *
 * Signals: not safe; the thread blocks all signals. */
#ifndef SP_WALL_WALL_H
#define SP_WALL_WALL_H

#include "context/thread.h"
#include "unwind/module.h"
#include "wall/visit.h"

enum { SP_WALL_HZ_MAX = 1000, SP_WALL_REASON_SIZE = 192 };

typedef struct sp_wall_config {
    uint32_t hz;          /* visits a second of each thread, 1 to SP_WALL_HZ_MAX */
    uint32_t max_depth;   /* 2 to 512 */
    bool all_threads;     /* not only those with a sampled span of this process */
    bool with_attributes; /* intervals have those of their contexts */
    const sp_modules *modules;
} sp_wall_config;

/* Start the thread. False when it cannot work here; the reason is logged in one warning, and is in
 * the state. */
bool sp_wall_start(const sp_wall_config *config);
/* End the thread. Its visits stay until they are settled. A second call does nothing. */
void sp_wall_stop(void);
/* Free the memory of a stopped profiler. */
void sp_wall_free(void);

/* No visits between pause and resume. */
void sp_wall_pause(void);
void sp_wall_resume(void);
/* From the next visit on, which weighs a period of HZ. */
void sp_wall_set_rate(uint32_t hz);

/* The ring with visits (SP_RECORD_VISIT) of threads that have continued since. */
sp_ring *sp_wall_ring(void);

/* Pass each thread's visits that are not in the ring yet to TAKE, which borrows the record for the
 * call. A thread that still waits at the same place starts again from weight 0. A place that was
 * read under a generation other than NEWEST is not reused: the next visit reads it again. */
typedef void sp_wall_taker(void *user, const sp_visit_record *visit);
void sp_wall_settle(sp_wall_taker *take, void *user, uint32_t newest);
/* The same for one slot, whose thread has ended and which is about to be freed. */
void sp_wall_settle_slot(uint32_t slot, sp_wall_taker *take, void *user, uint32_t newest);
/* The least number of a generation that visits which are not in the ring may refer to; UINT32_MAX:
 * none. */
uint32_t sp_wall_held_generation(void);

typedef struct sp_wall_state {
    bool running;
    uint32_t hz;
    uint64_t visits;     /* of threads that waited, those unmoved included */
    uint64_t on_core_ns; /* weight of the visits that found their thread on a core */
    uint64_t unmoved;    /* of the visits: those that found the thread's clock unchanged */
    uint64_t discarded;  /* attempts after which the thread had run */
    uint64_t failed;     /* threads that could not be visited */
    uint64_t dropped;    /* visits for which ring or memory had no room */
    uint64_t cpu_ns;     /* CPU time of the wall profiler's thread */
    sp_fp_counts fp;
    char reason[SP_WALL_REASON_SIZE]; /* why not running; "" */
} sp_wall_state;

void sp_wall_state_get(sp_wall_state *out);

/* Fork: the child has no such thread. */
void sp_wall_fork_prepare(void);
void sp_wall_fork_parent(void);
void sp_wall_fork_child(void);

#endif
