/* SPDX-License-Identifier: Apache-2.0 */
#include "unwind/file_bytes.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "core/compiler.h"

bool sp_file_read(int fd, uint64_t offset, void *out, size_t bytes)
{
    if (offset > INT64_MAX - bytes)
        return false;
    for (size_t done = 0; done < bytes;) {
        ssize_t got = pread(fd, (char *)out + done, bytes - done, (off_t)(offset + done));
        if (got <= 0 && !(got < 0 && errno == EINTR))
            return false;
        done += got > 0 ? (size_t)got : 0;
    }
    return true;
}

bool sp_file_equals(int fd, uint64_t offset, const void *expected, size_t bytes)
{
    uint8_t piece[4096];
    for (size_t done = 0, count; done < bytes; done += count) {
        count = sp_min_u64(bytes - done, sizeof piece);
        if (!sp_file_read(fd, offset + done, piece, count) ||
            memcmp(piece, (const char *)expected + done, count) != 0)
            return false;
    }
    return true;
}
