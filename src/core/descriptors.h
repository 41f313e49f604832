/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptors are the host's: the SDK takes a share of them, and high numbers, out of the way of
 * programs that use select(2). Threads: any.  Signals: not safe. */
#ifndef SP_CORE_DESCRIPTORS_H
#define SP_CORE_DESCRIPTORS_H

#include <stdint.h>

/* How many the process may open (RLIMIT_NOFILE), BOUND at most. */
uint32_t sp_descriptors_limit(uint32_t bound);

/* FD under another number, above those that select(2) can name where the limit, BOUND at most,
 * leaves room for that; FD itself is closed. -1 with errno when none is free below BOUND. Close on
 * exec. */
int sp_descriptor_move_up(int fd, uint32_t bound);

#endif
