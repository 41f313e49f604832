/* SPDX-License-Identifier: Apache-2.0 */
/* The progress of long work, in one line on standard error, when that is a terminal that can erase
 * it: after the first second, a few times a second.  Threads: one. */
#ifndef SP_TOOL_TEXT_PROGRESS_H
#define SP_TOOL_TEXT_PROGRESS_H

#include <stddef.h>
#include <stdint.h>

/* WHAT is done with the file (or, with NULL, the files) called OF, and is at DONE bytes of TOTAL;
 * 0: it is not known how many there are. Cheap, so that it may be called for each block. */
void sp_progress_step(const char *what, const char *of, uint64_t done, uint64_t total);
/* Erase the line, if there is one. Messages and answers do it themselves. */
void sp_progress_end(void);

/* The line, escaped, in at most COLUMNS columns. */
#define SP_PROGRESS_LENGTH 1024
void sp_progress_text(char out[SP_PROGRESS_LENGTH], const char *what, const char *of, uint64_t done,
                      uint64_t total, unsigned columns);

#endif
