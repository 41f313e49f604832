/* SPDX-License-Identifier: Apache-2.0 */
/* Shows the progress of long work in one line on standard error, if this is a terminal that can
 * erase the line. The line appears after the first second, and changes a few times per second.
 * Threads: one. */
#ifndef SP_TOOL_TEXT_PROGRESS_H
#define SP_TOOL_TEXT_PROGRESS_H

#include <stddef.h>
#include <stdint.h>

/* Report that WHAT is done with the file OF (NULL: with all files), and that DONE of TOTAL bytes
 * are done; a TOTAL of 0 is unknown. This is cheap: it may be called for each block. */
void sp_progress_step(const char *what, const char *of, uint64_t done, uint64_t total);
/* Erase the line, if it is shown. Messages and answers call this themselves. */
void sp_progress_end(void);

/* Write the text of the line, escaped, in at most COLUMNS columns. */
#define SP_PROGRESS_LENGTH 1024
void sp_progress_text(char out[SP_PROGRESS_LENGTH], const char *what, const char *of, uint64_t done,
                      uint64_t total, unsigned columns);

#endif
