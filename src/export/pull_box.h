/* SPDX-License-Identifier: Apache-2.0 */
/* Connects the pull server's thread, which answers requests for profiles, with the collector, which
 * has the samples; there is one order at a time. Both threads may be abandoned and outlive their
 * run (docs/design/worker.md). So there is one box for the process, and each call passes a number:
 * a call with the number of an earlier run, or of an order that is over, has no effect.
 *
 * | operation                              | setup | server | collector |
 * |----------------------------------------|-------|--------|-----------|
 * | open, close, after_fork                |  yes  |        |           |
 * | begin, finish, take, cancel            |       |  yes   |           |
 * | window_ends, window_done               |       |        |    yes    |
 */
#ifndef SP_EXPORT_PULL_BOX_H
#define SP_EXPORT_PULL_BOX_H

#include "core/buffer.h"

typedef enum sp_pull_kind {
    SP_PULL_CPU = 0,
    SP_PULL_HEAP,
    SP_PULL_ALLOCATIONS,
    SP_PULL_CONTENTIONS,
    SP_PULL_WAITS,
    SP_PULL_KINDS
} sp_pull_kind;

enum { SP_PULL_MAX_BYTES = 64 << 20 };

/* What is wanted of a window. number 0: nothing. */
typedef struct sp_pull_order {
    uint64_t number;
    sp_pull_kind kind;
    bool is_last;
} sp_pull_order;

typedef enum sp_pull_state {
    SP_PULL_WAITING,
    SP_PULL_DONE,
    SP_PULL_FAILED, /* memory was short, or the run is over */
} sp_pull_state;

/* The SDK runs. END_WINDOW (USER) makes the collector end its window soon, and is called with the
 * box's lock held. Returns the run's number. */
uint32_t sp_pull_open(void (*end_window)(void *user), void *user);
/* From now on END_WINDOW is not called, and orders fail. */
void sp_pull_close(void);
/* In a forked child: close the box, whatever state it was in. */
void sp_pull_after_fork(void);

/* Order a profile of KIND. AT_ONCE: of the open window, which ends; else of all windows that begin
 * from now on, until sp_pull_finish. Returns the order's number, 0 when the box is closed. */
uint64_t sp_pull_begin(sp_pull_kind kind, bool at_once);
/* Make the open window the last one of the order. Call it again until the order is done, because it
 * has no effect while the window before the order has not ended. */
void sp_pull_finish(uint64_t number);
/* Returns the state of the order. With SP_PULL_DONE, OUT gets the pprof. With SP_PULL_DONE and
 * SP_PULL_FAILED the order is over. */
sp_pull_state sp_pull_take(uint64_t number, sp_buffer *out);
void sp_pull_cancel(uint64_t number);

/* Call it when a window of run RUN ends. Returns what is wanted of that window. */
sp_pull_order sp_pull_window_ends(uint32_t run);
/* Add PART, the pprof of a window for ORDER. PART->failed: the order fails. */
void sp_pull_window_done(const sp_pull_order *order, const sp_buffer *part);

#endif
