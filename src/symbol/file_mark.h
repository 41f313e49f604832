/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a mapped file is unchanged. A file that is removed, or replaced by a rename, stays whole
 * as long as it is mapped. A file that is truncated loses its pages: the next access to them raises
 * SIGBUS, which would end the application. Collector thread only. */
#ifndef SP_SYMBOL_FILE_MARK_H
#define SP_SYMBOL_FILE_MARK_H

#include <stdbool.h>
#include <sys/stat.h>

/* A file's identity, size and time when it was opened. Zero-initialised: of no file;
 * sp_file_mark_is_written is false then. */
typedef struct sp_file_mark {
    char *path; /* owned; NULL: none */
    dev_t device;
    ino_t inode;
    off_t size;
    struct timespec modified;
} sp_file_mark;

/* Set MARK from FD, which was opened as PATH (copied). MARK is of no file when fstat fails or
 * memory is short. */
void sp_file_mark_init(sp_file_mark *mark, const char *path, int fd);
void sp_file_mark_deinit(sp_file_mark *mark);

/* Whether the file at MARK's path is still the same one and was truncated or written to. Takes
 * about a microsecond. */
bool sp_file_mark_is_written(const sp_file_mark *mark);
/* Whether both are of the same file, which was not written to in between. */
bool sp_file_mark_is_equal(const sp_file_mark *a, const sp_file_mark *b);

#endif
