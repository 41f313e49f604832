/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a file that another program may change. It uses pread, because access to a mapped file that
 * has shrunk raises SIGBUS. Threads: any. Signals: not safe. */
#ifndef SP_UNWIND_FILE_BYTES_H
#define SP_UNWIND_FILE_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Read all of [OFFSET, OFFSET + BYTES) into OUT. */
bool sp_file_read(int fd, uint64_t offset, void *out, size_t bytes);
/* Whether the file has EXPECTED at OFFSET. */
bool sp_file_equals(int fd, uint64_t offset, const void *expected, size_t bytes);

#endif
