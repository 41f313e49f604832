/* SPDX-License-Identifier: Apache-2.0 */
/* Opens regular files by names that may lead to something else. Threads: any. Signals: not safe. */
#ifndef SP_CORE_REGULAR_FILE_H
#define SP_CORE_REGULAR_FILE_H

#include <sys/stat.h>

/* Open PATH if it is a regular file. FLAGS: O_RDONLY or O_RDWR, and further flags of open(2), for
 * instance O_NOFOLLOW. Anything else is not opened, because that may block, have effects (a
 * device), or let the writer of a FIFO continue. Returns a close-on-exec descriptor, with the
 * file's fstat in *STATUS (which may be NULL). On failure returns -1 with errno: EINVAL when PATH
 * is not a regular file, ELOOP when it is a link and FLAGS have O_NOFOLLOW. */
int sp_regular_file_open(const char *path, int flags, struct stat *status);

#endif
