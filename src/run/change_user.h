/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SP_RUN_CHANGE_USER_H
#define SP_RUN_CHANGE_USER_H

/* Find the C library's functions that change_user.c replaces, as sp_run_prepare_exits does. Call it
 * before main. */
void sp_run_prepare_change_user(void);

#endif
