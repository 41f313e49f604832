/* SPDX-License-Identifier: Apache-2.0 */
/* Draining: moves the records of the rings, joined, into a window, and the threads' counters into
 * totals. Collector thread only. */
#ifndef SP_COLLECT_DRAIN_H
#define SP_COLLECT_DRAIN_H

#include "collect/attribute_filter.h"
#include "collect/aggregate.h"
#include "collect/forgotten.h"
#include "cpu/cpu_engine.h"
#include "collect/live_blocks.h"
#include "trace/live_spans.h"
#include "wall/wall.h"

/* The collector's data about one slot. Zeroed when the slot gets a new thread. */
typedef struct sp_drain_slot {
    uint32_t generation; /* of the slot */
    sp_join join;
    uint8_t *attributes; /* of the join's interval, filtered; NULL: no interval had any */
    uint32_t attribute_bytes;
    sp_window_thread thread;
    sp_forgotten forgotten;
    bool name_is_fresh;                                                  /* read in this window */
    uint64_t ticks, weights, dropped, small_stack, cycles, costed_ticks; /* as last seen */
    uint64_t cpu_ns, weights_settled; /* at the last sp_drain_settle_unattributed */
    int64_t carry_ns;                 /* CPU time less weights, not yet reported */
} sp_drain_slot;

typedef struct sp_drain_totals {
    _Atomic uint64_t ticks, weights;
    _Atomic uint64_t linked, none, unknown;
    _Atomic uint64_t truncated, incomplete;
    _Atomic uint64_t dropped_ring_full, dropped_memory, dropped_small_stack;
    _Atomic uint64_t unattributed_ns;
    _Atomic uint64_t corrupt_rings;
    _Atomic uint64_t tick_cycles, costed_ticks; /* when that is measured */
    _Atomic uint64_t visits_linked, visits_none, visits_unknown, visits_dropped;
    _Atomic uint64_t calls_linked, calls_none, calls_unknown, calls_dropped;
    _Atomic uint64_t live_blocks, live_full; /* as of the last window's end */
} sp_drain_totals;

typedef struct sp_drain {
    sp_drain_slot *slots[SP_THREADS_MAX / 256]; /* pages of 256, made when needed */
    sp_drain_totals totals;
    sp_attribute_filter filter;
    sp_join_default fallback;           /* as of the last drain */
    uint64_t cpu_last_ns, weights_last; /* at the last sp_drain_settle_unattributed */
    int64_t unattributed_carry_ns;      /* below 0: the weights are ahead of the clock */
    sp_wall_state wall;                 /* as last seen */
    bool without_ticks;                 /* no CPU time is accounted for */
    bool with_alloc, with_heap;
    bool with_locks;     /* waits keep their lock, because a destination has attributes of waits */
    bool calls_are_many; /* the last drain found a ring a quarter full: the next should be soon */
    sp_live_blocks live;
    sp_live_spans live_spans;
    uint64_t calls_lost, live_full; /* as last seen */
} sp_drain;

/* drain.c: the data about THREAD's slot; NULL when memory is short. */
sp_drain_slot *sp_drain_slot_of(sp_drain *drain, const sp_thread *thread);
/* drain.c: read the name of the slot's thread. */
void sp_drain_refresh_name(sp_drain_slot *slot);

/* Move all records that are in the rings now into WINDOW, and refresh MODULES so that they are at
 * least as new as these records. Frees the slots of threads that are gone. */
void sp_drain_run(sp_drain *drain, sp_window *window, sp_modules *modules, uint32_t max_samples);

/* Called once, before the first drain: CPU time counts from here on. */
void sp_drain_begin(sp_drain *drain);

/* At a window's end, before its period changes: read the CPU clocks, and set
 * window->unattributed_ns to the CPU time that is in no weight, and window->unattributed_threads to
 * the threads with the most of it. */
void sp_drain_settle_unattributed(sp_drain *drain, sp_window *window);

/* At a window's end, after the last drain: put the visits that the wall profiler has not put into
 * its ring into WINDOW, with its counts. */
void sp_drain_settle_wall(sp_drain *drain, sp_window *window, sp_modules *modules,
                          uint32_t max_samples);

/* At a window's end, after the last drain: put the live blocks, and the counts of lost calls, into
 * WINDOW. */
void sp_drain_settle_calls(sp_drain *drain, sp_window *window, uint32_t max_samples);

/* How far the process's clock is ahead of the weights now, counted from the last
 * sp_drain_settle_unattributed. */
int64_t sp_drain_ahead_ns(const sp_drain *drain);

/* The oldest generation that a tick under way, or one that begins before the drain, may be using.
 * Call it before sp_drain_run; when that has returned, older generations can be freed. */
uint32_t sp_drain_oldest_generation(const sp_modules *modules);

void sp_drain_deinit(sp_drain *drain);

#endif
