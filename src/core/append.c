/* SPDX-License-Identifier: Apache-2.0 */
#include "core/append.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <unistd.h>

/* Close a descriptor that is 0, 1 or 2. Keeps errno. */
static void close_low(int fd)
{
    int error = errno;
    close(fd);
    errno = error;
}

int sp_append_open(const char *path, int flags)
{
    /* For a FIFO without a reader, O_NONBLOCK gives the error ENXIO at once. */
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK | flags, 0666);
    if (fd < 0 || fd > STDERR_FILENO)
        return fd;
    int above = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    close_low(fd);
    return above;
}

void sp_append_skip(struct iovec *ranges, int count, uint64_t bytes)
{
    for (int i = 0; i < count && bytes; i++) {
        size_t part = bytes < ranges[i].iov_len ? (size_t)bytes : ranges[i].iov_len;
        ranges[i].iov_base = (uint8_t *)ranges[i].iov_base + part;
        ranges[i].iov_len -= part;
        bytes -= part;
    }
}

static uint64_t bytes_of(const struct iovec *ranges, int count)
{
    uint64_t bytes = 0;
    for (int i = 0; i < count; i++)
        bytes += ranges[i].iov_len;
    return bytes;
}

int sp_append_write(int fd, struct iovec *ranges, int count, uint64_t *done)
{
    for (uint64_t left = bytes_of(ranges, count); left;) {
        ssize_t written = writev(fd, ranges, count);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return written < 0 ? errno : EIO;
        sp_append_skip(ranges, count, (uint64_t)written);
        *done += (uint64_t)written;
        left -= (uint64_t)written;
    }
    return 0;
}
