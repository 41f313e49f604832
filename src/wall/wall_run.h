/* SPDX-License-Identifier: Apache-2.0 */
/* The state and the functions that the files of the wall profiler share. wall.c starts and stops
 * the thread, wall_rounds.c chooses the moments of rounds and the threads, wall_block.c decides
 * when new threads are taken, wall_visits.c visits one thread, wall_doubts.c decides about the
 * threads whose core the profiler took, wall_settle.c hands visits to the collector.
 *
 * sp_wall.lock is held for a visit, not for a round: fork and the collector wait for microseconds.
 * Order: the collector's lock before it, the registry's after. */
#ifndef SP_WALL_WALL_RUN_H
#define SP_WALL_WALL_RUN_H

#include "core/cells.h"
#include "core/lock.h"
#include "core/worker.h"
#include "wall/wall.h"
#include "wall/wall_block.h"
#include "wall/wall_places.h"

typedef struct sp_wall_round {
    uint64_t period_ns;
    uint64_t moment_ns; /* the chosen moment */
    uint64_t cells;     /* that it stands for: more than one when rounds were late */
} sp_wall_round;

/* A thread that has either waited since the round's moment, or had the core that the profiler took.
 */
typedef struct sp_doubtful {
    uint32_t slot;
    pid_t tid;
    uint64_t used_ns; /* CPU time since the previous visit */
    uint64_t weight_ns;
} sp_doubtful;

typedef struct sp_wall_run {
    sp_lock lock;
    sp_worker worker; /* a wake means that `paused` or the rate has changed */
    bool has_worker;
    bool paused;
    bool logged_failure;
    sp_wall_config config;
    sp_wall_state state;
    pid_t starter, tid;
    uint32_t held_generation; /* UINT32_MAX: none, also where no run ever was */

    /* Used by the profiler's thread only. */
    sp_visitor visitor;
    sp_visit visit;
    uint32_t newest;  /* generation at the begin of the round */
    uint64_t late_ns; /* from the round's moment to its begin */
    uint64_t random;
    sp_cells cells;
    double visit_cost_ns;
    uint32_t wanted; /* threads, in the last round */
    uint32_t rounds;
    bool found_gone; /* a visit of this round found that its thread has ended */
    sp_wall_block block;
    sp_doubtful *doubtful;
    uint32_t doubtful_count;

    sp_wall_places places;
    sp_ring ring;
} sp_wall_run;

extern sp_wall_run sp_wall;

/* wall_rounds.c: the thread's rounds, until it has to end. */
void sp_wall_run_rounds(void);

/* wall_visits.c, with the lock held. */

/* Visit the thread of SLOT. The visit stands for WEIGHT_NS. */
void sp_wall_visit_slot(uint32_t slot, uint64_t weight_ns);
/* Count a visit of WEIGHT_NS for the place's record. */
void sp_wall_weigh(sp_wall_place *place, uint64_t weight_ns);
/* Whether the place's record refers to another generation of modules. */
bool sp_wall_is_older(const sp_wall_place *place, uint32_t generation);

/* wall_doubts.c */

/* With the lock held: whether the thread may have had the profiler's core, which is resolved
 * later. */
bool sp_wall_is_doubtful(const sp_wall_place *place);
/* Resolve the doubts after the visits of ROUND. Called without the lock. */
void sp_wall_resolve_doubts(const sp_wall_round *round);

#endif
