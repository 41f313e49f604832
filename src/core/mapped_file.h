/* SPDX-License-Identifier: Apache-2.0 */
/* The file that is mapped at an address of this process, as /proc/self/maps describes it.
 * Threads: one at a time.  Signals: not safe. */
#ifndef SP_CORE_MAPPED_FILE_H
#define SP_CORE_MAPPED_FILE_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

typedef struct sp_mapped_file {
    dev_t
        device; /* On overlay file systems these two are of the lower file; stat returns others. */
    ino_t inode;
    bool is_deleted; /* The file was removed or replaced after it was mapped. */
    char path[PATH_MAX];
} sp_mapped_file;

/* Find the first file that is mapped in [START, END). False: there is none, or the map cannot be
 * read. */
bool sp_mapped_file_find(uint64_t start, uint64_t end, sp_mapped_file *out);

/* Whether STATUS describes the same file that is mapped. */
static inline bool sp_mapped_file_is(const sp_mapped_file *mapped, const struct stat *status)
{
    return mapped->device == status->st_dev && mapped->inode == status->st_ino;
}

/* Read the map from PATH instead of /proc/self/maps. For tests; PATH is borrowed and never given
 * back. */
void sp_mapped_file_set_map(const char *path);

#endif
