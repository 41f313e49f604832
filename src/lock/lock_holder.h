/* SPDX-License-Identifier: Apache-2.0 */
/* Which span holds a lock. */
#ifndef SP_LOCK_LOCK_HOLDER_H
#define SP_LOCK_LOCK_HOLDER_H

#include "lock/lock_link.h"

/* Write into WAIT the span that is active on thread *OWNER, if it is certain that it was while that
 * thread held the lock. Any thread; no lock is waited for. */
void sp_lock_holder_find(sp_contention *wait, const int *owner);

#endif
