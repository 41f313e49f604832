/* SPDX-License-Identifier: Apache-2.0 */
/* Files, FIFOs and devices that the SDK writes. No call waits for a reader: when a FIFO is full,
 * the caller tries again later. A disk that hangs blocks the calling thread, because O_NONBLOCK has
 * no effect on regular files. Threads: any, one at a time for each descriptor. Signals: not safe.
 */
#ifndef SP_CORE_APPEND_H
#define SP_CORE_APPEND_H

#include <stdint.h>
#include <sys/uio.h>

/* Open PATH for appending, and create it if it does not exist. FLAGS are further flags of open(2).
 * The descriptor is non-blocking and close-on-exec. It is never 0, 1 or 2, even when the host has
 * closed these, because output of the host must not get into this file. Returns -1 with errno on
 * failure. */
int sp_append_open(const char *path, int flags);

/* Remove the first BYTES from the COUNT RANGES. */
void sp_append_skip(struct iovec *ranges, int count, uint64_t bytes);

/* Write as much of the COUNT RANGES as FD accepts. The written bytes are removed from RANGES and
 * added to *DONE. Returns 0 when all is written, EAGAIN when FD accepts no more at the moment, else
 * errno. */
int sp_append_write(int fd, struct iovec *ranges, int count, uint64_t *done);

#endif
