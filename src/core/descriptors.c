/* SPDX-License-Identifier: Apache-2.0 */
#include "core/descriptors.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

enum { SELECT_BOUND = 1024 }; /* FD_SETSIZE */

uint32_t sp_descriptors_limit(uint32_t bound)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        limit.rlim_cur = SELECT_BOUND;
    return limit.rlim_cur < bound ? (uint32_t)limit.rlim_cur : bound;
}

int sp_descriptor_move_up(int fd, uint32_t bound)
{
    uint32_t limit = sp_descriptors_limit(bound);
    uint32_t lowest = limit >= 2 * SELECT_BOUND ? SELECT_BOUND : limit / 2;
    int moved = fcntl(fd, F_DUPFD_CLOEXEC, (int)lowest);
    int error = errno;
    close(fd);
    if (moved >= 0 && (uint32_t)moved >= bound) {
        close(moved);
        moved = -1;
        error = EMFILE;
    }
    errno = error;
    return moved;
}
