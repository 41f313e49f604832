/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the span that holds a lock. */
#ifndef SP_LOCK_LOCK_HOLDER_H
#define SP_LOCK_LOCK_HOLDER_H

#include <stdbool.h>

#include "lock/lock_link.h"

/* Write into WAIT the span that is active on thread *OWNER, if it is certain that it was while that
 * thread held the lock. Any thread; no lock is waited for. */
void sp_lock_holder_find(sp_contention *wait, const int *owner);

/* The span that is active on the calling thread; all zero when there is none, or it is not
 * certain. */
void sp_lock_holder_here(sp_call_holder *out);
/* Whether the calling thread may be the owner: *OWNER is its id or 0, or OWNER is NULL. */
bool sp_lock_holder_may_be_here(const int *owner);

#endif
