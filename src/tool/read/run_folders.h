/* SPDX-License-Identifier: Apache-2.0 */
/* Folders that `spanprof run` left, PREFIX.run-XXXXXX: a process that went on after the end of the
 * run has its files there. Threads: any. */
#ifndef SP_TOOL_READ_RUN_FOLDERS_H
#define SP_TOOL_READ_RUN_FOLDERS_H

#include <stdint.h>

#include "tool/text/options.h"

/* Say for each prefix in FILES which folder has files that were written since BEGIN_NS, in
 * nanoseconds since 1970, and how to read them. Nothing is said of a folder that FILES name. */
void sp_run_folders_note(const sp_operands *files, uint64_t begin_ns);

#endif
