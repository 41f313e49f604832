/* SPDX-License-Identifier: Apache-2.0 */
/* Makes a sample of each tick or visit of another process's thread: its stack, with the unwind
 * tables of that process's modules, and its span, from its OTEP 4947 record. docs/design/attach.md.
 *
 * Threads: one at a time.  Signals: not safe. */
#ifndef SP_ATTACH_OBSERVER_H
#define SP_ATTACH_OBSERVER_H

#include "attach/samples.h"
#include "attach/target.h"
#include "attach/ticks.h"
#include "outside/outside.h"
#include "unwind/outside_walk.h"

typedef struct sp_attach_observer {
    const sp_attach_target *target;
    sp_attach_samples *samples;
    sp_modules *modules;
    sp_outside_process *outside;
    sp_stack_copy *copy;
    sp_join_default of_process; /* result and link of samples without a context */
    bool modules_are_old;
    uint64_t refreshed_ns;   /* monotonic */
    uint64_t stop_ns, stops; /* how long, and how often, threads were stopped */
    uint64_t longest_stop_ns;
    uint64_t pcs[SP_ATTACH_DEPTH];
} sp_attach_observer;

/* TARGET is borrowed. False: memory is short, or the process has ended. */
bool sp_attach_observer_init(sp_attach_observer *observer, const sp_attach_target *target);
void sp_attach_observer_deinit(sp_attach_observer *observer);

/* Whether the process publishes contexts of its threads. */
bool sp_attach_observer_has_records(const sp_attach_observer *observer);
/* Read again what the process has mapped, when a second has passed or it is known to have changed.
 */
void sp_attach_observer_refresh(sp_attach_observer *observer);

/* Add a sample for TICK, with its own stack, or by a look at the thread. */
void sp_attach_observer_tick(sp_attach_observer *observer, const sp_attach_tick *tick);
/* Visit all threads, and add a sample of PERIOD_NS for each that waits. */
void sp_attach_observer_visit(sp_attach_observer *observer, uint64_t period_ns);

/* For observer.c and visits.c: begin a walk with the current tables; set result and link of SAMPLE
 * from RESULT and CONTEXT, which were read at its moment. */
sp_walk sp_attach_observer_begin_walk(sp_attach_observer *observer);
void sp_attach_observer_link(const sp_attach_observer *observer, sp_outside_result result,
                             const sp_outside_context *context, sp_attach_sample *sample);

#endif
