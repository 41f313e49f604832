/* SPDX-License-Identifier: Apache-2.0 */
/* One run of the engine: shared by engine.c (start, stop, fork), arming.c (a thread's ticker) and
 * pausing.c (rate, pause). Threads: under the lock, except members that say otherwise. Signals: not
 * safe.
 *
 * One lock serializes arming and disarming, and all that cpu_source.h does. Order: pausing, lock,
 * then the registry's. */
#ifndef SP_CPU_ENGINE_H
#define SP_CPU_ENGINE_H

#include "core/lock.h"
#include "cpu/cpu_engine.h"
#include "cpu/cpu_threads_sig.h"
#include "cpu/engine_choice.h"

typedef struct sp_engine_run {
    sp_lock lock;
    sp_lock pausing; /* held by start, stop, pause and resume for all that they do; before lock */
    bool running;
    uint32_t number; /* of the run; no two have the same */
    bool held;       /* the collector changes the rate */
    bool paused;     /* the application has paused ticks */
    bool forking;    /* mask_before_fork has to be restored */
    sigset_t mask_before_fork;
    sp_engine_config config;
    sp_engine_choice choice;
    uint64_t ring_bytes;
    int64_t excluded_cpu_ns; /* CPU time of the process in pauses; see exclude */
    bool logged_fallback;
    _Atomic uint64_t period_ns; /* read without the lock */
    uint64_t signal_cost_ns;
    uint32_t armed_threads, fallback_threads;
    uint64_t failed_threads;
} sp_engine_run;

extern sp_engine_run sp_run;

/* Whether a signal makes the ticks. */
static inline bool sp_run_has_signal(void)
{
    return !sp_run.config.synthetic && !sp_run.config.without_ticks;
}

/* --- engine.c --------------------------------------------------------------------------------- */

/* No tick may be under way, and the rings must have been drained. */
void sp_engine_set_rate(uint32_t cpu_hz);

/* --- arming.c --------------------------------------------------------------------------------- */

/* Make THREAD tick if the run samples it; else do nothing. */
void sp_arm_locked(sp_thread *thread);
void sp_disarm_locked(sp_thread *thread);
/* Free the ring of THREAD, which is not armed, if its size is not the run's, so that arming makes a
 * new one; a ring in use stays. Only the collector may call it, or start before there is one,
 * because the collector reads rings and frees the slots of ended threads. */
void sp_drop_misfit_ring_locked(sp_thread *thread);
/* Disarm all threads. The lock is given back for a while; when another run has started meanwhile,
 * its threads stay armed. Returns whether no tick of this run is under way. */
bool sp_disarm_all_locked(void);

/* Whether RUN (sp_engine_run_number) is the current run. An abandoned collector has the number of a
 * run that is over. */
static inline bool sp_run_is_current_locked(uint32_t run)
{
    return sp_run.running && sp_run.number == run;
}

static inline void sp_for_each_thread(void (*function)(sp_thread *))
{
    for (uint32_t slot = 0; slot < sp_thread_slots(); slot++)
        function(sp_thread_by_slot(slot));
}

#endif
