/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SP_RUN_RUN_SIGNALS_H
#define SP_RUN_RUN_SIGNALS_H

/* Find the C library's functions that run_signals.c replaces, as sp_run_prepare_exits does. Call it
 * before main. */
void sp_run_prepare_signals(void);
/* Handle the signals by which people and supervisors end a program (HUP, INT, PIPE, TERM), if their
 * action is the default: the handler lets the keeper end the recording before the process ends. The
 * program may handle or ignore these signals later, as without us. Call it before main. */
void sp_run_handle_signals(void);
/* Keep the handler and the mask of the ticks' signal, whatever the program sets for this signal.
 * Call it before main. */
void sp_run_hide_ticks(void);
/* End the process by signal NUMBER now. */
void sp_run_end_by(int number);

#endif
