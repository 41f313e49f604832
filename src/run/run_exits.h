/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SP_RUN_RUN_EXITS_H
#define SP_RUN_RUN_EXITS_H

/* Find the C library's own functions, before main, so that ours never have to ask the loader: the
 * thread that calls them may have no usable thread-local storage, as a child of clone(CLONE_VM). */
void sp_run_prepare_exits(void);
/* Of the signals by which people and supervisors end a program (HUP, INT, PIPE, TERM), those that
 * would end it now end the process's span first. The program may handle or ignore them later, as
 * without us. Before main. */
void sp_run_handle_signals(void);
/* The process ends by signal NUMBER now. */
void sp_run_end_by(int number);

#endif
