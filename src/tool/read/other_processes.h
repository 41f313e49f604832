/* SPDX-License-Identifier: Apache-2.0 */
/* Files of other processes beside those of a prefix: a server that forks writes PREFIX.* and, for
 * its children, PREFIX.PID.* (docs/fork.md). */
#ifndef SP_TOOL_READ_OTHER_PROCESSES_H
#define SP_TOOL_READ_OTHER_PROCESSES_H

#include <stddef.h>

enum { SP_OTHER_PROCESSES_TEXT = 1200 };

/* "files of 2 other processes lie beside it, …", and what to name to read them, into OUT: of files
 * PREFIX.PID.traces.*; those of earlier runs, PREFIX.1 to PREFIX.3, are none. "": there are none.
 * Returns OUT. */
const char *sp_other_processes(char out[SP_OTHER_PROCESSES_TEXT], const char *prefix);

#endif
