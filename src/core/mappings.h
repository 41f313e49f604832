/* SPDX-License-Identifier: Apache-2.0 */
/* The mappings of a process: the only reader of /proc/PID/maps. Lines go through a buffer on the
 * stack (4 KiB), so a map of any length is read without an allocation and without a lock. Threads:
 * any. Signals: not safe (EACH decides what else is called). */
#ifndef SP_CORE_MAPPINGS_H
#define SP_CORE_MAPPINGS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* One line. Addresses are [start, end). */
typedef struct sp_mapping {
    uint64_t start, end;
    uint64_t offset; /* of `start` in the file */
    dev_t device;
    uint64_t inode;      /* 0: no file */
    char permissions[5]; /* "rwxp", with '-' for a missing permission; 's' for shared memory */
    const char *path; /* as the kernel writes it, or a name such as "[stack]"; "" for none. Borrowed
                         until EACH returns. Cut to PATH_MAX. */
} sp_mapping;

static inline bool sp_mapping_is_executable(const sp_mapping *mapping)
{
    return mapping->permissions[2] == 'x';
}

/* Called for each mapping in the order of addresses, until it returns false. */
typedef bool sp_mapping_each(const sp_mapping *mapping, void *user);

/* The mappings of process PID, 0: of the calling one. Malformed lines are skipped. Returns false,
 * with errno, when the map cannot be read. A process that has ended may have no mappings. */
bool sp_mappings_of_process(pid_t pid, sp_mapping_each *each, void *user);
/* The same from the file PATH, and from the descriptor FD, which stays open. */
bool sp_mappings_of_file(const char *path, sp_mapping_each *each, void *user);
bool sp_mappings_of_descriptor(int fd, sp_mapping_each *each, void *user);

#endif
