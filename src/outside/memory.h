/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of another process's memory. Threads: any.  Signals: not safe. */
#ifndef SP_OUTSIDE_MEMORY_H
#define SP_OUTSIDE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Copy BYTES at ADDRESS of the process, all or nothing (errno). */
bool sp_outside_copy(pid_t pid, void *out, uint64_t address, size_t bytes);
static inline bool sp_outside_word(pid_t pid, uint64_t address, uint64_t *out)
{
    return sp_outside_copy(pid, out, address, sizeof *out);
}

#endif
