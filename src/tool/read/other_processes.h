/* SPDX-License-Identifier: Apache-2.0 */
/* Files of other processes beside those of a prefix: a server that forks writes PREFIX.* and, for
 * its children, PREFIX.PID.* (docs/fork.md). A later run moves the files of PREFIX and leaves those
 * of the children, so a child's files may be of an earlier run: then they were last written before
 * this one began. */
#ifndef SP_TOOL_READ_OTHER_PROCESSES_H
#define SP_TOOL_READ_OTHER_PROCESSES_H

#include <stddef.h>
#include <stdint.h>

#include "tool/text/options.h"

enum { SP_OTHER_PROCESSES_TEXT = 4096 };

/* "files of 2 other processes lie beside it, …", and what to name to read them, into OUT: of files
 * PREFIX.PID.traces.* and PREFIX.PID.profiles.* that are not empty; those of earlier runs, PREFIX.1
 * to PREFIX.3, are none, and those that FILES, which the call names, have already. BEGIN_NS: since
 * 1970, when the run of PREFIX began; 0: it is not known. "": there are none of this run. Returns
 * OUT. */
const char *sp_other_processes(char out[SP_OTHER_PROCESSES_TEXT], const char *prefix,
                               const sp_operands *files, uint64_t begin_ns);
/* Which of FILES are of runs of PREFIX before the one that began at BEGIN_NS, as text into OUT:
 * "app.1, app.4711". "": none, or it is not known. Returns OUT. */
const char *sp_earlier_processes(char out[SP_OTHER_PROCESSES_TEXT], const char *prefix,
                                 const sp_operands *files, uint64_t begin_ns);
/* How many bytes of PATH are its prefix, when it has the name of a file of ours; else 0. */
size_t sp_prefix_length(const char *path);

#endif
