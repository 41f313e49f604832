/* SPDX-License-Identifier: Apache-2.0 */
#include "core/regular_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <unistd.h>

static int fail(int error)
{
    errno = error;
    return -1;
}

static int open_again_when_interrupted(const char *path, int flags)
{
    int fd;
    do
        fd = open(path, flags);
    while (fd < 0 && errno == EINTR);
    return fd;
}

/* The file is checked twice: before the open, which may have effects, and after it, because PATH
 * may lead to another file by then. Then O_NONBLOCK and O_NOCTTY limit the effects. */
int sp_regular_file_open(const char *path, int flags, struct stat *status)
{
    struct stat found;
    if (fstatat(AT_FDCWD, path, &found, flags & O_NOFOLLOW ? AT_SYMLINK_NOFOLLOW : 0) != 0)
        return -1;
    if (!S_ISREG(found.st_mode))
        return fail(S_ISLNK(found.st_mode) ? ELOOP : EINVAL);
    int fd = open_again_when_interrupted(path, flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return -1;
    if (fstat(fd, &found) != 0 || !S_ISREG(found.st_mode)) {
        close(fd);
        return fail(EINVAL);
    }
    if (status)
        *status = found;
    return fd;
}
