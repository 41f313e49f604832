/* SPDX-License-Identifier: Apache-2.0 */
/* Files, FIFOs and devices that the SDK writes. No call waits for a reader: what a FIFO does not
 * take now is the caller's to try again. A disk that hangs does hold up the calling thread, because
 * the kernel knows no other way to write a regular file. Threads: any, one at a time for each
 * descriptor.  Signals: not safe. */
#ifndef SP_CORE_APPEND_H
#define SP_CORE_APPEND_H

#include <stdint.h>
#include <sys/uio.h>

/* PATH for appending, made if it is not there; FLAGS are further ones of open(2). The descriptor is
 * not blocking, close on exec, and none of the host's standard ones, which may be closed: what the
 * host prints must not land in our file. -1 with errno. */
int sp_append_open(const char *path, int flags);

/* Take BYTES off the front of the COUNT RANGES. */
void sp_append_skip(struct iovec *ranges, int count, uint64_t bytes);

/* Write the COUNT RANGES as far as FD takes them; what was written is taken off them, and *DONE
 * grows by it. 0 when all is written, EAGAIN when FD takes no more now, else errno. */
int sp_append_write(int fd, struct iovec *ranges, int count, uint64_t *done);

#endif
