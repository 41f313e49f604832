/* SPDX-License-Identifier: Apache-2.0 */
/* What another process has mapped, and copies of its memory. Threads: any.  Signals: not safe. */
#ifndef SP_OUTSIDE_MEMORY_H
#define SP_OUTSIDE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* A line of /proc/PID/maps. */
typedef struct sp_outside_mapping {
    uint64_t low, high, offset, inode;
    unsigned major, minor;
    bool is_executable;
    char path[4096]; /* or a name; "" for none */
} sp_outside_mapping;

/* Called for each mapping in order of addresses, until it returns false. */
typedef bool sp_outside_each_mapping(const sp_outside_mapping *mapping, void *user);
/* False, and errno, when the mappings cannot be read. */
bool sp_outside_mappings(pid_t pid, sp_outside_each_mapping *each, void *user);
/* Copy BYTES at ADDRESS of the process, all or nothing (errno). */
bool sp_outside_copy(pid_t pid, void *out, uint64_t address, size_t bytes);
static inline bool sp_outside_word(pid_t pid, uint64_t address, uint64_t *out)
{
    return sp_outside_copy(pid, out, address, sizeof *out);
}

#endif
