/* SPDX-License-Identifier: Apache-2.0 */
/* Sampling of waits for locks, which libspanprof-preload.so intercepts. See
 * docs/design/lock-contention.md. Threads: start and stop are setup, any thread may call pause and
 * resume. Fork: the child calls fork_child. */
#ifndef SP_LOCK_LOCK_SAMPLES_H
#define SP_LOCK_LOCK_SAMPLES_H

#include <stdint.h>

/* Waits are sampled from now on, one in PERIOD_NS nanoseconds of waiting on average, at least 1;
 * sp_calls_start was called. If no waits can be seen, one warning says why. */
void sp_lock_samples_start(uint64_t period_ns);
/* No wait is sampled any more. A second call does nothing. */
void sp_lock_samples_stop(void);
/* In the child: no wait is sampled, and no thread of the parent waits. */
void sp_lock_samples_fork_child(void);
void sp_lock_samples_pause(void);
void sp_lock_samples_resume(void);

#endif
