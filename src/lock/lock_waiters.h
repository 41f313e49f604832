/* SPDX-License-Identifier: Apache-2.0 */
/* The table of waits for locks. A thread that waits takes a place here, with the moment from which
 * on its wait is a sample. A thread that gives the lock back after that moment writes its span and
 * its stack into that place. If several threads hold the lock during one wait, each is named with a
 * probability of its share of the wait. See docs/design/lock-contention.md.
 *
 * | operation           | the waiter | the giver               | setup |
 * | enter, close, leave |    yes     |                         |       |
 * | give                |            |           yes           |       |
 * | fork_child          |            |                         |  yes  |
 * Signals: safe; nothing blocks or allocates. */
#ifndef SP_LOCK_LOCK_WAITERS_H
#define SP_LOCK_LOCK_WAITERS_H

#include "lock/lock_link.h"

/* Take a place in TABLE for a wait for LOCK that is a sample from the monotonic DUE_NS on. Moments
 * that are sampled are PERIOD_NS (> 0) apart on average. Returns its number plus one, 0 when there
 * is none. */
uint32_t sp_lock_waiters_enter(sp_lock_waiters *table, const void *lock, uint64_t due_ns,
                               uint64_t period_ns);
/* The wait is over. Returns the giver that was written into PLACE; it is valid until leave. NULL
 * when there is none; then leave must not be called. PLACE is not 0. */
const sp_lock_giver *sp_lock_waiters_close(sp_lock_waiters *table, uint32_t place);
void sp_lock_waiters_leave(sp_lock_waiters *table, uint32_t place);

/* The calling thread is about to give LOCK back; RETURN_ADDRESS is that of the function that does.
 * Write its span and its stack into the places of waits for LOCK that are due. */
void sp_lock_waiters_give(sp_lock_waiters *table, const void *lock, const void *return_address);

/* In a forked child: remove all waiters, which are threads of the parent. */
void sp_lock_waiters_fork_child(sp_lock_waiters *table);

#endif
