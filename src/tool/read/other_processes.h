/* SPDX-License-Identifier: Apache-2.0 */
/* Files of other processes beside those of a prefix: a server that forks writes PREFIX.* and, for
 * its children, PREFIX.PID.* (docs/fork.md). */
#ifndef SP_TOOL_READ_OTHER_PROCESSES_H
#define SP_TOOL_READ_OTHER_PROCESSES_H

#include <stddef.h>

/* How many processes have files PREFIX.PID.traces.*; those of earlier runs, PREFIX.1 to PREFIX.3,
 * are none. */
size_t sp_other_processes(const char *prefix);

#endif
