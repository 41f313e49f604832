/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a file that is mapped is still as it was. One that is replaced by a rename, or removed,
 * stays whole as long as it is mapped; one that is written over loses its pages: the next access to
 * them raises SIGBUS, which would end the application. Collector thread only. */
#ifndef SP_SYMBOL_FILE_MARK_H
#define SP_SYMBOL_FILE_MARK_H

#include <stdbool.h>
#include <sys/stat.h>

/* What a file was when it was opened. Zero-initialised is of none, which is never written over. */
typedef struct sp_file_mark {
    char *path; /* owned; NULL: none */
    dev_t device;
    ino_t inode;
    off_t size;
    struct timespec modified;
} sp_file_mark;

/* Note the file that was opened as PATH (copied) and is FD. Leaves none when memory is short. */
void sp_file_mark_init(sp_file_mark *mark, const char *path, int fd);
void sp_file_mark_deinit(sp_file_mark *mark);

/* The very file was truncated or written to. About a microsecond. */
bool sp_file_mark_is_written(const sp_file_mark *mark);
/* The same file, not written to in between. */
bool sp_file_mark_is_equal(const sp_file_mark *a, const sp_file_mark *b);

#endif
