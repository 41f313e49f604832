/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the collector share: the state of one run, and the functions that they call in
 * each other. collector.c has the loop and the window's end, window_export.c brings a window to a
 * destination, losses.c warns the user about losses. Collector thread. */
#ifndef SP_COLLECT_COLLECTOR_RUN_H
#define SP_COLLECT_COLLECTOR_RUN_H

#include "collect/budget.h"
#include "collect/collector.h"
#include "collect/discovery.h"
#include "collect/drain.h"
#include "collect/misuse.h"
#include "collect/pull_window.h"
#include "core/steal.h"
#include "core/worker.h"
#include "symbol/symbolizer.h"

enum { SP_DRAIN_MS = 40, SP_NAME_AHEAD_MS = 250, SP_DESTINATIONS_MAX = 4 };

struct sp_collector {
    sp_collector_config config;

    /* Its lock guards the members up to the windows; it is taken before the engine's and the
     * registry's lock. A wake ends the window. */
    sp_worker worker;
    uint32_t requested_hz, requested_wall_hz;
    bool keep_modules; /* ticks may still read the modules when the collector ends */

    /* Only the thread uses the members from here on, except the atomic ones. */
    sp_window windows[2];
    uint32_t open;           /* the window that fills */
    uint32_t wall_hz;        /* of the open window */
    uint64_t window_ends_ns; /* monotonic */
    uint64_t drained_at_ns;  /* monotonic */
    uint64_t followed_at_ns; /* monotonic */
    uint64_t last_edge_ns;   /* realtime, before the last drain */
    sp_discovery discovery;
    sp_budget budget;
    sp_engine_state engine; /* as of the last window's end; windows borrow strings from it */
    uint64_t unattributed_unreported_ns; /* of windows without samples, which are not sent */
    sp_drain drain;
    sp_steal steal;
    _Atomic uint64_t handed_over; /* ticks in windows that are closed */
    uint64_t spans_lost;          /* as last reported, of the tracer */
    sp_window_misuse misuse;      /* as last reported */
    bool said_no_ticks, said_replaced, said_repaired, said_ring_full, said_corrupt;
    bool exiting;           /* the application's threads have all ended */
    bool first_is_over;     /* the first window has names; the next three are about it */
    uint32_t named_ahead;   /* so many of its locations have names */
    uint64_t names_due_ns;  /* when the others are named; monotonic */
    uint64_t names_wait_ms; /* the last pause between two times */
    sp_symbolizer *symbolizer;
    sp_profile_destination destinations[SP_DESTINATIONS_MAX];
    size_t destination_count;
    sp_pull_windows pulled;
};

static inline bool sp_collector_is_abandoned(const sp_collector *collector)
{
    return sp_worker_is_abandoned(&collector->worker);
}

/* collector.c: long work calls these between its pieces, because rings fill meanwhile. */
void sp_collector_drain_if_due(sp_collector *collector);
void sp_collector_drain_meanwhile(void *collector);

/* window_export.c */

/* Put every address's name into the symbolizer's cache, so that building does not wait. */
void sp_collector_name(sp_collector *collector, const sp_window *window);
/* Name addresses while the first window fills. Otherwise a short program would wait at its end
 * until the files of all its libraries are read. Later windows have few new addresses. */
void sp_collector_name_ahead(sp_collector *collector);
/* Build, encode and submit WINDOW for DESTINATION, which has number INDEX. */
void sp_collector_export(sp_collector *collector, const sp_window *window, size_t index,
                         const sp_profile_destination *destination);

/* losses.c */

/* Warn when the host has replaced our signal handler, or closed descriptors that it did not open.
 */
void sp_collector_check_engine(sp_collector *collector, const sp_window *window);
void sp_collector_warn_of_corruption(sp_collector *collector);
/* Warn about each kind of loss once; about losses of spans again when there are more. */
void sp_collector_warn_of_losses(sp_collector *collector);

#endif
