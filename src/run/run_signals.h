/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SP_RUN_RUN_SIGNALS_H
#define SP_RUN_RUN_SIGNALS_H

/* Find the C library's own functions, as sp_run_prepare_exits does. Before main. */
void sp_run_prepare_signals(void);
/* Of the signals by which people and supervisors end a program (HUP, INT, PIPE, TERM), those that
 * would end it now end the process's span first. The program may handle or ignore them later, as
 * without us. Before main. */
void sp_run_handle_signals(void);
/* The process ends by signal NUMBER now. */
void sp_run_end_by(int number);

#endif
