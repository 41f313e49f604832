/* SPDX-License-Identifier: Apache-2.0 */
/* The keeper: a thread that begins and ends the span of its process. Because the keeper does the
 * work, the span can be ended where ordinary code must not run: in a signal handler, in _exit,
 * before an exec.
 *
 * Threads: any.  Signals: safe, except for start, take_exit_code, leave and return.  Fork: a child
 * gets its own keeper. */
#ifndef SP_RUN_KEEPER_H
#define SP_RUN_KEEPER_H

#include <stdbool.h>

/* Begin the span and start the keeper; register what ends the span at exit, and what starts a
 * keeper in forked children. Call it once, before main. */
void sp_keeper_start(void);
/* For a program that uses spanprof itself: start a keeper that ends the SDK when a signal ends the
 * process, and otherwise does nothing. Forked children get one, too. Call it once, before main. */
void sp_keeper_start_for_signals(void);
/* In a forked child whose span has not begun: begin it now. Returns when it has begun, or after 5
 * seconds. errno is kept. */
void sp_keeper_hurry(void);
/* Register the exit handler that gets the exit code of the process. Call it just before main
 * (run_main.c). Without this call, the span has no exit code. */
void sp_keeper_take_exit_code(void);
/* End the span, because this process ends or becomes another program. Returns when the recording is
 * written, or after 5 seconds. Does nothing in a child of vfork, because the memory belongs to its
 * parent. errno is kept. */
void sp_keeper_end(void);
/* The same in the handler of a signal that ends the process. Here the recording of a program that
 * uses spanprof itself ends, too; such a program ends its recording itself at all other ends. */
void sp_keeper_end_for_signal(void);
/* As sp_keeper_end, for a process that exits with CODE. The span gets the code as an attribute. */
void sp_keeper_exit(int code);
/* Let the keeper end the span and then the process, by signal NUMBER, when the recording is
 * written. Returns at once. False: the caller has to end the process itself, because there is no
 * span to end, or because an earlier signal already asked for the end. */
bool sp_keeper_end_by(int number);
/* After an exec that failed: the keeper begins a new span soon. errno is kept. */
void sp_keeper_resume(void);

/* End the span, and the threads of the SDK and of the keeper, so that the process has only the
 * program's own threads. False: the process has no threads of ours, or they did not end in time.
 * After true, sp_keeper_return must follow. One thread at a time; not in signal handlers. */
bool sp_keeper_leave(void);
/* After sp_keeper_leave: start a new keeper, which begins a new span soon. errno is kept. */
void sp_keeper_return(void);

#endif
