/* SPDX-License-Identifier: Apache-2.0 */
/* Finds files of other processes that belong to a prefix: a server that forks writes PREFIX.* and
 * its children write PREFIX.PID.* (docs/fork.md). A later run renames the files of PREFIX but not
 * the files of the children, so a child's files may be of an earlier run. Such files were last
 * written before this run began. */
#ifndef SP_TOOL_READ_OTHER_PROCESSES_H
#define SP_TOOL_READ_OTHER_PROCESSES_H

#include <stddef.h>
#include <stdint.h>

#include "tool/text/options.h"

enum { SP_OTHER_PROCESSES_TEXT = 4096 };

/* Write to OUT how many other processes of this run have files, and which names read them: "files
 * of 2 other processes lie beside it, …"; "": there are none. Counted are processes with a file
 * PREFIX.PID.traces.* or PREFIX.PID.profiles.* that is not empty. Not counted are the renamed files
 * of earlier runs, PREFIX.1 to PREFIX.3, and files that the user already named, which are in FILES.
 * BEGIN_NS: when the run of PREFIX began, in nanoseconds since 1970; 0: not known. Returns OUT. */
const char *sp_other_processes(char out[SP_OTHER_PROCESSES_TEXT], const char *prefix,
                               const sp_operands *files, uint64_t begin_ns);
/* Write to OUT which of FILES are of earlier runs of PREFIX, before the run that began at BEGIN_NS:
 * "app.1, app.4711"; "": none, or not known. Returns OUT. */
const char *sp_earlier_processes(char out[SP_OTHER_PROCESSES_TEXT], const char *prefix,
                                 const sp_operands *files, uint64_t begin_ns);
/* How many bytes of PATH are its prefix, if PATH is named like a file of ours; else 0. */
size_t sp_prefix_length(const char *path);

#endif
