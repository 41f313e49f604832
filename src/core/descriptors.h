/* SPDX-License-Identifier: Apache-2.0 */
/* The SDK shares the process's descriptors with the host. It takes only a part of them, and takes
 * high numbers, because select(2) can only name low ones. Threads: any. Signals: not safe. */
#ifndef SP_CORE_DESCRIPTORS_H
#define SP_CORE_DESCRIPTORS_H

#include <stdint.h>

/* How many descriptors the process may open (RLIMIT_NOFILE), BOUND at most. */
uint32_t sp_descriptors_limit(uint32_t bound);

/* Duplicate FD to a number above those that select(2) can name, if the process's limit (BOUND at
 * most) leaves room for that, and close FD. The duplicate is close-on-exec. Returns -1 with errno
 * when no number below BOUND is free. */
int sp_descriptor_move_up(int fd, uint32_t bound);

#endif
