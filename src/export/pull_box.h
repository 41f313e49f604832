/* SPDX-License-Identifier: Apache-2.0 */
/* Between the thread that answers those who pull profiles, and the collector, which has the
 * samples: one order at a time. Both sides may be abandoned and outlive their run
 * (docs/design/worker.md), so the box is the process's, and each side comes with a number: that of
 * an earlier run, or of an order that is over, finds nothing.
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
/* In a forked child: closed, and nothing is held. */
void sp_pull_after_fork(void);

/* Order KIND: AT_ONCE the window that is open, which ends; else all windows from now on, until
 * finish. Returns the order's number, 0 when the box is closed. */
uint64_t sp_pull_begin(sp_pull_kind kind, bool at_once);
/* The window that is open is the last one. To be called until the order is done, for a window may
 * just be ending. */
void sp_pull_finish(uint64_t number);
/* The pprof goes to OUT when it is SP_PULL_DONE; then, and when it failed, the order is over. */
sp_pull_state sp_pull_take(uint64_t number, sp_buffer *out);
void sp_pull_cancel(uint64_t number);

/* A window of run RUN ends now: what is wanted of it. */
sp_pull_order sp_pull_window_ends(uint32_t run);
/* PART, a part of the pprof, is what ORDER wanted of a window. PART->failed: the order fails. */
void sp_pull_window_done(const sp_pull_order *order, const sp_buffer *part);

#endif
