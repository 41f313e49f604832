/* SPDX-License-Identifier: Apache-2.0 */
#include "core/kernel_setting.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

long sp_kernel_setting(const char *name, long otherwise)
{
    char path[128], text[32] = "", *end;
    int error = errno;
    snprintf(path, sizeof path, "/proc/sys/%s", name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = fd >= 0 ? read(fd, text, sizeof text - 1) : 0;
    if (fd >= 0)
        close(fd);
    long number = strtol(text, &end, 10);
    errno = error;
    return length > 0 && end != text ? number : otherwise;
}
