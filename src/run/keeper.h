/* SPDX-License-Identifier: Apache-2.0 */
/* The keeper: a thread that begins and ends the process's span. It makes an end possible where
 * ordinary code must not run: in a signal handler, in _exit, before an exec.
 *
 * Threads: any.  Signals: safe, except for start, leave and return.  Fork: a child gets a keeper of
 * its own. */
#ifndef SP_RUN_KEEPER_H
#define SP_RUN_KEEPER_H

#include <stdbool.h>

/* Once, before main: begin, and see to forked children. */
void sp_keeper_start(void);
/* From main on the process's exit code can be learned. If this is not called, the span ends without
 * one. */
void sp_keeper_take_exit_code(void);
/* This process ends, or becomes another program: its span ends, and what there is has been written
 * when it returns, 5 seconds later at most. In a child of vfork, which has its parent's memory,
 * nothing happens. errno is kept. */
void sp_keeper_end(void);
/* The same for a process that exits with CODE, which its span tells. */
void sp_keeper_exit(int code);
/* The same for a process that is to end by signal NUMBER: returns at once, and the process ends by
 * it when all is written. False when there is nothing to wait for, or NUMBER has come before. */
bool sp_keeper_end_by(int number);
/* The exec has failed: begin anew, soon. errno is kept. */
void sp_keeper_resume(void);

/* End the span, and the SDK's and the keeper's threads, so that the process has the program's
 * threads alone; return must follow. False: it has no threads of ours, or they did not end in time.
 * One thread at a time; not in signal handlers. */
bool sp_keeper_leave(void);
/* Begin anew, soon, with a new span. errno is kept. */
void sp_keeper_return(void);

#endif
