/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SP_RUN_ONE_THREAD_H
#define SP_RUN_ONE_THREAD_H

/* Find the C library's functions that one_thread.c replaces, as sp_run_prepare_exits does. Call it
 * before main. */
void sp_run_prepare_one_thread(void);

#endif
