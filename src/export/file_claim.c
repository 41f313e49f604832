/* SPDX-License-Identifier: Apache-2.0 */
/* One start at a time takes files in a directory. A start first examines the files that are there,
 * and then makes and locks its own. Two starts that do this at the same moment would each find a
 * file that the other has locked, and both would give the prefix up. So a start locks the directory
 * (flock) until it has made the last file of its run.
 *
 * Another program may hold a lock on the directory for long (`flock . ./server`). Then the start
 * continues without the lock. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/log.h"
#include "export/export_internal.h"

enum { RETRY_NS = 2000000 };
static const uint64_t longest_wait_ns = UINT64_C(500000000);

/* Open the directory of the files that begin with PREFIX. -1 when it cannot be opened. */
static int open_directory(const char *prefix)
{
    char path[PATH_MAX];
    const char *slash = strrchr(prefix, '/');
    int length = slash ? (int)(slash - prefix) + 1 : 0;
    if (length >= (int)sizeof path)
        return -1;
    snprintf(path, sizeof path, "%.*s", length, prefix);
    return open(length ? path : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* Returns 0, or errno: EWOULDBLOCK when another process has held the lock all the time. */
static int lock_directory(int fd)
{
    uint64_t end = sp_clock_monotonic_ns() + longest_wait_ns;
    while (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        if (errno != EWOULDBLOCK || sp_clock_monotonic_ns() > end)
            return errno;
        nanosleep(&(struct timespec){.tv_nsec = RETRY_NS}, NULL);
    }
    return 0;
}

int sp_file_claim_begin(const char *prefix)
{
    int fd = open_directory(prefix);
    if (fd >= 0 && lock_directory(fd) == EWOULDBLOCK)
        sp_log_info("export", "%s: another program holds a lock on the directory: not waited for",
                    prefix);
    return fd;
}

void sp_file_claim_end(int claim)
{
    if (claim < 0)
        return;
    flock(claim, LOCK_UN); /* not only by close, because a child forked meanwhile has a copy */
    close(claim);
}
